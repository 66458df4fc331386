import type { Box, Crumb, Details, Item, Items, Run, Source, View } from "./types";

/** What a self-contained page holds: the top of a tree. */
export interface Embedded {
  run: Run;
  boxes: Box[];
  /** Beside each box: its height, its terms, and some of its points. */
  heights: number[];
  terms: string[][];
  examples: number[][];
  /** The points that are in the file. */
  items: Item[];
  origin: number | null;
}

const MOST = 700;
const DEEPEST = 5;

/** Answers out of the page itself, for pages that are opened from a disk. */
export class Page implements Source {
  readonly note: string;
  readonly formats = ["csv"] as const;
  private readonly inside: number[][];
  private readonly place = new Map<number, number>();
  private readonly points = new Map<number, Item>();

  constructor(private readonly data: Embedded) {
    this.inside = data.boxes.map(() => []);
    data.boxes.forEach((box, i) => {
      if (box.parent >= 0) this.inside[box.parent]!.push(i);
      if (box.node >= 0) this.place.set(box.node, i);
    });
    for (const item of data.items) this.points.set(item.point, item);
    const { points } = data.run;
    this.note =
      data.items.length < points
        ? `This file holds the top of the tree and ${format(data.items.length)} of ${format(points)} items.`
        : "";
  }

  run = async () => this.data.run;

  view = async (node: number, round: number): Promise<View> => {
    const { boxes } = this.data;
    const first = this.at(node);
    const floor = Math.min(round, boxes[first]!.round - 1);
    const found: Box[] = [{ ...boxes[first]!, parent: -1 }];
    const open: [number, number, number][] = [[first, 0, 0]]; // where it is in the file, in the view, how deep
    while (open.length && found.length < MOST) {
      open.sort((a, b) => boxes[b[0]]!.size - boxes[a[0]]!.size);
      const [from, to, depth] = open.shift()!;
      for (const child of this.inside[from]!) {
        const box = boxes[child]!;
        found.push({ ...box, parent: to });
        if (box.node >= 0 && box.round > floor && depth + 1 < DEEPEST) open.push([child, found.length - 1, depth + 1]);
      }
    }
    return { node, round, path: await this.path(node), boxes: found, legend: [], span: [] };
  };

  details = async (node: number): Promise<Details> => {
    const { boxes, heights, terms, examples, origin } = this.data;
    const item = this.points.get(node);
    const i = this.place.get(node);
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
      clusters: this.inside[i]!.length,
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
    let i = this.place.get(node) ?? -1;
    if (i < 0) {
      const item = this.points.get(node);
      if (item) steps.push({ node, name: item.text, size: 1, round: 0 });
      // The innermost box that shows the point.
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
      const name = this.data.boxes[this.at(node)]!.name;
      for (const item of this.pointsOf(node)) {
        rows.push([String(node), name, String(item.point), item.text, String(item.count)]);
      }
    }
    const quoted = rows.map((row) => row.map((cell) => `"${guarded(cell).replaceAll('"', '""')}"`).join(","));
    return new Blob([quoted.join("\n") + "\n"], { type: "text/csv" });
  };

  private at(node: number): number {
    const i = this.place.get(node);
    if (i === undefined) throw new Error(`This file does not hold node ${node}.`);
    return i;
  }

  /** The points of a node that are in the file. */
  private pointsOf(node: number): Item[] {
    const i = this.place.get(node);
    if (i === undefined) return [this.points.get(node)!];
    const found = new Set(this.data.examples[i]);
    for (const child of this.inside[i]!) {
      const inner = this.data.boxes[child]!.node;
      if (inner >= 0) for (const item of this.pointsOf(inner)) found.add(item.point);
    }
    return [...found].map((point) => this.points.get(point)!);
  }
}

/** The text, with an apostrophe before what a spreadsheet would run as a formula; see agglo/explore/export.py. */
function guarded(text: string): string {
  return /^[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text;
}

function format(number: number): string {
  return number.toLocaleString("en");
}
