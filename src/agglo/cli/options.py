"""Options that several verbs share, and how their words are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

# The panels of help that options stand in.
INPUT, GRAPH, TREE, KNOWN, LABELS, OUTPUT = (
    *("Input", "Neighbour graph", "Tree", "Known of the points", "Labels", "Output and running"),
)
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that agglo fit wrote, or a tree file.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.", rich_help_panel=OUTPUT)]
NClusters = Annotated[
    int | None, typer.Option(help="Cut at the round with nearly as many clusters.", rich_help_panel=LABELS)
]
Round = Annotated[
    str | None, typer.Option(help="Cut at a round, -1 being the last, or 'persistent'.", rich_help_panel=LABELS)
]
Height = Annotated[
    float | None, typer.Option(help="Cut at a height: a distance, or 1 - cosine.", rich_help_panel=LABELS)
]
Columns = Annotated[str | None, typer.Option(help="Columns that are features: a,b,c.", rich_help_panel=INPUT)]
Drop = Annotated[
    str | None, typer.Option(help="Columns that are no features, to leave out: a,b.", rich_help_panel=INPUT)
]
NpzArray = Annotated[str | None, typer.Option("--array", help="Array of an .npz file.", rich_help_panel=INPUT)]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a CSV file names the columns.",
        rich_help_panel=INPUT,
    ),
]
Encoding = Annotated[str, typer.Option(help="Encoding of CSV files.", rich_help_panel=INPUT)]
Delimiter = Annotated[
    str | None,
    typer.Option(help="Separator of cells in CSV files: ';', '|' or tab.", rich_help_panel=INPUT),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Threads; all cores by default.", rich_help_panel=OUTPUT)
]
Force = Annotated[
    bool, typer.Option("--force", help="Write to a folder with other files in it.", rich_help_panel=OUTPUT)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.", rich_help_panel=OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.", rich_help_panel=OUTPUT)]


def csv_options(header: bool | None, encoding: str, delimiter: str | None) -> Any:
    """Return how CSV files are written."""
    from agglo.io.tables import CsvOptions

    return CsvOptions(header, encoding, "\t" if delimiter in ("tab", "\\t") else delimiter)


def feature_names(columns: str | None, drop: str | None) -> dict[str, Any]:
    """Return the columns to take or to leave out."""
    from agglo.io.tables import split_names

    if columns is not None and drop is not None:
        raise ValueError("--columns names all features, so there is nothing to --drop: pass one of them")
    names: dict[str, Any] = {}
    for option, text in (("columns", columns), ("drop", drop)):
        names[option] = found = None if text is None else split_names(text)
        twice = next((name for name in found or () if (found or []).count(name) > 1), None)
        if option == "columns" and found is not None and not all(found):
            raise ValueError(f"--columns {text} has an empty name: pass names of columns with commas between them")
        if twice is not None:
            raise ValueError(f"--{option} {text} names {twice!r} twice: name each once")
    return names


def rule_of(n_clusters: int | None, round: str | None, height: float | None) -> dict[str, Any] | None:
    """The rule for a cut, if one was given."""
    given = {
        "n_clusters": n_clusters,
        "round": None if round is None else number_or_name("--round", round, "persistent"),
        "height": height,
    }
    rules = {name: value for name, value in given.items() if value is not None}
    if len(rules) > 1:
        options = " and ".join("--" + name.replace("_", "-") for name in rules)
        raise ValueError(f"a cut follows one rule, got {options}: pass one of them")
    return rules or None


def number_or_name(option: str, text: str, name: str) -> int | str:
    """A whole number, or that name."""
    if text == name:
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{option} {text} is neither a whole number nor {name!r}: pass one of these") from None


def numbers_or_name(text: str | None) -> list[float] | str | None:
    """Thresholds as the core takes them: a name, or numbers."""
    if text is None or text.replace("-", "").isalpha():
        return text
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--thresholds {text} is neither a name nor a list of numbers: pass geometric, linear, doubling, or "
            "numbers with commas between them"
        ) from None


def float_or_name(option: str, text: str, *names: str) -> Any:
    """A number, or one of the names."""
    if text in names:
        return text
    try:
        return float(text)
    except ValueError:
        known = " or ".join(map(repr, names))
        raise ValueError(f"{option} {text} is neither a number nor {known}: pass one of these") from None
