"""Options that several commands share, and functions that parse their values."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

# The groups of options in the help.
INPUT = "Input"
GRAPH = "Neighbour graph"
TREE = "Tree"
CONSTRAINTS = "Constraints and weights"
LABELS = "Labels"
OUTPUT = "Output and running"


def option(panel: str, help: str, *names: str, **settings: Any) -> Any:
    """Declare an option that the help lists in the group ``panel``."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


input_option, graph_option, tree_option, constraint_option, label_option, output_option = (
    partial(option, panel) for panel in (INPUT, GRAPH, TREE, CONSTRAINTS, LABELS, OUTPUT)
)

RunPath = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder that agglo fit or agglo text wrote, or a tree file.")
]
Out = Annotated[Path, output_option("Folder to write to.", "--out", "-o")]
label_file = output_option("File for labels: .parquet, .csv or .npy.", "--out", "-o")
NClusters = Annotated[int | None, label_option("Cut at the round with the closest number of clusters.")]
Round = Annotated[
    str | None,
    label_option("Cut after a round: its number, -1 for the last round, or 'persistent' for the most persistent."),
]
Height = Annotated[float | None, label_option("Cut at a height: a distance, or 1 - cosine.")]
Resolution = Annotated[
    str | None,
    label_option(
        "Cut with the largest modularity at a resolution (the larger, the more clusters), or 'persistent'."
    ),
]
Columns = Annotated[str | None, input_option("Columns to use as features: a,b,c.")]
Drop = Annotated[str | None, input_option("Columns to leave out of the features: a,b.")]
NpzArray = Annotated[str | None, input_option("Name of the array in an .npz file.", "--array")]
Header = Annotated[
    bool | None, input_option("Whether the first line of a CSV file has the column names.", "--header/--no-header")
]
Encoding = Annotated[str, input_option("Encoding of CSV files.")]
Delimiter = Annotated[str | None, input_option("Column separator of CSV files: ';', '|' or tab.")]
Jobs = Annotated[int | None, output_option("Number of threads; all cores by default.", "--jobs", "-j")]
Force = Annotated[bool, output_option("Write even if the folder contains other files.", "--force")]
AsJson = Annotated[bool, output_option("Print the result as JSON on stdout.", "--json")]
Quiet = Annotated[bool, output_option("No progress bar and no summary.", "--quiet", "-q")]

Metric = Annotated[
    Literal["cosine", "dot", "sqeuclidean", "euclidean", "jaccard", "hamming"],
    graph_option("cosine, dot, sqeuclidean, euclidean, jaccard or hamming.", metavar="NAME"),
]
Method = Annotated[
    Literal["auto", "exact", "kdtree", "cells", "minhash"],
    graph_option("Search method: auto, exact, kdtree, cells or minhash.", metavar="NAME"),
]
Recall = Annotated[float, graph_option("Share of the true neighbours that an approximate search must find.")]
Missing = Annotated[
    str, graph_option("Value of a pair without an edge: a number, 'mean' (the mean of all pairs), or 'ignore'.")
]
Seed = Annotated[int, graph_option("Random seed of an approximate search.")]
Algorithm = Annotated[
    Literal["scc", "affinity", "hac"], tree_option("scc, affinity or hac.", "--algorithm", "-a", metavar="NAME")
]
LinkageName = Annotated[
    Literal["average", "single", "complete", "exact-average", "centroid", "ward"],
    tree_option(
        "On the graph: average, single or complete. On the points: exact-average, centroid or ward.",
        metavar="NAME",
    ),
]
Connect = Annotated[
    Literal["auto", "none", "exact-average", "centroid", "ward"],
    tree_option(
        "Linkage that merges clusters without edges between them: exact-average, centroid, ward, "
        "auto (ward above the merges that the graph supports), or none.",
        metavar="NAME",
    ),
]
KeepModel = Annotated[bool, output_option("Also write the model, for agglo predict.", "--keep-model")]


def csv_options(header: bool | None, encoding: str, delimiter: str | None) -> Any:
    """Return the options ``header``, ``encoding`` and ``delimiter`` as one CsvOptions value."""
    from agglo.io.tables import CsvOptions

    return CsvOptions(header, encoding, "\t" if delimiter in ("tab", "\\t") else delimiter)


def parse_columns(columns: str | None, drop: str | None) -> dict[str, Any]:
    """Parse the options --columns and --drop to lists of names; return them as keyword arguments."""
    from agglo.io.tables import split_names

    if columns is not None and drop is not None:
        raise ValueError("--columns names all features, so there is nothing to --drop: pass one of them")
    names: dict[str, Any] = {}
    for option, text in (("columns", columns), ("drop", drop)):
        names[option] = given = None if text is None else split_names(text)
        twice = next((name for name in given or () if (given or []).count(name) > 1), None)
        if option == "columns" and given is not None and not all(given):
            raise ValueError(f"--columns {text} has an empty name: pass names of columns with commas between them")
        if twice is not None:
            raise ValueError(f"--{option} {text} names {twice!r} twice: name each once")
    return names


def parse_rule(
    n_clusters: int | None, round: str | None, height: float | None, resolution: str | None = None
) -> dict[str, Any] | None:
    """Return the option that selects the cut, as a dict with one entry, or None if no option does.

    Raise an error if several options select a cut.
    """
    given = {
        "n_clusters": n_clusters,
        "round": None if round is None else parse_integer("--round", round, "persistent"),
        "height": height,
        "resolution": None if resolution is None else parse_float("--resolution", resolution, "persistent"),
    }
    rules = {name: value for name, value in given.items() if value is not None}
    if len(rules) > 1:
        options = " and ".join("--" + name.replace("_", "-") for name in rules)
        raise ValueError(f"a cut follows one rule, got {options}: pass one of them")
    return rules or None


def _parse_number(kind: type[int] | type[float], option: str, text: str, *names: str) -> Any:
    """Parse the value of ``option`` to a number; the texts ``names`` are also allowed and returned."""
    if text in names:
        return text
    try:
        return kind(text)
    except ValueError:
        expected, known = "whole number" if kind is int else "number", " or ".join(map(repr, names))
        raise ValueError(f"{option} {text} is neither a {expected} nor {known}: pass one of these") from None


parse_integer = partial(_parse_number, int)
parse_float = partial(_parse_number, float)


def parse_thresholds(text: str | None) -> Any:
    """Parse the value of --thresholds to a list of numbers, or return it if it is the name of a schedule."""
    if text is None or text.replace("-", "").isalpha():
        return text
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--thresholds {text} is neither a name nor a list of numbers: pass odds, geometric, linear, doubling "
            "or numbers with commas between them"
        ) from None
