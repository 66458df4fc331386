import { byId, counted } from "./dom";
import { draw, type Look } from "./draw";
import { hit, type Mode, type Placed, place } from "./layout";
import type { View } from "./types";

export interface Moves {
  /** A box was pointed out: to be told of. */
  point(node: number): void;
  /** A box was opened. */
  open(placed: Placed): void;
  /** One step out. */
  out(): void;
  toggle(node: number, name: string): void;
}

const QUICK = 260; // milliseconds that a zoom takes to be seen

/** The canvas: draws a view, and says what readers do to it. */
export class Stage {
  private readonly canvas = byId<HTMLCanvasElement>("view");
  private readonly frame = byId<HTMLElement>("frame");
  private readonly tip = byId<HTMLElement>("tip");
  private readonly live = byId<HTMLElement>("live");
  private readonly ink = this.canvas.getContext("2d")!;
  private view: View | undefined;
  private placed: Placed[] = [];
  private hover = -1;
  private focus = -1;
  private still = matchMedia("(prefers-reduced-motion: reduce)");
  private frameAsked = 0;
  mode: Mode = "boxes";
  dark = false;
  colour = "";
  marked = -1;
  selected = new Set<number>();

  constructor(private readonly moves: Moves) {
    new ResizeObserver(() => this.resize()).observe(this.frame);
    this.canvas.addEventListener("pointermove", (event) => this.pointed(event));
    this.canvas.addEventListener("pointerleave", () => this.over(undefined));
    this.canvas.addEventListener("click", (event) => this.clicked(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => {
      this.focus = -1;
      this.redraw();
    });
  }

  /** Shows a view; if one of its nodes was seen before, or the other way round, by zooming. */
  show(view: View): void {
    const before = this.view;
    const old = this.placed;
    this.view = view;
    this.hover = this.focus = -1;
    this.tip.hidden = true;
    this.lay();
    this.canvas.setAttribute("aria-label", `Clusters in ${view.path.at(-1)?.name ?? "the tree"}`);
    if (!before || before.node === view.node || this.still.matches) {
      this.redraw();
      return;
    }
    const into = old.find((box) => box.box.node === view.node);
    const outOf = this.placed.find((box) => box.box.node === before.node);
    this.zoom(into, outOf);
  }

  /** Draws again, with the next picture of the screen. */
  redraw(): void {
    if (this.frameAsked) return;
    this.frameAsked = requestAnimationFrame(() => {
      this.frameAsked = 0;
      this.paint();
    });
  }

  /** Where a node is drawn, in pixels of the page; for whom it is drawn is left open. */
  rectangle(node: number): DOMRect | undefined {
    const box = this.placed.find((entry) => entry.box.node === node && !entry.hidden);
    if (!box) return undefined;
    const at = this.canvas.getBoundingClientRect();
    return new DOMRect(at.x + box.x, at.y + box.y, box.width, box.height);
  }

  lay(): void {
    if (this.view) this.placed = place(this.view, this.mode, this.frame.clientWidth, this.frame.clientHeight);
  }

  private resize(): void {
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.frame.clientWidth * scale);
    this.canvas.height = Math.round(this.frame.clientHeight * scale);
    this.lay();
    this.paint();
  }

  private paint(): void {
    if (!this.view) return;
    this.clear();
    const { mode, dark, colour, hover, focus, selected, marked } = this;
    const look: Look = { mode, dark, colour, hover, focus, selected, marked };
    draw(this.ink, this.placed, this.view, look);
  }

  private clear(): void {
    const scale = window.devicePixelRatio || 1;
    this.ink.setTransform(1, 0, 0, 1, 0, 0);
    this.ink.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.ink.setTransform(scale, 0, 0, scale, 0, 0);
  }

  private zoom(into: Placed | undefined, outOf: Placed | undefined): void {
    const whole = { x: 0, y: 0, width: this.frame.clientWidth, height: this.frame.clientHeight };
    const old = new OffscreenCanvas(Math.max(this.canvas.width, 1), Math.max(this.canvas.height, 1));
    if (this.canvas.width && this.canvas.height) old.getContext("2d")!.drawImage(this.canvas, 0, 0);
    this.paint();
    const fresh = new OffscreenCanvas(old.width, old.height);
    if (this.canvas.width && this.canvas.height) fresh.getContext("2d")!.drawImage(this.canvas, 0, 0);
    const asked = performance.now();
    const step = (now: number): void => {
      const time = Math.min(1, Math.max(0, (now - asked) / QUICK));
      const part = 1 - (1 - time) ** 3;
      this.frameAsked = time < 1 ? requestAnimationFrame(step) : 0;
      if (time === 1) {
        this.paint();
        return;
      }
      this.clear();
      // The box that is common to both pictures grows, or shrinks, from where it was to where it is.
      const inner = into ?? outOf;
      const target = inner ? { x: inner.x, y: inner.y, width: inner.width, height: inner.height } : whole;
      const now_ = between(into ? target : whole, into ? whole : target, part);
      this.ink.globalAlpha = into ? 1 - part : part;
      stretched(this.ink, into ? old : fresh, whole, target, now_);
      this.ink.globalAlpha = into ? part : 1 - part;
      this.ink.drawImage(into ? fresh : old, now_.x, now_.y, now_.width, now_.height);
      this.ink.globalAlpha = 1;
    };
    cancelAnimationFrame(this.frameAsked);
    this.frameAsked = requestAnimationFrame(step);
  }

  private at(event: MouseEvent): Placed | undefined {
    return hit(this.placed, event.offsetX, event.offsetY);
  }

  private pointed(event: PointerEvent): void {
    this.over(this.at(event), event);
  }

  private over(box: Placed | undefined, event?: PointerEvent): void {
    const index = box?.index ?? -1;
    this.canvas.style.cursor = box ? "pointer" : "default";
    if (box && event) {
      this.tip.replaceChildren(Object.assign(document.createElement("strong"), { textContent: box.box.name, dir: "auto" }));
      this.tip.append(box.box.node < 0 ? counted(box.box.size, "point") : this.what(box));
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

  private what(box: Placed): string {
    return box.box.round === 0 ? "a single item" : counted(box.box.size, "point");
  }

  private clicked(event: MouseEvent): void {
    const box = this.at(event);
    if (!box) return;
    if (event.shiftKey || event.ctrlKey || event.metaKey) {
      if (box.box.node >= 0) this.moves.toggle(box.box.node, box.box.name);
    } else {
      this.moves.open(box);
    }
  }

  private key(event: KeyboardEvent): void {
    const box = this.placed[this.focus];
    const beside = box ? this.placed[box.parent]!.children : (this.placed[0]?.children ?? []);
    const at = box ? beside.indexOf(box.index) : -1;
    const go: Record<string, () => void> = {
      ArrowRight: () => this.look(beside[Math.min(at + 1, beside.length - 1)]),
      ArrowLeft: () => this.look(beside[Math.max(at - 1, 0)]),
      ArrowDown: () => this.look(box ? (box.children[0] ?? box.index) : beside[0]),
      ArrowUp: () => this.look(box && box.parent > 0 ? box.parent : box?.index),
      Enter: () => box && this.moves.open(box),
      " ": () => box && box.box.node >= 0 && this.moves.toggle(box.box.node, box.box.name),
      Backspace: () => this.moves.out(),
      Escape: () => this.moves.out(),
    };
    const move = go[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  }

  private look(index: number | undefined): void {
    const box = index === undefined ? undefined : this.placed[index];
    if (!box) return;
    this.focus = box.index;
    const beside = this.placed[box.parent]!.children;
    this.live.textContent = `${box.box.name}, ${this.what(box)}, ${beside.indexOf(box.index) + 1} of ${beside.length}`;
    if (box.box.node >= 0) this.moves.point(box.box.node);
    this.redraw();
  }
}

interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

function between(from: Rectangle, to: Rectangle, part: number): Rectangle {
  const mix = (a: number, b: number): number => a + (b - a) * part;
  return {
    x: mix(from.x, to.x),
    y: mix(from.y, to.y),
    width: mix(from.width, to.width),
    height: mix(from.height, to.height),
  };
}

/** Draws a picture of ``whole`` so that its part ``inner`` comes to lie on ``now``. */
function stretched(ink: CanvasRenderingContext2D, picture: OffscreenCanvas, whole: Rectangle, inner: Rectangle, now: Rectangle): void {
  const [sx, sy] = [now.width / Math.max(inner.width, 1), now.height / Math.max(inner.height, 1)];
  ink.drawImage(picture, now.x - inner.x * sx, now.y - inner.y * sy, whole.width * sx, whole.height * sy);
}
