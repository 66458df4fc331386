import type { Crumb, Details, Items, Run, Source, View } from "./types";

/** Answers of `agglo explore`, by the token of the link that the page was opened with. */
export class Server implements Source {
  readonly note = "";
  readonly formats = ["csv", "parquet"] as const;
  private readonly token = new URLSearchParams(location.search).get("token") ?? "";

  run = () => this.ask<Run>("run", {});
  view = (node: number, round: number, colour: string) => this.ask<View>("view", { node, round, colour });
  details = (node: number) => this.ask<Details>("node", { node });
  items = (node: number, offset: number, limit: number) => this.ask<Items>("items", { node, offset, limit });
  search = (text: string) => this.ask<Items>("search", { text });
  path = (node: number) => this.ask<Crumb[]>("path", { node });
  save = async (nodes: number[], format: "csv" | "parquet") =>
    (await this.get("export", { nodes: nodes.join(","), format })).blob();

  private async ask<T>(what: string, parameters: Record<string, string | number>): Promise<T> {
    return (await this.get(what, parameters)).json() as Promise<T>;
  }

  private async get(what: string, parameters: Record<string, string | number>): Promise<Response> {
    const query = new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)]));
    let answer: Response;
    try {
      answer = await fetch(`api/${what}?${query}`, { headers: { "X-Agglo-Token": this.token } });
    } catch {
      throw new Error("The server does not answer. Is agglo explore still running?");
    }
    if (!answer.ok) throw new Error(((await answer.json()) as { error: string }).error);
    return answer;
  }
}
