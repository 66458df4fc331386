import { create, debounce, formatCount, formatNumber, getById } from "./dom";
import type { Item, Source } from "./types";

/** The search field, and the list of items below it. */
export class Search {
  private readonly field = getById<HTMLInputElement>("query");
  private readonly list = getById<HTMLUListElement>("hits");
  private items: Item[] = [];
  private active = -1;
  private request = 0;

  constructor(
    private readonly source: Source,
    private readonly go: (point: number) => void,
    private readonly fail: (error: unknown) => void,
  ) {
    const search = debounce(() => void this.search(), 120);
    this.field.addEventListener("input", search);
    this.field.addEventListener("focus", () => this.items.length && this.toggle(true));
    this.field.addEventListener("blur", () => setTimeout(() => this.toggle(false), 150));
    this.field.addEventListener("keydown", (event) => this.onKeyDown(event));
    getById<HTMLFormElement>("search").addEventListener("submit", (event) => event.preventDefault());
  }

  focus(): void {
    this.field.focus();
    this.field.select();
  }

  private async search(): Promise<void> {
    const request = ++this.request;
    const text = this.field.value;
    try {
      const found = text.trim() ? await this.source.search(text) : { total: 0, items: [] };
      if (request !== this.request) return;
      this.items = found.items;
      this.active = -1;
      const rows = found.items.map((item, i) =>
        create(
          "li",
          { role: "option", id: `hit${i}`, "aria-selected": "false", mousedown: () => this.choose(i) },
          create("span", { dir: "auto" }, item.text),
          ...(item.count > 1 ? [create("span", { class: "count" }, formatNumber(item.count))] : []),
        ),
      );
      const summary = found.total ? formatCount(found.total, "item") + " found" : "No items found";
      this.list.replaceChildren(create("li", { class: "said", role: "presentation" }, summary), ...rows);
      this.toggle(Boolean(text.trim()));
    } catch (error) {
      this.fail(error);
    }
  }

  private onKeyDown(event: KeyboardEvent): void {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.active = Math.max(0, Math.min(this.items.length - 1, this.active + step));
      this.list.querySelectorAll("[role=option]").forEach((row, i) => {
        row.setAttribute("aria-selected", String(i === this.active));
        if (i === this.active) row.scrollIntoView({ block: "nearest" });
      });
      this.field.setAttribute("aria-activedescendant", `hit${this.active}`);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.choose(Math.max(this.active, 0));
    } else if (event.key === "Escape") {
      this.toggle(false);
    }
  }

  private choose(index: number): void {
    const item = this.items[index];
    if (!item) return;
    this.toggle(false);
    this.go(item.point);
  }

  private toggle(open: boolean): void {
    this.list.hidden = !open;
    this.field.setAttribute("aria-expanded", String(open));
  }
}
