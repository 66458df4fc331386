import { type HierarchyRectangularNode, hierarchy, partition, treemap, treemapSquarify } from "d3-hierarchy";
import type { Box, View } from "./types";

export type Mode = "boxes" | "icicle";

interface Datum {
  box: Box;
  inside: Datum[];
}

/** A box and where it is drawn. */
export interface Placed {
  box: Box;
  /** Its place in the view, which is that in the list of what is placed. */
  index: number;
  parent: number;
  children: number[];
  /** Whether it is in a box that is closed. */
  hidden: boolean;
  depth: number;
  /** Which of the outermost boxes it is in. */
  branch: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export const HEADER = 22;
const LEVELS = 4; // of an icicle that are seen at once

/** Boxes in the order of the view, each inside the one that it is part of. */
export function place(view: View, mode: Mode, width: number, height: number): Placed[] {
  const data: Datum[] = view.boxes.map((box) => ({ box, inside: [] }));
  for (const datum of data) if (datum.box.parent >= 0) data[datum.box.parent]!.inside.push(datum);
  const root = hierarchy(data[0]!, (datum) => datum.inside)
    // What is inside a box sums up to it, so only the innermost count.
    .sum((datum) => (datum.inside.length ? 0 : datum.box.size))
    .sort((a, b) => Number(a.data.box.node < 0) - Number(b.data.box.node < 0) || b.value! - a.value!);
  const laid = mode === "boxes" ? boxes(root, width, height) : icicle(root, width, height);
  const nodes = new Map(laid.descendants().map((node) => [node.data, node]));
  const index = new Map(data.map((datum, i) => [datum, i]));
  const placed: Placed[] = data.map((datum, i) => {
    const node = nodes.get(datum)!;
    const outer = node.ancestors().at(-2) ?? node;
    return {
      box: datum.box,
      hidden: false,
      index: i,
      parent: datum.box.parent,
      children: (node.children ?? []).map((child) => index.get(child.data)!),
      depth: node.depth,
      branch: Math.max(root.children?.findIndex((child) => child.data === outer.data) ?? 0, 0),
      x: node.x0,
      y: node.y0,
      width: Math.max(node.x1 - node.x0, 0),
      height: Math.max(node.y1 - node.y0, 0),
    };
  });
  if (mode === "boxes") close(placed, view.legend.length > 0);
  return placed;
}

/** Closes boxes that are too small for what is in them to be read; boxes come after those that they are in. */
function close(placed: Placed[], names: boolean): void {
  for (const box of placed) {
    box.hidden = box.parent >= 0 && (placed[box.parent]!.hidden || !placed[box.parent]!.children.length);
    const small = box.width < 104 || box.height < 72;
    if (box.depth > 1 && box.children.length && (small || box.hidden)) {
      if (!box.hidden) box.box = { ...box.box, ...mixed(placed, box, names) };
      box.children = [];
    }
  }
}

/** What a box is coloured by, out of what those in it are. */
function mixed(placed: Placed[], box: Placed, names: boolean): { value: number | null; share: number | null } {
  const weights = new Map<number, number>();
  let [sum, all] = [0, 0];
  const add = (inner: Placed): void => {
    const { value, share, size } = inner.box;
    inner.children.forEach((child) => add(placed[child]!));
    if (inner.children.length || value === null) return;
    sum += value * size;
    all += size;
    weights.set(value, (weights.get(value) ?? 0) + (share ?? 1) * size);
  };
  add(box);
  if (!all) return { value: null, share: null };
  if (!names) return { value: sum / all, share: null };
  const [value, weight] = [...weights].reduce((best, entry) => (entry[1] > best[1] ? entry : best));
  return { value, share: weight / all };
}

function boxes(root: ReturnType<typeof hierarchy<Datum>>, width: number, height: number) {
  return treemap<Datum>()
    .tile(treemapSquarify.ratio(1.35))
    .size([width, height])
    .round(true)
    .paddingInner((node) => (node.depth === 0 ? 6 : node.depth === 1 ? 3 : 2))
    .paddingOuter((node) => (node.depth === 0 ? 0 : node.x1 - node.x0 > 60 ? 5 : 2))
    .paddingTop((node) => (node.depth === 0 ? 0 : hasHeader(node) ? HEADER : 3))(root);
}

function icicle(root: ReturnType<typeof hierarchy<Datum>>, width: number, height: number) {
  const levels = Math.min(root.height, LEVELS) || 1;
  // d3 lays levels out along y; turned, so that names can be read.
  const laid = partition<Datum>().size([height, width])(root);
  const step = width / levels;
  laid.each((node) => {
    const [top, bottom] = [node.x0, node.x1];
    node.x0 = Math.max(node.depth - 1, 0) * step;
    node.x1 = node.depth === 0 ? width : node.x0 + step - 3;
    node.y0 = top;
    node.y1 = Math.max(bottom - (bottom - top > 6 ? 2 : 0.5), top);
  });
  return laid;
}

function hasHeader(node: HierarchyRectangularNode<Datum>): boolean {
  return node.x1 - node.x0 > 46 && node.y1 - node.y0 > 44;
}

/** The innermost box at a point of the canvas, if any but the whole is there. */
export function hit(placed: Placed[], x: number, y: number): Placed | undefined {
  let found: Placed | undefined;
  for (const box of placed) {
    if (box.index === 0 || box.hidden || x < box.x || y < box.y || x >= box.x + box.width || y >= box.y + box.height) continue;
    if (!found || box.depth > found.depth) found = box;
  }
  return found;
}
