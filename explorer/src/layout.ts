import { type HierarchyRectangularNode, hierarchy, partition, treemap, treemapSquarify } from "d3-hierarchy";
import type { Box, View } from "./types";

export type Mode = "boxes" | "icicle";

interface Datum {
  box: Box;
  children: Datum[];
}

/** A box with its position on the canvas. */
export interface PlacedBox {
  box: Box;
  /** Its position in the view, which is its position in the list of boxes. */
  index: number;
  parent: number;
  children: number[];
  /** Whether it lies in a closed box. */
  hidden: boolean;
  depth: number;
  /** The outermost box that contains it. */
  branch: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export const HEADER = 22;
const LEVELS = 4; // of an icicle that fit the canvas

/** Computes the position of every box of a view, in the order of the view. */
export function layOut(view: View, mode: Mode, width: number, height: number): PlacedBox[] {
  const data: Datum[] = view.boxes.map((box) => ({ box, children: [] }));
  for (const datum of data) if (datum.box.parent >= 0) data[datum.box.parent]!.children.push(datum);
  const root = hierarchy(data[0]!, (datum) => datum.children)
    // The sizes in a box sum up to its own, so only innermost boxes are counted.
    .sum((datum) => (datum.children.length ? 0 : datum.box.size))
    .sort((a, b) => Number(a.data.box.node < 0) - Number(b.data.box.node < 0) || b.value! - a.value!);
  const arranged = mode === "boxes" ? layOutTreemap(root, width, height) : layOutIcicle(root, width, height);
  const nodes = new Map(arranged.descendants().map((node) => [node.data, node]));
  const index = new Map(data.map((datum, i) => [datum, i]));
  const boxes: PlacedBox[] = data.map((datum, i) => {
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
  if (mode === "boxes") closeSmallBoxes(boxes, view.legend.length > 0);
  return boxes;
}

/** Closes the boxes whose content would be too small to read. A box must come after the box that contains it. */
function closeSmallBoxes(boxes: PlacedBox[], isCategory: boolean): void {
  for (const box of boxes) {
    box.hidden = box.parent >= 0 && (boxes[box.parent]!.hidden || !boxes[box.parent]!.children.length);
    const small = box.width < 104 || box.height < 72;
    if (box.depth > 1 && box.children.length && (small || box.hidden)) {
      if (!box.hidden) box.box = { ...box.box, ...combineColours(boxes, box, isCategory) };
      box.children = [];
    }
  }
}

/** Combines the colour values of the boxes inside a box. */
function combineColours(boxes: PlacedBox[], box: PlacedBox, isCategory: boolean): { value: number | null; share: number | null } {
  const weights = new Map<number, number>();
  let [sum, all] = [0, 0];
  const add = (inner: PlacedBox): void => {
    const { value, share, size } = inner.box;
    inner.children.forEach((child) => add(boxes[child]!));
    if (inner.children.length || value === null) return;
    sum += value * size;
    all += size;
    weights.set(value, (weights.get(value) ?? 0) + (share ?? 1) * size);
  };
  add(box);
  if (!all) return { value: null, share: null };
  if (!isCategory) return { value: sum / all, share: null };
  const [value, weight] = [...weights].reduce((best, entry) => (entry[1] > best[1] ? entry : best));
  return { value, share: weight / all };
}

function layOutTreemap(root: ReturnType<typeof hierarchy<Datum>>, width: number, height: number) {
  return treemap<Datum>()
    .tile(treemapSquarify.ratio(1.35))
    .size([width, height])
    .round(true)
    .paddingInner((node) => (node.depth === 0 ? 6 : node.depth === 1 ? 3 : 2))
    .paddingOuter((node) => (node.depth === 0 ? 0 : node.x1 - node.x0 > 60 ? 5 : 2))
    .paddingTop((node) => (node.depth === 0 ? 0 : hasHeader(node) ? HEADER : 3))(root);
}

function layOutIcicle(root: ReturnType<typeof hierarchy<Datum>>, width: number, height: number) {
  const levels = Math.min(root.height, LEVELS) || 1;
  // d3 lays out levels along y. Swap the axes, so that names have room.
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

/** Returns the innermost box at a position of the canvas, except the outermost one. */
export function findBoxAt(boxes: PlacedBox[], x: number, y: number): PlacedBox | undefined {
  let found: PlacedBox | undefined;
  for (const box of boxes) {
    if (box.index === 0 || box.hidden || x < box.x || y < box.y || x >= box.x + box.width || y >= box.y + box.height) continue;
    if (!found || box.depth > found.depth) found = box;
  }
  return found;
}
