import "./app.css";
import { nameHue, numberPaint } from "./colours";
import { byId, counted, element, number, settled } from "./dom";
import { type Embedded, Page } from "./embedded";
import type { Mode, Placed } from "./layout";
import { Panel } from "./panel";
import { Search } from "./search";
import { Server } from "./server";
import { Stage } from "./stage";
import { readState, type State, writeState } from "./state";
import { Theme } from "./theme";
import type { Run, Source, View } from "./types";

/** The page: a state, what is shown of it, and what readers do to it. */
class Explorer {
  private readonly stage: Stage;
  private readonly panel: Panel;
  private readonly search: Search;
  private readonly theme: Theme;
  private readonly names = new Map<number, string>();
  private state: State;
  private view: View | undefined;
  private asked = 0;

  constructor(
    private readonly source: Source,
    private readonly run: Run,
  ) {
    document.title = `${run.title} – agglo explore`;
    this.state = readState(run);
    this.stage = new Stage({
      point: (node) => void this.tell(node),
      open: (box) => this.open(box),
      out: () => this.out(),
      toggle: (node, name) => this.toggle(node, name),
    });
    const actions = {
      zoom: (node: number) => this.zoom(node),
      jump: (point: number) => void this.jump(point),
      toggle: (node: number) => this.toggle(node, this.names.get(node)),
      fail: (error: unknown) => this.fail(error),
    };
    this.panel = new Panel(source, run, actions);
    this.search = new Search(source, actions.jump, actions.fail);
    this.theme = new Theme(() => this.themed());
    this.controls();
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
    this.themed();
  }

  async start(): Promise<void> {
    await Promise.all(this.state.selected.map((node) => this.learn(node)));
    await this.refresh();
  }

  /** Where a node is on the screen; for those who drive the page by program. */
  rectangle = (node: number): DOMRect | undefined => this.stage.rectangle(node);

  private themed(): void {
    if (!this.theme) return; // not made yet
    this.stage.dark = this.theme.dark;
    this.stage.redraw();
    if (this.view) this.legend(this.view);
  }

  private controls(): void {
    const { rounds, columns } = this.run;
    const slider = byId<HTMLInputElement>("round");
    slider.max = String(rounds.length - 1);
    const later = settled(() => void this.refresh(), 60);
    slider.addEventListener("input", () => {
      this.state.round = rounds[Number(slider.value)]!.round;
      this.granularity();
      writeState(this.state, false);
      later();
    });
    const modes: [Mode, string][] = [["boxes", "Boxes"], ["icicle", "Icicle"]];
    for (const [mode, text] of modes) {
      const choice = element("input", { type: "radio", name: "mode", value: mode });
      choice.checked = this.state.mode === mode;
      choice.addEventListener("change", () => {
        this.state.mode = this.stage.mode = mode;
        writeState(this.state, false);
        this.stage.lay();
        this.stage.redraw();
      });
      byId("mode").append(element("label", {}, choice, element("span", {}, text)));
    }
    const colour = byId<HTMLSelectElement>("colour");
    colour.append(element("option", { value: "" }, "Branch"), ...columns.map((name) => element("option", { value: name }, name)));
    colour.parentElement!.hidden = !columns.length;
    colour.value = this.state.colour;
    colour.addEventListener("change", () => {
      this.state.colour = colour.value;
      writeState(this.state, false);
      void this.refresh();
    });
    const share = byId<HTMLButtonElement>("share");
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

  /** Asks for the view of the state, and shows it. */
  private async refresh(told = this.state.node): Promise<void> {
    const asked = ++this.asked;
    const { node, round, mode, colour } = this.state;
    try {
      const view = await this.source.view(node, round, colour);
      if (asked !== this.asked) return;
      byId("message").hidden = true;
      this.view = view;
      for (const box of view.boxes) if (box.node >= 0) this.names.set(box.node, box.name);
      for (const crumb of view.path) this.names.set(crumb.node, crumb.name);
      Object.assign(this.stage, { mode, colour, selected: new Set(this.state.selected) });
      this.stage.show(view);
      this.crumbs(view);
      this.granularity();
      this.legend(view);
      this.panel.drawSelection(this.selection());
      await this.tell(told === this.run.root ? node : told);
      document.body.dataset.shown = `${node}/${round}`;
    } catch (error) {
      this.fail(error);
    }
  }

  private async tell(node: number): Promise<void> {
    try {
      await this.panel.show(node, this.state.node, this.selection());
    } catch (error) {
      this.fail(error);
    }
  }

  private open(box: Placed): void {
    const { node, round } = box.box;
    if (node < 0) {
      const around = this.view!.boxes[box.parent]!;
      if (around.node !== this.state.node) this.zoom(around.node);
      else void this.tell(around.node);
    } else if (round === 0) {
      this.stage.marked = node;
      this.stage.redraw();
      void this.tell(node);
    } else {
      this.zoom(node);
    }
  }

  private zoom(node: number, marked = -1): void {
    this.stage.marked = marked;
    if (node !== this.state.node) {
      this.state.node = node;
      writeState(this.state, true);
    }
    void this.refresh(marked >= 0 ? marked : node);
  }

  private out(): void {
    const path = this.view?.path ?? [];
    const outer = path.at(-2);
    if (outer) this.zoom(outer.node);
  }

  /** Goes to the cluster that a point is in, and points at it. */
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
    void this.tell(node);
  }

  private selection(): Map<number, string> {
    return new Map(this.state.selected.map((node) => [node, this.names.get(node) ?? `node ${node}`]));
  }

  private async learn(node: number): Promise<void> {
    const path = await this.source.path(node);
    this.names.set(node, path.at(-1)!.name);
  }

  private crumbs(view: View): void {
    const steps = view.path.map((crumb, i) => {
      const last = i === view.path.length - 1;
      const name = i === 0 ? this.run.title : crumb.name;
      const step = element("button", { type: "button", dir: "auto", title: `${name}: ${counted(crumb.size, "point")}`, click: () => this.zoom(crumb.node) }, name);
      if (last) step.setAttribute("aria-current", "page");
      return element("li", {}, step);
    });
    byId("crumbs").replaceChildren(...steps);
  }

  private granularity(): void {
    const { rounds } = this.run;
    const found = rounds.findIndex((step) => step.round >= this.state.round);
    const at = found < 0 ? rounds.length - 1 : found;
    const step = rounds[at]!;
    const slider = byId<HTMLInputElement>("round");
    slider.value = String(at);
    slider.style.setProperty("--at", `${(100 * at) / Math.max(rounds.length - 1, 1)}%`);
    const said = step.round === 0 ? `single items, ${number(step.clusters)}` : counted(step.clusters, "cluster");
    byId("granularity").textContent = said;
    slider.setAttribute("aria-valuetext", `round ${step.round}, ${said}`);
    slider.title = `Round ${step.round} of ${rounds.at(-1)!.round}`;
  }

  private legend(view: View): void {
    const { dark } = this.stage;
    const box = byId("legend");
    const swatch = (fill: string, text: string): HTMLElement =>
      element("span", { class: "key" }, element("i", { style: `background:${fill}` }), element("span", { dir: "auto" }, text));
    if (view.legend.length) {
      const tone = dark ? "0.5 0.1" : "0.82 0.09";
      const keys = view.legend.map((name, i) => swatch(`oklch(${tone} ${nameHue(i)})`, name));
      box.replaceChildren(...keys, swatch("#8886", "other, none or mixed"));
    } else if (view.span.length) {
      const [least = 0, most = 0] = view.span;
      const stops = [0, 0.25, 0.5, 0.75, 1].map((part) => numberPaint(part, dark).fill).join(",");
      box.replaceChildren(
        element("span", {}, short(least)),
        element("i", { class: "scale", style: `background:linear-gradient(90deg,${stops})` }),
        element("span", {}, `${short(most)} (means)`),
      );
    } else {
      box.replaceChildren();
    }
  }

  private fail(error: unknown): void {
    show(error);
  }
}

const short = (value: number): string => Number(value.toPrecision(3)).toLocaleString("en");

function show(error: unknown): void {
  const message = byId("message");
  message.textContent = error instanceof Error ? error.message : String(error);
  message.hidden = false;
}

async function main(): Promise<void> {
  const data = document.getElementById("agglo-data");
  const source: Source = data ? new Page(JSON.parse(data.textContent!) as Embedded) : new Server();
  const explorer = new Explorer(source, await source.run());
  Object.assign(window, { agglo: explorer });
  await explorer.start();
}

main().catch(show);
