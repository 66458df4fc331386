// Types of the responses; the same as in agglo/explore/api.py.

export interface Run {
  title: string;
  points: number;
  nodes: number;
  root: number;
  kind: string;
  columns: string[];
  texts: boolean;
}

export interface Crumb {
  node: number;
  name: string;
  size: number;
  round: number;
}

export interface Box {
  node: number;
  parent: number;
  size: number;
  number: number;
  name: string;
  round: number;
  value: number | null;
  share: number | null;
}

export interface View {
  node: number;
  clusters: number;
  /** The numbers of clusters to choose from, ascending. */
  steps: number[];
  path: Crumb[];
  boxes: Box[];
  legend: string[];
  span: number[];
}

export interface Item {
  point: number;
  text: string;
  count: number;
  values: (string | null)[];
}

export interface Details {
  node: number;
  name: string;
  size: number;
  occurrences: number;
  round: number;
  height: number;
  cohesion: number | null;
  clusters: number;
  terms: string[];
  examples: Item[];
  path: Crumb[];
}

export interface Items {
  total: number;
  items: Item[];
}

/** A source of responses: the server, or the data in a self-contained page. */
export interface Source {
  /** What the source lacks, if anything; otherwise empty. */
  readonly note: string;
  /** The formats in which clusters can be exported. */
  readonly formats: readonly ("csv" | "parquet")[];
  run(): Promise<Run>;
  view(node: number, clusters: number, colour: string): Promise<View>;
  details(node: number): Promise<Details>;
  items(node: number, offset: number, limit: number): Promise<Items>;
  search(text: string): Promise<Items>;
  path(node: number): Promise<Crumb[]>;
  save(nodes: number[], format: "csv" | "parquet"): Promise<Blob>;
}
