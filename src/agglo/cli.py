"""The command line: the stages in order for files. See docs/cli.md for what is read and written."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, ParamSpec

import typer

from agglo import __version__

if TYPE_CHECKING:  # what takes long to import is imported by the verb that needs it
    from agglo.pipeline import Run

# Exit codes; they are part of the interface.
USAGE = 2
BAD_INPUT = 3
CANNOT_WRITE = 4
NO_MEMORY = 5
INTERRUPTED = 130
TERMINATED = 143

_EPILOG = (
    "Exit codes: 0 done, 2 wrong or unfitting options, 3 input that cannot be used, 4 output that cannot be "
    "written, 5 not enough memory, 130 interrupted, 143 terminated."
)

app = typer.Typer(
    name="agglo",
    help="Hierarchical clustering of very many points.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

P = ParamSpec("P")


class CommandError(Exception):
    """What ends a command: a message for people and a code for scripts."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def _failing(code: int, prefix: str = "") -> Iterator[None]:
    """Errors of what is done here end the command with ``code``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.strerror is None or error.filename is None:
            raise CommandError(code, f"{prefix}{error}") from error
        raise CommandError(code, f"{prefix}{error.filename}: {error.strerror}") from error
    except (ValueError, TypeError, IndexError, ImportError) as error:
        raise CommandError(code, f"{prefix}{error}") from error


def _verb(function: Callable[P, None]) -> Callable[P, None]:
    """Every end of a command that is not a success becomes one message on stderr and an exit code."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_args, **_kwargs: _complain("warning", str(message))
            try:
                function(*args, **kwargs)
            except CommandError as failure:
                _end(failure.code, str(failure))
            except MemoryError as error:
                _end(NO_MEMORY, f"not enough memory ({error}): take fewer points or fewer neighbours")
            except KeyboardInterrupt:
                _end(INTERRUPTED, "interrupted")

    return run


def _complain(kind: str, message: str) -> None:
    colour = {"error": "red", "warning": "yellow", "note": "blue"}[kind]
    typer.echo(typer.style(f"{kind}: ", fg=colour, bold=True) + message, err=True)


def _end(code: int, message: str) -> NoReturn:
    _complain("error", message)
    raise typer.Exit(code)


def _tell(result: dict[str, Any], rows: list[tuple[str, str]], as_json: bool, quiet: bool) -> None:
    """Print a result, for machines or for people."""
    if as_json:
        text = json.dumps(result, indent=2, allow_nan=False)
    elif quiet:
        return
    else:
        text = "\n".join(typer.style(f"{key:<9}", fg="cyan") + value for key, value in rows)
    try:
        typer.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would try and fail once more
        raise CommandError(CANNOT_WRITE, f"the result could not be printed: {error.strerror or error}") from error


def main() -> None:
    """Entry point of the command ``agglo``."""

    def terminated(_signal: int, _frame: object) -> NoReturn:
        raise SystemExit(TERMINATED)  # unlike the default, lets files be cleaned up

    signal.signal(signal.SIGTERM, terminated)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # no terminal is too old for a ×
    try:
        app(prog_name="agglo")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


# Options that several verbs share, and the panels of help that they stand in.
_INPUT, _GRAPH, _TREE, _LABELS, _OUTPUT = ("Input", "Neighbour graph", "Tree", "Labels", "Output and running")
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that agglo fit wrote, or a tree file.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.", rich_help_panel=_OUTPUT)]
NClusters = Annotated[
    int | None, typer.Option(help="Cut at the round with nearly as many clusters.", rich_help_panel=_LABELS)
]
Round = Annotated[
    str | None, typer.Option(help="Cut at a round, -1 being the last, or 'persistent'.", rich_help_panel=_LABELS)
]
Height = Annotated[
    float | None, typer.Option(help="Cut at a height: a distance, or 1 - cosine.", rich_help_panel=_LABELS)
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line of a CSV is data.", rich_help_panel=_INPUT)
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Threads; all cores by default.", rich_help_panel=_OUTPUT)
]
Force = Annotated[
    bool, typer.Option("--force", help="Write to a folder with other files in it.", rich_help_panel=_OUTPUT)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.", rich_help_panel=_OUTPUT)]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.", rich_help_panel=_OUTPUT)
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agglo {__version__}")
        raise typer.Exit


@app.callback()
def _agglo(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


@app.command(epilog=_EPILOG)
@_verb
def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Points: .npy, .npz, .parquet, .csv or .tsv.")],
    *,
    labels: Annotated[
        Path | None, typer.Option(help="File of known classes, to score the tree with.", rich_help_panel=_INPUT)
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(help="Column of known classes, in that file or in DATA.", rich_help_panel=_INPUT),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns that are features: a,b,c.", rich_help_panel=_INPUT)
    ] = None,
    array: Annotated[str | None, typer.Option(help="Array of an .npz file.", rich_help_panel=_INPUT)] = None,
    no_header: NoHeader = False,
    metric: Annotated[
        Literal["cosine", "dot", "sqeuclidean", "euclidean"],
        typer.Option(metavar="NAME", help="cosine, dot, sqeuclidean or euclidean.", rich_help_panel=_GRAPH),
    ] = "cosine",
    n_neighbors: Annotated[
        str, typer.Option("--n-neighbors", "-k", help="Neighbours a point, or 'all'.", rich_help_panel=_GRAPH)
    ] = "25",
    method: Annotated[
        Literal["exact"], typer.Option(metavar="NAME", help="How neighbours are found.", rich_help_panel=_GRAPH)
    ] = "exact",
    algorithm: Annotated[
        Literal["scc", "affinity", "hac"],
        typer.Option("--algorithm", "-a", metavar="NAME", help="scc, affinity or hac.", rich_help_panel=_TREE),
    ] = "scc",
    linkage: Annotated[
        Literal["average", "single", "complete"],
        typer.Option(metavar="NAME", help="average, single or complete.", rich_help_panel=_TREE),
    ] = "average",
    thresholds: Annotated[
        str | None,
        typer.Option(
            help="For scc: geometric (default), linear, doubling, or numbers: 0.9,0.5,0.1.", rich_help_panel=_TREE
        ),
    ] = None,
    n_thresholds: Annotated[
        int | None, typer.Option(help="For scc: how many (default 200).", rich_help_panel=_TREE)
    ] = None,
    advance: Annotated[
        Literal["every-round", "until-stable"] | None,
        typer.Option(
            metavar="NAME", help="For scc: every-round (default) or until-stable.", rich_help_panel=_TREE
        ),
    ] = None,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    out: Out,
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the points of a file; write tree and labels to a folder.

    Labels are by --n-clusters, --round or --height, else --round persistent:
    the round near whose number of clusters the merging stays longest.
    """
    with _failing(USAGE):
        from agglo import pipeline, runfolder, summary

        schedule = {"thresholds": _numbers_or_name(thresholds), "n_thresholds": n_thresholds, "advance": advance}
        plan = pipeline.Plan(
            metric=metric,
            n_neighbors=_number_or_name("--n-neighbors", n_neighbors, "all"),
            method=method,
            algorithm=algorithm,
            linkage=linkage,
            schedule={name: value for name, value in schedule.items() if value is not None},
            rule=_rule(n_clusters, round, height) or {"round": "persistent"},
            n_jobs=jobs,
        )
        names = None if columns is None else columns.split(",")
    with _failing(CANNOT_WRITE):
        runfolder.check_folder(out, force=force)
    run = _run(plan, quiet, lambda: pipeline.read(data, labels, label_column, names, array, not no_header))
    with _failing(CANNOT_WRITE, f"nothing was written to {out}: "):
        paths = runfolder.save_run(out, run.tree, run.labels, run.record)
    _tell(run.record, [*summary.of_run(run.record), ("written", ", ".join(map(str, paths)))], as_json, quiet)


def _run(plan: Any, quiet: bool, read: Callable[[], Any]) -> Run:
    """Read, search and merge, with a progress bar."""
    from agglo import pipeline
    from agglo.progress import progress_bar

    with progress_bar(not quiet) as progress:
        if progress:
            progress("reading", 0, 1)
        with _failing(BAD_INPUT):
            data = read()
        with _failing(USAGE):
            return pipeline.run(plan, data, progress)


@app.command(epilog=_EPILOG)
@_verb
def cut(
    run: RunPath,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File for labels: .parquet, .csv or .npy.", rich_help_panel=_OUTPUT),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Choose a flat clustering of a tree; write its labels with --out."""
    with _failing(USAGE):
        from agglo import files, pipeline, runfolder, summary

        rule = _rule(n_clusters, round, height)
        if rule is None:
            raise ValueError("a cut needs a rule: pass one of --n-clusters, --round and --height")
        if out is not None:
            files.check_label_format(out)
    with _failing(BAD_INPUT):
        tree = runfolder.load_tree(run)
    with _failing(USAGE):
        labels, about = pipeline.cut(tree, rule)
    if out is not None:
        with _failing(CANNOT_WRITE):
            files.write_labels(labels, out)
    written = "nothing; --out labels.csv keeps the labels" if out is None else str(out)
    result = {"run": str(run), **about, "written": None if out is None else str(out)}
    _tell(result, [*summary.of_labels(about["labels"]), ("written", written)], as_json, quiet)


@app.command("eval", epilog=_EPILOG)
@_verb
def evaluate(
    run: RunPath,
    labels: Annotated[
        Path,
        typer.Option(help="Known classes: .npy, .npz, .parquet, .csv or .tsv.", rich_help_panel=_INPUT),
    ],
    label_column: Annotated[
        str | None, typer.Option(help="Column (.npz: array) of known classes.", rich_help_panel=_INPUT)
    ] = None,
    no_header: NoHeader = False,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score a tree against known classes: dendrogram purity, pairwise F1.

    F1 is that of a cut, by default at the number of classes, and of the best round.
    """
    with _failing(USAGE):
        from agglo import files, pipeline, runfolder, summary

        rule = _rule(n_clusters, round, height)
    with _failing(BAD_INPUT):
        tree = runfolder.load_tree(run)
        y = pipeline.classes(files.read_labels(labels, column=label_column, header=not no_header), tree.n_leaves)
    with _failing(USAGE):
        flat, about = pipeline.cut(tree, rule or {"n_clusters": int(y.max()) + 1})
    scores = pipeline.scores(tree, flat, y)
    result = {"run": str(run), **about, "scores": scores}
    _tell(result, [*summary.of_labels(about["labels"]), *summary.of_scores(scores)], as_json, quiet)


@app.command(epilog=_EPILOG)
@_verb
def info(run: RunPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Tell what a run did, and the clusters after its rounds."""
    with _failing(USAGE):
        from agglo import pipeline, runfolder, summary
    with _failing(BAD_INPUT):
        tree = runfolder.load_tree(run)
        record = runfolder.load_record(run) or pipeline.tree_record(tree)
    _tell(record, [*summary.of_run(record), *summary.of_rounds(tree)], as_json, quiet)


@app.command(epilog=_EPILOG)
@_verb
def plot(
    run: RunPath,
    kind: Annotated[
        Literal["overview", "icicle", "dendrogram", "rounds", "dp-means"],
        typer.Option(metavar="NAME", help="overview, icicle, dendrogram, rounds or dp-means."),
    ] = "overview",
    data: Annotated[
        Path | None, typer.Option(help="The points: for dp-means, and to be seen in an overview.")
    ] = None,
    array: Annotated[str | None, typer.Option(help="Array of an .npz file.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column of DATA that is no feature.")] = None,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File: .png, .svg or .pdf.", rich_help_panel=_OUTPUT)
    ] = Path("tree.png"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draw a tree: by numbers of clusters, by height, its rounds or its DP-means costs.

    Colours are those of the clusters at --n-clusters, --round or --height, else --round persistent.
    """
    with _failing(USAGE):
        from agglo import pipeline, runfolder

        try:
            from agglo import plot as pictures
        except ImportError as error:
            raise ValueError(str(error)) from None
        rule = _rule(n_clusters, round, height) or {"round": "persistent"}
        if kind == "dp-means" and data is None:
            raise ValueError("--kind dp-means needs the points that the tree is of: pass --data")
    with _failing(BAD_INPUT):
        tree = runfolder.load_tree(run)
        X = None if data is None else pipeline.read(data, None, label_column, None, array, True).X
        if X is not None and len(X) != tree.n_leaves:
            raise ValueError(f"{data} has {len(X)} points, but the tree has {tree.n_leaves}: pass its own")
    with _failing(USAGE):
        labels, about = pipeline.cut(tree, rule)
        figure = pictures.draw(tree, kind, labels, X)
    with _failing(CANNOT_WRITE):
        pictures.save(figure, out)
    _tell({"run": str(run), "kind": kind, **about, "written": str(out)}, [("written", str(out))], as_json, quiet)


@app.command(epilog=_EPILOG)
@_verb
def demo(
    out: Out = Path("agglo-demo"),
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster handwritten digits, score the tree and draw a picture of it."""
    with _failing(USAGE):
        from agglo import demo as digits
        from agglo import runfolder, summary

        plan = digits.plan(jobs)
    with _failing(CANNOT_WRITE):
        runfolder.check_folder(out, force=force)
    data = digits.digits()
    run = _run(plan, quiet, lambda: data)
    picture = None
    try:
        picture = digits.picture(data, run)
    except ImportError as error:
        _complain("note", f"no picture, for {error}")
    with _failing(CANNOT_WRITE, f"nothing was written to {out}: "):
        paths = runfolder.save_run(out, run.tree, run.labels, run.record, picture)
    rows = [*summary.of_run(run.record), ("written", ", ".join(map(str, paths)))]
    name = "agglo" if shutil.which("agglo") else sys.argv[0]  # as it can be typed again
    rows += [("next", f"{name} info {out}"), ("", f"{name} cut {out} --n-clusters 20 -o labels.csv")]
    _tell(run.record, rows, as_json, quiet)


def _rule(n_clusters: int | None, round: str | None, height: float | None) -> dict[str, Any] | None:
    """The rule for a cut, if one was given."""
    given = {
        "n_clusters": n_clusters,
        "round": None if round is None else _number_or_name("--round", round, "persistent"),
        "height": height,
    }
    rules = {name: value for name, value in given.items() if value is not None}
    if len(rules) > 1:
        options = " and ".join("--" + name.replace("_", "-") for name in rules)
        raise ValueError(f"a cut follows one rule, got {options}: pass one of them")
    return rules or None


def _number_or_name(option: str, text: str, name: str) -> int | str:
    if text == name:
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{option} {text} is neither a whole number nor {name!r}: pass one of these") from None


def _numbers_or_name(text: str | None) -> list[float] | str | None:
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
