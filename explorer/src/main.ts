import "./app.css";
import { nameHue, numberPaint } from "./colours";
import { create, debounce, formatCount, getById } from "./dom";
import { type Embedded, EmbeddedSource } from "./embedded";
import type { Mode, PlacedBox } from "./layout";
import { Panel } from "./panel";
import { Search } from "./search";
import { ServerSource } from "./server";
import { Stage } from "./stage";
import { hasAddress, MAX_CLUSTERS, readState, type State, writeState } from "./state";
import { Theme } from "./theme";
import type { Run, Source, View } from "./types";

/** The page: keeps the state, shows it, and handles the events. */
class Explorer {
  private readonly stage: Stage;
  private readonly panel: Panel;
  private readonly search: Search;
  private readonly theme: Theme;
  private readonly names = new Map<number, string>();
  private state: State;
  private view: View | undefined;
  private request = 0;
  /** Whether to show as many clusters as possible, so that a point is visible. */
  private reveals = false;

  constructor(
    private readonly source: Source,
    private readonly run: Run,
  ) {
    document.title = `${run.title} – agglo explore`;
    this.state = readState(run);
    this.stage = new Stage({
      point: (node) => void this.showDetails(node),
      open: (box) => this.open(box),
      out: () => this.zoomOut(),
      toggle: (node, name) => this.toggle(node, name),
      resize: () => this.view && this.updateSlider(this.view.clusters),
    });
    const actions = {
      zoom: (node: number) => this.zoom(node),
      jump: (point: number) => void this.jump(point),
      toggle: (node: number) => this.toggle(node, this.names.get(node)),
      fail: (error: unknown) => this.fail(error),
    };
    this.panel = new Panel(source, run, actions);
    this.search = new Search(source, actions.jump, actions.fail);
    this.theme = new Theme(() => this.applyTheme());
    this.addControls();
    window.addEventListener("popstate", () => {
      this.state = readState(run);
      void this.refresh(run.root);
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLInputElement && event.target.type === "search";
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.search.focus();
    });
    this.applyTheme();
    const note = getById("note");
    note.textContent = source.note;
    note.hidden = !source.note;
  }

  async start(): Promise<void> {
    await Promise.all(this.state.selected.map((node) => this.loadName(node)));
    await this.refresh();
  }

  /** Returns the position of a node on the page, for tests. */
  rectangle = (node: number): DOMRect | undefined => this.stage.rectangle(node);

  private applyTheme(): void {
    if (!this.theme) return; // not constructed yet
    this.stage.dark = this.theme.dark;
    this.stage.redraw();
    if (this.view) this.drawLegend(this.view);
  }

  private addControls(): void {
    const { columns } = this.run;
    const slider = getById<HTMLInputElement>("clusters");
    const later = debounce(() => void this.refresh(), 60);
    slider.addEventListener("input", () => {
      this.reveals = false;
      this.state.clusters = this.steps()[Number(slider.value)] ?? this.state.clusters;
      this.updateSlider(this.state.clusters);
      writeState(this.state, false);
      later();
    });
    const modes: [Mode, string][] = [["boxes", "Boxes"], ["icicle", "Icicle"]];
    for (const [mode, text] of modes) {
      const choice = create("input", { type: "radio", name: "mode", value: mode });
      choice.checked = this.state.mode === mode;
      choice.addEventListener("change", () => {
        this.state.mode = this.stage.mode = mode;
        writeState(this.state, false);
        this.stage.layOut();
        this.stage.redraw();
      });
      getById("mode").append(create("label", {}, choice, create("span", {}, text)));
    }
    const colour = getById<HTMLSelectElement>("colour");
    colour.append(create("option", { value: "" }, "Branch"), ...columns.map((name) => create("option", { value: name }, name)));
    colour.parentElement!.hidden = !columns.length;
    colour.value = this.state.colour;
    colour.addEventListener("change", () => {
      this.state.colour = colour.value;
      writeState(this.state, false);
      void this.refresh();
    });
    const share = getById<HTMLButtonElement>("share");
    share.hidden = !hasAddress();
    share.addEventListener("click", async () => {
      writeState(this.state, false);
      try {
        await navigator.clipboard.writeText(location.href);
        share.textContent = "Copied";
      } catch {
        window.prompt("The link to this view", location.href);
      }
      setTimeout(() => (share.textContent = "Copy link"), 1500);
    });
  }

  /** Loads the view of the state, and shows it. */
  private async refresh(details = this.state.node): Promise<void> {
    const request = ++this.request;
    const { node, clusters, mode, colour } = this.state;
    try {
      const wanted = this.reveals ? MAX_CLUSTERS : Math.min(clusters, this.stage.maxClusters);
      const view = await this.source.view(node, wanted, colour);
      if (request !== this.request) return;
      getById("message").hidden = true;
      this.view = view;
      for (const box of view.boxes) if (box.node >= 0) this.names.set(box.node, box.name);
      for (const crumb of view.path) this.names.set(crumb.node, crumb.name);
      Object.assign(this.stage, { mode, colour, selected: new Set(this.state.selected) });
      this.stage.show(view);
      this.drawPath(view);
      this.updateSlider(view.clusters);
      this.drawLegend(view);
      this.panel.drawSelection(this.selection());
      await this.showDetails(details === this.run.root ? node : details);
      document.body.dataset.shown = `${node}/${view.clusters}`;
    } catch (error) {
      this.fail(error);
    }
  }

  private async showDetails(node: number): Promise<void> {
    try {
      await this.panel.show(node, this.state.node, this.selection());
    } catch (error) {
      this.fail(error);
    }
  }

  private open(box: PlacedBox): void {
    const { node, round } = box.box;
    if (node < 0) {
      const around = this.view!.boxes[box.parent]!;
      if (around.node !== this.state.node) this.zoom(around.node);
      else void this.showDetails(around.node);
    } else if (round === 0) {
      this.stage.marked = node;
      this.stage.redraw();
      void this.showDetails(node);
    } else {
      this.zoom(node);
    }
  }

  private zoom(node: number, marked = -1): void {
    this.stage.marked = marked;
    this.reveals = marked >= 0;
    if (node !== this.state.node) {
      this.state.node = node;
      writeState(this.state, true);
    }
    void this.refresh(marked >= 0 ? marked : node);
  }

  private zoomOut(): void {
    const path = this.view?.path ?? [];
    const outer = path.at(-2);
    if (outer) this.zoom(outer.node);
  }

  /** Zooms to the cluster of a point, and highlights the point. */
  private async jump(point: number): Promise<void> {
    try {
      const path = await this.source.path(point);
      for (const crumb of path) this.names.set(crumb.node, crumb.name);
      const around = path.at(-2) ?? path.at(-1)!;
      this.zoom(around.node, point);
    } catch (error) {
      this.fail(error);
    }
  }

  private toggle(node: number, name?: string): void {
    const at = this.state.selected.indexOf(node);
    if (at >= 0) this.state.selected.splice(at, 1);
    else this.state.selected.push(node);
    if (name !== undefined) this.names.set(node, name);
    writeState(this.state, false);
    this.stage.selected = new Set(this.state.selected);
    this.stage.redraw();
    this.panel.drawSelection(this.selection());
    void this.showDetails(node);
  }

  private selection(): Map<number, string> {
    return new Map(this.state.selected.map((node) => [node, this.names.get(node) ?? `node ${node}`]));
  }

  private async loadName(node: number): Promise<void> {
    const path = await this.source.path(node);
    this.names.set(node, path.at(-1)!.name);
  }

  private drawPath(view: View): void {
    const steps = view.path.map((crumb, i) => {
      const last = i === view.path.length - 1;
      const name = i === 0 ? this.run.title : crumb.name;
      const step = create("button", { type: "button", dir: "auto", title: `${name}: ${formatCount(crumb.size, "point")}`, click: () => this.zoom(crumb.node) }, name);
      if (last) step.setAttribute("aria-current", "page");
      return create("li", {}, step);
    });
    getById("crumbs").replaceChildren(...steps);
  }

  /** The numbers of clusters at the positions of the slider: those that fit the canvas, and the one in the view. */
  private steps(): number[] {
    const { steps = [], clusters = 1 } = this.view ?? {};
    return steps.filter((step) => step <= Math.max(this.stage.maxClusters, clusters));
  }

  private updateSlider(clusters: number): void {
    const steps = this.steps();
    const at = Math.max(steps.indexOf(clusters), 0);
    const slider = getById<HTMLInputElement>("clusters");
    slider.max = String(Math.max(steps.length - 1, 0));
    slider.value = String(at);
    slider.style.setProperty("--at", `${(100 * at) / Math.max(steps.length - 1, 1)}%`);
    const text = formatCount(clusters, "cluster");
    getById("granularity").textContent = text;
    slider.setAttribute("aria-valuetext", text);
  }

  private drawLegend(view: View): void {
    const { dark } = this.stage;
    const box = getById("legend");
    const swatch = (fill: string, text: string): HTMLElement =>
      create("span", { class: "key" }, create("i", { style: `background:${fill}` }), create("span", { dir: "auto" }, text));
    if (view.legend.length) {
      const tone = dark ? "0.5 0.1" : "0.82 0.09";
      const keys = view.legend.map((name, i) => swatch(`oklch(${tone} ${nameHue(i)})`, name));
      box.replaceChildren(...keys, swatch("#8886", "other, none or mixed"));
    } else if (view.span.length) {
      const [least = 0, most = 0] = view.span;
      const stops = [0, 0.25, 0.5, 0.75, 1].map((part) => numberPaint(part, dark).fill).join(",");
      box.replaceChildren(
        create("span", {}, formatShort(least)),
        create("i", { class: "scale", style: `background:linear-gradient(90deg,${stops})` }),
        create("span", {}, `${formatShort(most)} (means)`),
      );
    } else {
      box.replaceChildren();
    }
  }

  private fail(error: unknown): void {
    showError(error);
  }
}

const formatShort = (value: number): string => Number(value.toPrecision(3)).toLocaleString("en");

function showError(error: unknown): void {
  const message = getById("message");
  message.textContent = error instanceof Error ? error.message : String(error);
  message.hidden = false;
}

async function main(): Promise<void> {
  const data = document.getElementById("agglo-data");
  const source: Source = data ? new EmbeddedSource(JSON.parse(data.textContent!) as Embedded) : new ServerSource();
  const explorer = new Explorer(source, await source.run());
  Object.assign(window, { agglo: explorer });
  await explorer.start();
}

main().catch(showError);
