import { byId, counted, download, element, number } from "./dom";
import type { Details, Item, Run, Source } from "./types";

const PAGE = 25;

export interface Actions {
  zoom(node: number): void;
  jump(point: number): void;
  toggle(node: number): void;
  fail(error: unknown): void;
}

/** The panel beside the clusters: what is known of one, its items, and what is selected. */
export class Panel {
  private readonly box = byId<HTMLElement>("panel");
  private readonly about = element("section", { class: "about", "aria-live": "polite" });
  private readonly list = element("section", { class: "items" });
  private readonly chosen = element("section", { class: "chosen" });
  private details: Details | undefined;
  private asked = 0;

  constructor(
    private readonly source: Source,
    private readonly run: Run,
    private readonly actions: Actions,
  ) {
    this.box.append(this.chosen, this.about, this.list);
    if (source.note) this.box.append(element("p", { class: "note" }, source.note));
  }

  /** Shows a node. */
  async show(node: number, zoomed: number, selected: ReadonlyMap<number, string>): Promise<void> {
    const asked = ++this.asked;
    const details = await this.source.details(node);
    if (asked !== this.asked) return;
    this.details = details;
    this.drawAbout(details, zoomed, selected.has(node));
    await this.page(0);
  }

  /** Shows what is selected. */
  drawSelection(selected: ReadonlyMap<number, string>): void {
    if (!selected.size) {
      this.chosen.replaceChildren();
      return;
    }
    const entries = [...selected].map(([node, name]) =>
      element(
        "li",
        {},
        element("button", { type: "button", class: "link", dir: "auto", click: () => this.actions.zoom(node) }, name),
        element(
          "button",
          { type: "button", class: "quiet", "aria-label": `Deselect ${name}`, click: () => this.actions.toggle(node) },
          "×",
        ),
      ),
    );
    const buttons = this.source.formats.map((format) =>
      element(
        "button",
        { type: "button", click: () => void this.save([...selected.keys()], format) },
        format === "csv" ? "Export CSV" : "Export Parquet",
      ),
    );
    this.chosen.replaceChildren(
      element("h2", {}, `${counted(selected.size, "cluster")} selected`),
      element("ul", {}, ...entries),
      element("div", { class: "buttons" }, ...buttons),
    );
  }

  private async save(nodes: number[], format: "csv" | "parquet"): Promise<void> {
    try {
      download(await this.source.save(nodes, format), `clusters.${format}`);
    } catch (error) {
      this.actions.fail(error);
    }
  }

  private drawAbout(details: Details, zoomed: number, selected: boolean): void {
    const { node, size, occurrences, round, cohesion, height } = details;
    const single = round === 0;
    const facts: [string, string][] = single
      ? [["Point", number(node)]]
      : [["Points", number(size)], ["Made in round", number(round)]];
    if (occurrences > size) facts.push(["Occurrences", number(occurrences)]);
    if (!single) {
      facts.push(cohesion === null ? ["Joined at distance", height.toPrecision(3)] : ["Cohesion", cohesion.toFixed(2)]);
    }
    const rows = facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
    const buttons = element("div", { class: "buttons" });
    if (!single && node !== zoomed) {
      buttons.append(element("button", { type: "button", class: "main", click: () => this.actions.zoom(node) }, "Zoom in"));
    }
    if (single && details.path.length > 1) {
      const around = details.path.at(-2)!;
      buttons.append(
        element("button", { type: "button", class: "main", click: () => this.actions.zoom(around.node) }, "Show its cluster"),
      );
    }
    buttons.append(
      element(
        "button",
        { type: "button", "aria-pressed": String(selected), click: () => this.actions.toggle(node) },
        selected ? "Deselect" : "Select",
      ),
    );
    this.about.replaceChildren(
      element("p", { class: "kind" }, single ? "Item" : node === this.run.root ? "Everything" : "Cluster"),
      element("h1", { dir: "auto" }, node === this.run.root ? this.run.title : details.name),
      element("dl", {}, ...rows),
    );
    if (cohesion !== null && !single) {
      const part = Math.max(0, Math.min(1, cohesion));
      const bar = element("div", { class: "bar", role: "img", "aria-label": `Cohesion ${cohesion.toFixed(2)} of 1` });
      bar.append(element("span", { style: `width:${(part * 100).toFixed(1)}%` }));
      this.about.append(bar);
    }
    this.about.append(buttons);
    if (details.terms.length) {
      const chips = details.terms.map((term) => element("li", { dir: "auto" }, term));
      this.about.append(element("h2", {}, "Sets it apart"), element("ul", { class: "terms" }, ...chips));
    }
    if (!single && details.examples.length) {
      const shown = details.examples.slice(0, 3).map((item) => this.item(item));
      this.about.append(element("h2", {}, "Stands for it"), element("ul", { class: "list" }, ...shown));
    }
  }

  private async page(offset: number): Promise<void> {
    const details = this.details!;
    if (details.round === 0) {
      this.drawValues(details.examples[0]);
      return;
    }
    const found = await this.source.items(details.node, offset, PAGE);
    if (this.details !== details) return;
    const step = (to: number, text: string, enabled: boolean): HTMLElement =>
      element("button", { type: "button", disabled: !enabled, click: () => void this.page(to).catch(this.actions.fail) }, text);
    const last = Math.min(offset + PAGE, found.total);
    this.list.replaceChildren(
      element("h2", {}, "Items"),
      element("ul", { class: "list" }, ...found.items.map((item) => this.item(item))),
      element(
        "div",
        { class: "pages" },
        step(offset - PAGE, "Previous", offset > 0),
        element("span", {}, `${number(offset + 1)}–${number(last)} of ${number(found.total)}`),
        step(offset + PAGE, "Next", last < found.total),
      ),
    );
  }

  private drawValues(item: Item | undefined): void {
    const rows = (item?.values ?? []).flatMap((value, i) => [
      element("dt", { dir: "auto" }, this.run.columns[i]!),
      element("dd", { dir: "auto" }, value || "–"),
    ]);
    this.list.replaceChildren(...(rows.length ? [element("h2", {}, "Columns"), element("dl", {}, ...rows)] : []));
  }

  private item(item: Item): HTMLElement {
    const text = element("button", { type: "button", class: "link", dir: "auto", click: () => this.actions.jump(item.point) }, item.text);
    const entry = element("li", {}, text);
    if (item.count > 1) entry.append(element("span", { class: "count", title: "Occurrences" }, number(item.count)));
    return entry;
  }
}
