import { create, download, formatCount, formatNumber, getById } from "./dom";
import type { Details, Item, Run, Source } from "./types";

const PAGE = 25;

export interface Actions {
  zoom(node: number): void;
  jump(point: number): void;
  toggle(node: number): void;
  fail(error: unknown): void;
}

/** The panel beside the canvas: details of a node, its items, and the selected clusters. */
export class Panel {
  private readonly box = getById<HTMLElement>("panel");
  private readonly about = create("section", { class: "about", "aria-live": "polite" });
  private readonly list = create("section", { class: "items" });
  private readonly chosen = create("section", { class: "chosen" });
  private details: Details | undefined;
  private request = 0;

  constructor(
    private readonly source: Source,
    private readonly run: Run,
    private readonly actions: Actions,
  ) {
    this.box.append(this.chosen, this.about, this.list);
  }

  /** Shows the details of a node. */
  async show(node: number, zoomed: number, selected: ReadonlyMap<number, string>): Promise<void> {
    const request = ++this.request;
    const details = await this.source.details(node);
    if (request !== this.request) return;
    this.details = details;
    this.drawAbout(details, zoomed, selected.has(node));
    await this.page(0);
  }

  /** Shows the selected clusters. */
  drawSelection(selected: ReadonlyMap<number, string>): void {
    if (!selected.size) {
      this.chosen.replaceChildren();
      return;
    }
    const entries = [...selected].map(([node, name]) =>
      create(
        "li",
        {},
        create("button", { type: "button", class: "link", dir: "auto", click: () => this.actions.zoom(node) }, name),
        create(
          "button",
          { type: "button", class: "quiet", "aria-label": `Deselect ${name}`, click: () => this.actions.toggle(node) },
          "×",
        ),
      ),
    );
    const buttons = this.source.formats.map((format) =>
      create(
        "button",
        { type: "button", click: () => void this.save([...selected.keys()], format) },
        format === "csv" ? "Export CSV" : "Export Parquet",
      ),
    );
    this.chosen.replaceChildren(
      create("h2", {}, `${formatCount(selected.size, "cluster")} selected`),
      create("ul", {}, ...entries),
      create("div", { class: "buttons" }, ...buttons),
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
      ? [["Point", formatNumber(node)]]
      : [["Points", formatNumber(size)], ["Merged in round", formatNumber(round)]];
    if (occurrences > size) facts.push(["Occurrences", formatNumber(occurrences)]);
    if (!single) {
      facts.push(cohesion === null ? ["Merge distance", height.toPrecision(3)] : ["Cohesion", cohesion.toFixed(2)]);
    }
    const rows = facts.flatMap(([name, value]) => [create("dt", {}, name), create("dd", {}, value)]);
    const buttons = create("div", { class: "buttons" });
    if (!single && node !== zoomed) {
      buttons.append(create("button", { type: "button", class: "main", click: () => this.actions.zoom(node) }, "Zoom in"));
    }
    if (single && details.path.length > 1) {
      const around = details.path.at(-2)!;
      buttons.append(
        create("button", { type: "button", class: "main", click: () => this.actions.zoom(around.node) }, "Show its cluster"),
      );
    }
    buttons.append(
      create(
        "button",
        { type: "button", "aria-pressed": String(selected), click: () => this.actions.toggle(node) },
        selected ? "Deselect" : "Select",
      ),
    );
    this.about.replaceChildren(
      create("p", { class: "kind" }, single ? "Item" : node === this.run.root ? "Whole tree" : "Cluster"),
      create("h1", { dir: "auto" }, node === this.run.root ? this.run.title : details.name),
      create("dl", {}, ...rows),
    );
    if (cohesion !== null && !single) {
      const part = Math.max(0, Math.min(1, cohesion));
      const bar = create("div", { class: "bar", role: "img", "aria-label": `Cohesion ${cohesion.toFixed(2)} of 1` });
      bar.append(create("span", { style: `width:${(part * 100).toFixed(1)}%` }));
      this.about.append(bar);
    }
    this.about.append(buttons);
    if (details.terms.length) {
      const chips = details.terms.map((term) => create("li", { dir: "auto" }, term));
      this.about.append(create("h2", {}, "Distinctive terms"), create("ul", { class: "terms" }, ...chips));
    }
    if (!single && details.examples.length) {
      const shown = details.examples.slice(0, 3).map((item) => this.item(item));
      this.about.append(create("h2", {}, "Examples"), create("ul", { class: "list" }, ...shown));
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
      create("button", { type: "button", disabled: !enabled, click: () => void this.page(to).catch(this.actions.fail) }, text);
    const last = Math.min(offset + PAGE, found.total);
    this.list.replaceChildren(
      create("h2", {}, found.total < details.size ? `Items in this page: ${formatNumber(found.total)} of ${formatNumber(details.size)}` : "Items"),
      create("ul", { class: "list" }, ...found.items.map((item) => this.item(item))),
      create(
        "div",
        { class: "pages" },
        step(offset - PAGE, "Previous", offset > 0),
        create("span", {}, `${formatNumber(offset + 1)}–${formatNumber(last)} of ${formatNumber(found.total)}`),
        step(offset + PAGE, "Next", last < found.total),
      ),
    );
  }

  private drawValues(item: Item | undefined): void {
    const rows = (item?.values ?? []).flatMap((value, i) => [
      create("dt", { dir: "auto" }, this.run.columns[i]!),
      create("dd", { dir: "auto" }, value || "–"),
    ]);
    this.list.replaceChildren(...(rows.length ? [create("h2", {}, "Columns"), create("dl", {}, ...rows)] : []));
  }

  private item(item: Item): HTMLElement {
    const text = create("button", { type: "button", class: "link", dir: "auto", click: () => this.actions.jump(item.point) }, item.text);
    const entry = create("li", {}, text);
    if (item.count > 1) entry.append(create("span", { class: "count", title: "Occurrences" }, formatNumber(item.count)));
    return entry;
  }
}
