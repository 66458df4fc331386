import type { Mode } from "./layout";
import type { Run } from "./types";

/** The state of the page that a link contains. */
export interface State {
  node: number;
  round: number;
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
    round: integer("round", run.start, run.rounds.at(-1)!.round),
    mode: given.get("mode") === "icicle" ? "icicle" : "boxes",
    colour: run.columns.includes(colour) ? colour : "",
    selected: selected.filter((node) => Number.isInteger(node) && node >= 0 && node <= run.root),
  };
}

/** Writes the state to the URL, as a new entry of the history if `isStep`. */
export function writeState(state: State, isStep: boolean): void {
  const kept = new URLSearchParams({ node: String(state.node), round: String(state.round), mode: state.mode });
  if (state.colour) kept.set("colour", state.colour);
  if (state.selected.length) kept.set("selected", state.selected.join(","));
  const address = `${location.pathname}${location.search}#${kept}`;
  if (isStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
