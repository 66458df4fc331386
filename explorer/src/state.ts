import type { Mode } from "./layout";
import type { Run } from "./types";

const START = 20; // clusters of the first view
export const MAX_CLUSTERS = 500;

/** The state of the page that a link contains. */
export interface State {
  node: number;
  /** The wanted number of clusters in the view. */
  clusters: number;
  mode: Mode;
  colour: string;
  selected: number[];
}

/** Reads the state from the URL; missing parts are those of the run. */
export function readState(run: Run): State {
  const given = new URLSearchParams(location.hash.slice(1));
  const integer = (name: string, fallback: number, most: number): number => {
    const value = Number(given.get(name) ?? Number.NaN);
    return Number.isInteger(value) && value >= 0 && value <= most ? value : fallback;
  };
  const colour = given.get("colour") ?? "";
  const selected = (given.get("selected") ?? "").split(",").filter(Boolean).map(Number);
  return {
    node: integer("node", run.root, run.root),
    clusters: Math.max(integer("clusters", Math.min(START, Math.ceil(run.points / 3)), MAX_CLUSTERS), 1),
    mode: given.get("mode") === "icicle" ? "icicle" : "boxes",
    colour: run.columns.includes(colour) ? colour : "",
    selected: selected.filter((node) => Number.isInteger(node) && node >= 0 && node <= run.root),
  };
}

/** Whether the page has an address that can contain the state; it has none in a cell of a notebook. */
export const hasAddress = (): boolean => location.protocol !== "about:";

/** Writes the state to the URL, as a new entry of the history if `isStep`. */
export function writeState(state: State, isStep: boolean): void {
  if (!hasAddress()) return;
  const kept = new URLSearchParams({ node: String(state.node), clusters: String(state.clusters), mode: state.mode });
  if (state.colour) kept.set("colour", state.colour);
  if (state.selected.length) kept.set("selected", state.selected.join(","));
  const address = `${location.pathname}${location.search}#${kept}`;
  if (isStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
