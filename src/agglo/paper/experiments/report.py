"""Write the report of the experiments: tables in Markdown, with the figures of pictures.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from agglo.paper.experiments.job import Row
from agglo.paper.experiments.pictures import draw_figures
from agglo.paper.experiments.plan import SAMPLE
from agglo.paper.experiments.runner import Results

TITLES = {
    "scc": "SCC",
    "scc-paper": "SCC, the paper's thresholds",
    "affinity": "Affinity",
    "hac-graph": "HAC, same graph",
    "hac": "HAC",
    "perch": "Perch",
    "grinch": "Grinch",
    "ghhc": "gHHC",
    "hkm": "HKM",
    "birch": "Birch",
    "hdbscan": "HDBSCAN",
    "rhc": "RHC",
    "kmeans": "k-means",
    "bisecting-kmeans": "bisecting k-means",
}
OWN = ("scc-paper", "hac-graph")  # variants of this project's methods, with which SCC is not compared
ON_GRAPH = (*OWN, "scc", "affinity")
MIN_DIFFERENCE = 0.0005  # smaller differences of scores are not visible in three digits


def write_report(results: Results, folder: Path) -> None:
    """Write tables.md and the figures to ``folder``."""
    parts = [
        "# Tables",
        "",
        "Written by `python -m agglo.paper` from [results.jsonl](results.jsonl). – is not applicable or not run.",
    ]
    for points, title in [(None, "whole sets"), (SAMPLE, f"samples of {SAMPLE:,} points")]:
        by_set = _by_set(results.select("trees", points=points))
        if by_set:
            parts += _scores(by_set, "purity", f"Dendrogram purity, {title}")
            parts += _scores(
                by_set, "f1", f"Pairwise F1 of the round closest to the true number of clusters, {title}"
            )
            parts += _scores(by_set, "best_f1", f"Pairwise F1 of the best round, {title}")
            parts += _times(by_set, f"CPU seconds, {title}")
    parts += _rounds(results) + _growth(results) + _grid(results)
    for name, alt in draw_figures(results, folder):
        parts += ["", f"![{alt}]({name})"]
    (folder / "tables.md").write_text("\n".join(parts) + "\n", encoding="utf-8")


RowsBySet = dict[str, dict[str, Row]]


def _by_set(rows: Iterable[Row]) -> RowsBySet:
    by_set: RowsBySet = {}
    for row in rows:
        by_set.setdefault(row["set"], {})[row["method"]] = row
    return {name: row for name, row in by_set.items() if "scc" in row}


def best_of(rows: dict[str, Row], field: str) -> float:
    """Return the largest value of a field, such as "purity", over the compared methods."""
    return max(float(row[field]) for method, row in rows.items() if method not in OWN and field in row)


def standing(by_set: RowsBySet, field: str) -> tuple[int, int]:
    """Return the number of datasets on which SCC has the highest score, and the number of compared datasets.

    A dataset is compared if a method that does not use SCC's neighbour graph finished on it. Scores that are equal
    in three digits are ties, and a tie also counts for SCC.
    """
    compared = [
        rows for rows in by_set.values() if any(field in row for name, row in rows.items() if name not in ON_GRAPH)
    ]
    first = sum(rows["scc"][field] >= best_of(rows, field) - MIN_DIFFERENCE for rows in compared)
    return first, len(compared)


def _scores(by_set: RowsBySet, field: str, title: str) -> list[str]:
    methods = [name for name in TITLES if any(field in rows.get(name, {}) for rows in by_set.values())]

    def cell(rows: dict[str, Row], method: str) -> str:
        row = rows.get(method)
        if row is None:
            return "–"
        if field not in row:
            return str(row["status"]) if row["status"] != "ok" else "–"
        text = f"{row[field]:.3f}"
        is_best = method not in OWN and row[field] >= best_of(rows, field) - MIN_DIFFERENCE
        return f"**{text}**" if is_best else text

    first, of = standing(by_set, field)
    lines = _table(
        ["set", "points", "classes", *(TITLES[name] for name in methods)],
        (
            [name, f"{rows['scc']['n']:,}", f"{rows['scc']['classes']:,}", *(cell(rows, m) for m in methods)]
            for name, rows in by_set.items()
        ),
    )
    return [
        "",
        f"## {title}",
        "",
        f"SCC is best on {first} of the {of} sets on which rivals other than Affinity finished; bold is the best.",
        *lines,
    ]


def _times(by_set: RowsBySet, title: str) -> list[str]:
    methods = [name for name in TITLES if any("seconds" in rows.get(name, {}) for rows in by_set.values())]

    def cell(rows: dict[str, Row], method: str) -> str:
        row = rows.get(method)
        if row is None:
            return "–"
        if "seconds" not in row:
            return str(row["status"])
        graph = f"{row['graph_seconds']:.2f} + " if "graph_seconds" in row else ""
        return f"{graph}{row['seconds']:.2f}"

    lines = _table(
        ["set", *(TITLES[name] for name in methods)],
        ([name, *(cell(rows, m) for m in methods)] for name, rows in by_set.items()),
    )
    return ["", f"## {title}", "", "Seconds of the neighbour graph, if any, + of the algorithm.", *lines]


def _rounds(results: Results) -> list[str]:
    found = [row for row in results.select("rounds", status="ok") if row["kind"] != "affinity"]
    if not found:
        return []
    kinds = sorted({row["kind"] for row in found}, key=["odds", "geometric", "linear"].index)
    numbers = sorted({row["number"] for row in found})

    def mean(kind: str, number: int, field: str) -> float:
        values = [row[field] for row in found if (row["kind"], row["number"]) == (kind, number)]
        return float(sum(values) / len(values))

    parts = []
    for field, title in [("purity", "Dendrogram purity"), ("best_f1", "Best F1")]:
        lines = _table(
            ["thresholds", *map(str, numbers)],
            ([kind, *(f"{mean(kind, number, field):.3f}" for number in numbers)] for kind in kinds),
        )
        sets = len({row["set"] for row in found})
        parts += ["", f"## {title} by number and kind of thresholds, mean over {sets} sets", *lines]
    return parts


def _growth(results: Results) -> list[str]:
    found = list(results.select("growth"))
    if not found:
        return []
    sizes = sorted({row["points"] for row in found})
    methods = [name for name in TITLES if any(row["method"] == name for row in found)]
    rows = {(row["points"], row["method"]): row for row in found}

    def cell(points: int, method: str) -> str:
        row = rows.get((points, method))
        if row is None:
            return "–"
        if row["status"] != "ok":
            return str(row["status"])
        return f"{row['purity']:.3f}, {row['seconds'] + row.get('graph_seconds', 0.0):.2f} s"

    lines = _table(
        ["points", *(TITLES[m] for m in methods)], ([f"{n:,}", *(cell(n, m) for m in methods)] for n in sizes)
    )
    return ["", "## Purity and CPU seconds by number of points of a Dirichlet-process mixture", *lines]


def _grid(results: Results) -> list[str]:
    found = list(results.select("grid"))
    if not found:
        return []
    paper = {("iris", "scc"): 0.926, ("iris", "rhc"): 0.955, ("wine", "scc"): 0.975, ("wine", "rhc"): 0.944}
    described: Callable[[Row], str] = lambda row: ", ".join(  # noqa: E731
        f"{key} {row[key]}" for key in ("metric", "n_neighbors", "kind", "number", "alpha", "nu") if key in row
    )
    lines = _table(
        ["set", "method", "columns", "best purity", "paper", "of", "at"],
        (
            [
                row["set"],
                TITLES[row["method"]],
                row.get("columns", ""),
                f"{row['purity']:.3f}" if "purity" in row else row["status"],
                f"{paper[row['set'], row['method']]:.3f}",
                f"{row['tried']:,}" if "tried" in row else "",
                described(row),
            ]
            for row in found
        ),
    )
    return ["", "## Iris and Wine: the best dendrogram purity over a grid of parameters", *lines]


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = ["", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]
