import { formatCount, getById } from "./dom";
import { draw, type Look } from "./draw";
import { findBoxAt, type Mode, type PlacedBox, layOut } from "./layout";
import type { View } from "./types";

export interface StageEvents {
  /** A box has the focus. */
  point(node: number): void;
  /** A box was opened. */
  open(box: PlacedBox): void;
  /** The reader zooms out by one step. */
  out(): void;
  toggle(node: number, name: string): void;
  /** The canvas has another size. */
  resize(): void;
}

const ZOOM_MILLISECONDS = 260; // duration of the zoom animation
const CLUSTER_AREA = 4000; // smallest mean area of a cluster in square pixels; names do not fit into smaller boxes
const FEWEST = 20; // clusters that fit any canvas

/** The canvas: draws a view, and reports clicks and keys. */
export class Stage {
  private readonly canvas = getById<HTMLCanvasElement>("view");
  private readonly frame = getById<HTMLElement>("frame");
  private readonly tip = getById<HTMLElement>("tip");
  private readonly live = getById<HTMLElement>("live");
  private readonly ink = this.canvas.getContext("2d")!;
  private view: View | undefined;
  private boxes: PlacedBox[] = [];
  private hover = -1;
  private focus = -1;
  private reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  private frameRequest = 0;
  mode: Mode = "boxes";
  dark = false;
  colour = "";
  marked = -1;
  selected = new Set<number>();

  constructor(private readonly events: StageEvents) {
    new ResizeObserver(() => this.resize()).observe(this.frame);
    this.canvas.addEventListener("pointermove", (event) => this.onPointerMove(event));
    this.canvas.addEventListener("pointerleave", () => this.setHover(undefined));
    this.canvas.addEventListener("click", (event) => this.onClick(event));
    this.canvas.addEventListener("keydown", (event) => this.onKeyDown(event));
    this.canvas.addEventListener("blur", () => {
      this.focus = -1;
      this.redraw();
    });
  }

  /** Shows a view. If the old or the new view contains the node of the other, the transition is a zoom. */
  show(view: View): void {
    const before = this.view;
    const old = this.boxes;
    this.view = view;
    this.hover = this.focus = -1;
    this.tip.hidden = true;
    this.layOut();
    this.canvas.setAttribute("aria-label", `Clusters in ${view.path.at(-1)?.name ?? "the tree"}`);
    if (!before || before.node === view.node || this.reducedMotion.matches) {
      this.redraw();
      return;
    }
    const into = old.find((box) => box.box.node === view.node);
    const outOf = this.boxes.find((box) => box.box.node === before.node);
    this.zoom(into, outOf);
  }

  /** Draws again in the next animation frame. */
  redraw(): void {
    if (this.frameRequest) return;
    this.frameRequest = requestAnimationFrame(() => {
      this.frameRequest = 0;
      this.paint();
    });
  }

  /** Returns the position of a node in pixels of the page, if it is drawn. */
  rectangle(node: number): DOMRect | undefined {
    const box = this.boxes.find((entry) => entry.box.node === node && !entry.hidden);
    if (!box) return undefined;
    const at = this.canvas.getBoundingClientRect();
    return new DOMRect(at.x + box.x, at.y + box.y, box.width, box.height);
  }

  /** The number of clusters of which most names are readable. */
  get maxClusters(): number {
    return Math.max(Math.floor((this.frame.clientWidth * this.frame.clientHeight) / CLUSTER_AREA), FEWEST);
  }

  layOut(): void {
    if (this.view) this.boxes = layOut(this.view, this.mode, this.frame.clientWidth, this.frame.clientHeight);
  }

  private resize(): void {
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.frame.clientWidth * scale);
    this.canvas.height = Math.round(this.frame.clientHeight * scale);
    this.layOut();
    this.paint();
    this.events.resize();
  }

  private paint(): void {
    if (!this.view) return;
    this.clear();
    const { mode, dark, colour, hover, focus, selected, marked } = this;
    const look: Look = { mode, dark, colour, hover, focus, selected, marked };
    draw(this.ink, this.boxes, this.view, look);
  }

  private clear(): void {
    const scale = window.devicePixelRatio || 1;
    this.ink.setTransform(1, 0, 0, 1, 0, 0);
    this.ink.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.ink.setTransform(scale, 0, 0, scale, 0, 0);
  }

  private zoom(into: PlacedBox | undefined, outOf: PlacedBox | undefined): void {
    const canvasArea = { x: 0, y: 0, width: this.frame.clientWidth, height: this.frame.clientHeight };
    const old = new OffscreenCanvas(Math.max(this.canvas.width, 1), Math.max(this.canvas.height, 1));
    if (this.canvas.width && this.canvas.height) old.getContext("2d")!.drawImage(this.canvas, 0, 0);
    this.paint();
    const fresh = new OffscreenCanvas(old.width, old.height);
    if (this.canvas.width && this.canvas.height) fresh.getContext("2d")!.drawImage(this.canvas, 0, 0);
    const started = performance.now();
    const step = (now: number): void => {
      const time = Math.min(1, Math.max(0, (now - started) / ZOOM_MILLISECONDS));
      const part = 1 - (1 - time) ** 3;
      this.frameRequest = time < 1 ? requestAnimationFrame(step) : 0;
      if (time === 1) {
        this.paint();
        return;
      }
      this.clear();
      // The box that both pictures contain moves from its old to its new position.
      const shared = into ?? outOf;
      const target = shared ? { x: shared.x, y: shared.y, width: shared.width, height: shared.height } : canvasArea;
      const current = interpolate(into ? target : canvasArea, into ? canvasArea : target, part);
      this.ink.globalAlpha = into ? 1 - part : part;
      drawStretched(this.ink, into ? old : fresh, canvasArea, target, current);
      this.ink.globalAlpha = into ? part : 1 - part;
      this.ink.drawImage(into ? fresh : old, current.x, current.y, current.width, current.height);
      this.ink.globalAlpha = 1;
    };
    cancelAnimationFrame(this.frameRequest);
    this.frameRequest = requestAnimationFrame(step);
  }

  private at(event: MouseEvent): PlacedBox | undefined {
    return findBoxAt(this.boxes, event.offsetX, event.offsetY);
  }

  private onPointerMove(event: PointerEvent): void {
    this.setHover(this.at(event), event);
  }

  private setHover(box: PlacedBox | undefined, event?: PointerEvent): void {
    const index = box?.index ?? -1;
    this.canvas.style.cursor = box ? "pointer" : "default";
    if (box && event) {
      this.tip.replaceChildren(Object.assign(document.createElement("strong"), { textContent: box.box.name, dir: "auto" }));
      this.tip.append(box.box.node < 0 ? formatCount(box.box.size, "point") : this.describe(box));
      this.tip.hidden = false;
      const right = event.offsetX > this.frame.clientWidth / 2;
      const low = event.offsetY > this.frame.clientHeight / 2;
      this.tip.style.transform = `translate(${event.offsetX}px, ${event.offsetY}px) translate(${right ? "calc(-100% - 12px)" : "14px"}, ${low ? "calc(-100% - 10px)" : "16px"})`;
    } else {
      this.tip.hidden = true;
    }
    if (index === this.hover) return;
    this.hover = index;
    this.redraw();
  }

  private describe(box: PlacedBox): string {
    return box.box.round === 0 ? "a single item" : formatCount(box.box.size, "point");
  }

  private onClick(event: MouseEvent): void {
    const box = this.at(event);
    if (!box) return;
    if (event.shiftKey || event.ctrlKey || event.metaKey) {
      if (box.box.node >= 0) this.events.toggle(box.box.node, box.box.name);
    } else {
      this.events.open(box);
    }
  }

  private onKeyDown(event: KeyboardEvent): void {
    const box = this.boxes[this.focus];
    const siblings = box ? this.boxes[box.parent]!.children : (this.boxes[0]?.children ?? []);
    const at = box ? siblings.indexOf(box.index) : -1;
    const go: Record<string, () => void> = {
      ArrowRight: () => this.setFocus(siblings[Math.min(at + 1, siblings.length - 1)]),
      ArrowLeft: () => this.setFocus(siblings[Math.max(at - 1, 0)]),
      ArrowDown: () => this.setFocus(box ? (box.children[0] ?? box.index) : siblings[0]),
      ArrowUp: () => this.setFocus(box && box.parent > 0 ? box.parent : box?.index),
      Enter: () => box && this.events.open(box),
      " ": () => box && box.box.node >= 0 && this.events.toggle(box.box.node, box.box.name),
      Backspace: () => this.events.out(),
      Escape: () => this.events.out(),
    };
    const move = go[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  }

  private setFocus(index: number | undefined): void {
    const box = index === undefined ? undefined : this.boxes[index];
    if (!box) return;
    this.focus = box.index;
    const siblings = this.boxes[box.parent]!.children;
    this.live.textContent = `${box.box.name}, ${this.describe(box)}, ${siblings.indexOf(box.index) + 1} of ${siblings.length}`;
    if (box.box.node >= 0) this.events.point(box.box.node);
    this.redraw();
  }
}

interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

function interpolate(from: Rectangle, to: Rectangle, part: number): Rectangle {
  const mix = (a: number, b: number): number => a + (b - a) * part;
  return {
    x: mix(from.x, to.x),
    y: mix(from.y, to.y),
    width: mix(from.width, to.width),
    height: mix(from.height, to.height),
  };
}

/** Draws a picture of `canvasArea` so that its part `shared` covers `now`. */
function drawStretched(ink: CanvasRenderingContext2D, picture: OffscreenCanvas, canvasArea: Rectangle, shared: Rectangle, now: Rectangle): void {
  const [sx, sy] = [now.width / Math.max(shared.width, 1), now.height / Math.max(shared.height, 1)];
  ink.drawImage(picture, now.x - shared.x * sx, now.y - shared.y * sy, canvasArea.width * sx, canvasArea.height * sy);
}
