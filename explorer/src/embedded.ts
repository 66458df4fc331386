import { formatNumber } from "./dom";
import type { Box, Crumb, Details, Item, Items, Run, Source, View } from "./types";

/** The data of a self-contained page: the top of a tree. */
export interface Embedded {
  run: Run;
  boxes: Box[];
  /** One entry per box: its height, its terms, and points that represent it. */
  heights: number[];
  terms: string[][];
  examples: number[][];
  /** The points in the file. */
  items: Item[];
  origin: number | null;
}

const MAX_BOXES = 700;
const MAX_DEPTH = 5;

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
    const { points } = data.run;
    this.note =
      data.items.length < points
        ? `This file holds the top of the tree and ${formatNumber(data.items.length)} of ${formatNumber(points)} items.`
        : "";
  }

  run = async () => this.data.run;

  view = async (node: number, round: number): Promise<View> => {
    const { boxes } = this.data;
    const first = this.positionOf(node);
    const floor = Math.min(round, boxes[first]!.round - 1);
    const found: Box[] = [{ ...boxes[first]!, parent: -1 }];
    const open: [number, number, number][] = [[first, 0, 0]]; // position in the file, position in the view, depth
    while (open.length && found.length < MAX_BOXES) {
      open.sort((a, b) => boxes[b[0]]!.size - boxes[a[0]]!.size);
      const [from, to, depth] = open.shift()!;
      for (const child of this.children[from]!) {
        const box = boxes[child]!;
        found.push({ ...box, parent: to });
        if (box.node >= 0 && box.round > floor && depth + 1 < MAX_DEPTH) open.push([child, found.length - 1, depth + 1]);
      }
    }
    return { node, round, path: await this.path(node), boxes: found, legend: [], span: [] };
  };

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
    const { boxes } = this.data;
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
      steps.unshift({ node, name, size, round });
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
