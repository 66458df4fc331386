import { formatNumber } from "./dom";
import { MAX_CLUSTERS } from "./state";
import type { Box, Crumb, Details, Item, Items, Run, Source, View } from "./types";

/** The data of a self-contained page: the top of a tree. */
export interface Embedded {
  run: Run;
  boxes: Box[];
  /** One entry per box: the order in which boxes are split (largest first), and whether it may enclose others. */
  limits: number[];
  kept: boolean[];
  /** One entry per box: its height, its terms, and points that represent it. */
  heights: number[];
  terms: string[][];
  examples: number[][];
  /** The points in the file. */
  items: Item[];
  origin: number | null;
}

const STEP = 1.1; // smallest ratio of the numbers of clusters of two positions of the slider

/** Computes responses from the data in the page, for pages without a server. */
export class EmbeddedSource implements Source {
  readonly note: string;
  readonly formats = ["csv"] as const;
  private readonly children: number[][];
  private readonly positions = new Map<number, number>();
  private readonly points = new Map<number, Item>();

  constructor(private readonly data: Embedded) {
    this.children = data.boxes.map(() => []);
    data.boxes.forEach((box, i) => {
      if (box.parent >= 0) this.children[box.parent]!.push(i);
      if (box.node >= 0) this.positions.set(box.node, i);
    });
    for (const item of data.items) this.points.set(item.point, item);
    const { points, nodes } = data.run;
    const clusters = data.boxes.filter((box) => box.node >= points).length;
    const [all, items] = [nodes - points, data.items.length];
    const parts = [clusters < all ? `the ${formatNumber(clusters)} coarsest of ${formatNumber(all)} clusters` : "all clusters"];
    if (items < points) parts.push(`${formatNumber(items)} of ${formatNumber(points)} items`);
    this.note = clusters < all || items < points ? `This page has only ${parts.join(" and ")}.` : "";
  }

  run = async () => this.data.run;

  view = async (node: number, clusters: number): Promise<View> => {
    const { boxes, kept } = this.data;
    const first = this.positionOf(node);
    const { order, steps } = this.splitBoxes(first);
    const distance = (step: { clusters: number }): number => Math.abs(Math.log(step.clusters / clusters));
    const step = steps.reduce((best, other) => (distance(other) < distance(best) ? other : best));
    const split = new Set(order.slice(0, step.splits));
    const found: Box[] = [{ ...boxes[first]!, parent: -1 }];
    const open: [number, number][] = [[first, 0]]; // position in the file, position in the view
    for (const [from, to] of open) {
      const pending = split.has(from) ? [...this.children[from]!] : [];
      for (let i = 0; i < pending.length; i++) {
        const part = pending[i]!;
        if (split.has(part) && !kept[part]) {
          pending.push(...this.children[part]!);
        } else {
          found.push({ ...boxes[part]!, name: this.nameInside(part, found[to]!.name), parent: to });
          open.push([part, found.length - 1]);
        }
      }
    }
    // A cluster whose parts are not in the page is drawn as one box.
    if (found.length === 1) found.push({ ...found[0]!, parent: 0 });
    const numbers = steps.map((entry) => entry.clusters);
    return { node, clusters: step.clusters, steps: numbers, path: await this.path(node), boxes: found, legend: [], span: [] };
  };

  /** Returns the name of a box; if the box around it has the same name, other terms or an example. */
  private nameInside(box: number, around: string): string {
    const { name } = this.data.boxes[box]!;
    if (name !== around) return name;
    const terms = this.data.terms[box]!.filter((term) => !around.includes(term)).slice(0, 3);
    return terms.join(", ") || (this.points.get(this.data.examples[box]![0]!)?.text ?? name);
  }

  /** Splits boxes below a box in their order; the same as split_nodes and thin_steps in agglo/explore/view.py. */
  private splitBoxes(first: number): { order: number[]; steps: { clusters: number; splits: number }[] } {
    const { limits } = this.data;
    const order: number[] = [];
    const steps: { clusters: number; splits: number }[] = [];
    const waiting = this.children[first]!.length ? [first] : [];
    let clusters = 1;
    while (waiting.length && clusters < MAX_CLUSTERS) {
      const value = Math.max(...waiting.map((box) => limits[box]!));
      // Boxes of equal limits are split together.
      for (let at = waiting.findIndex((box) => limits[box] === value); at >= 0; at = waiting.findIndex((box) => limits[box] === value)) {
        const [box] = waiting.splice(at, 1);
        const children = this.children[box!]!;
        order.push(box!);
        clusters += children.length - 1;
        waiting.push(...children.filter((child) => this.children[child]!.length));
      }
      if (!steps.length || clusters >= STEP * steps.at(-1)!.clusters) steps.push({ clusters, splits: order.length });
    }
    return { order, steps: steps.length ? steps : [{ clusters, splits: 0 }] };
  }

  details = async (node: number): Promise<Details> => {
    const { boxes, heights, terms, examples, origin } = this.data;
    const item = this.points.get(node);
    const i = this.positions.get(node);
    if (i === undefined) {
      if (!item) throw new Error(`This file does not hold node ${node}.`);
      return {
        ...{ node, name: item.text, size: 1, occurrences: item.count, round: 0, height: 0 },
        ...{ cohesion: origin, clusters: 0, terms: [], examples: [item], path: await this.path(node) },
      };
    }
    const box = boxes[i]!;
    return {
      ...{ node, name: box.name, size: box.size, round: box.round, height: heights[i]!, terms: terms[i]! },
      occurrences: box.size,
      cohesion: origin === null ? null : origin - heights[i]!,
      clusters: this.children[i]!.length,
      examples: examples[i]!.map((point) => this.points.get(point)!),
      path: await this.path(node),
    };
  };

  items = async (node: number, offset: number, limit: number): Promise<Items> => {
    const all = this.pointsOf(node);
    return { total: all.length, items: all.slice(offset, offset + limit) };
  };

  search = async (text: string): Promise<Items> => {
    const wanted = text.trim().toLowerCase();
    const found = wanted ? this.data.items.filter((item) => item.text.toLowerCase().includes(wanted)) : [];
    return { total: found.length, items: found.slice(0, 30) };
  };

  path = async (node: number): Promise<Crumb[]> => {
    const { boxes, kept } = this.data;
    const steps: Crumb[] = [];
    let i = this.positions.get(node) ?? -1;
    if (i < 0) {
      const item = this.points.get(node);
      if (item) steps.push({ node, name: item.text, size: 1, round: 0 });
      // Find the innermost box that has the point as an example.
      for (let k = boxes.length - 1; k >= 0 && i < 0; k--) if (this.data.examples[k]!.includes(node)) i = k;
    }
    for (; i >= 0; i = boxes[i]!.parent) {
      const { node, name, size, round } = boxes[i]!;
      if (kept[i] || !steps.length) steps.unshift({ node, name, size, round });
    }
    return steps;
  };

  save = async (nodes: number[], _format: "csv" | "parquet"): Promise<Blob> => {
    const rows = [["cluster", "name", "point", "text", "count"]];
    for (const node of nodes) {
      const name = this.data.boxes[this.positionOf(node)]!.name;
      for (const item of this.pointsOf(node)) {
        rows.push([String(node), name, String(item.point), item.text, String(item.count)]);
      }
    }
    const quoted = rows.map((row) => row.map((cell) => `"${guardFormula(cell).replaceAll('"', '""')}"`).join(","));
    return new Blob([quoted.join("\n") + "\n"], { type: "text/csv" });
  };

  private positionOf(node: number): number {
    const i = this.positions.get(node);
    if (i === undefined) throw new Error(`This file does not hold node ${node}.`);
    return i;
  }

  /** Returns the points of a node that are in the file. */
  private pointsOf(node: number): Item[] {
    const i = this.positions.get(node);
    if (i === undefined) return [this.points.get(node)!];
    const found = new Set(this.data.examples[i]);
    for (const child of this.children[i]!) {
      const inner = this.data.boxes[child]!.node;
      if (inner >= 0) for (const item of this.pointsOf(inner)) found.add(item.point);
    }
    return [...found].map((point) => this.points.get(point)!);
  }
}

/** Prefixes an apostrophe to a text that a spreadsheet would run as a formula; see agglo/explore/export.py. */
function guardFormula(text: string): string {
  return /^[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text;
}
