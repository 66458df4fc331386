import type { Crumb, Details, Items, Run, Source, View } from "./types";

/** Requests responses from `agglo explore`, with the token of the page's link. */
export class ServerSource implements Source {
  readonly note = "";
  readonly formats = ["csv", "parquet"] as const;
  private readonly token = new URLSearchParams(location.search).get("token") ?? "";

  run = () => this.getJson<Run>("run", {});
  view = (node: number, clusters: number, colour: string) => this.getJson<View>("view", { node, clusters, colour });
  details = (node: number) => this.getJson<Details>("node", { node });
  items = (node: number, offset: number, limit: number) => this.getJson<Items>("items", { node, offset, limit });
  search = (text: string) => this.getJson<Items>("search", { text });
  path = (node: number) => this.getJson<Crumb[]>("path", { node });
  save = async (nodes: number[], format: "csv" | "parquet") =>
    (await this.get("export", { nodes: nodes.join(","), format })).blob();

  private async getJson<T>(path: string, parameters: Record<string, string | number>): Promise<T> {
    return (await this.get(path, parameters)).json() as Promise<T>;
  }

  private async get(path: string, parameters: Record<string, string | number>): Promise<Response> {
    const query = new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)]));
    let response: Response;
    try {
      response = await fetch(`api/${path}?${query}`, { headers: { "X-Agglo-Token": this.token } });
    } catch {
      throw new Error("The server does not respond. Is agglo explore still running?");
    }
    if (!response.ok) throw new Error(((await response.json()) as { error: string }).error);
    return response;
  }
}
