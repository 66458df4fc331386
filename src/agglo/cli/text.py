"""The command ``agglo text``: cluster texts, and name the clusters by their terms."""

from __future__ import annotations

import gzip
import hashlib
import json
import shlex
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from agglo.cli.app import (
    BAD_INPUT,
    CANNOT_WRITE,
    EPILOG,
    USAGE,
    app,
    command_to_type,
    exit_with,
    print_message,
    print_result,
    report_errors,
)
from agglo.cli.explore import serve
from agglo.cli.fit import PERSISTENT, build_model, fit_model
from agglo.cli.options import (
    GRAPH,
    INPUT,
    OUTPUT,
    Algorithm,
    AsJson,
    Connect,
    Delimiter,
    Encoding,
    Force,
    Height,
    Jobs,
    KeepModel,
    LinkageName,
    Method,
    Metric,
    Missing,
    NClusters,
    Out,
    Quiet,
    Recall,
    Resolution,
    Round,
    Seed,
    csv_options,
    parse_float,
    parse_integer,
    parse_rule,
)

NAMES = "Names"


@app.command(epilog=EPILOG)
@report_errors
def text(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Texts: .csv, .tsv, .jsonl, .parquet, .txt with one text per line, or - for stdin.",
        ),
    ],
    *,
    column: Annotated[
        str | None, typer.Option(help="Text column; by default 'text' or the only one.", rich_help_panel=INPUT)
    ] = None,
    encoding: Encoding = "utf-8",
    delimiter: Delimiter = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(
            help="Vectors of the texts, with one row per row of FILE: .npy, .npz or .parquet.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a sentence-transformers model that computes the vectors.", rich_help_panel=INPUT
        ),
    ] = None,
    metric: Metric = "cosine",
    n_neighbors: Annotated[
        str,
        typer.Option(
            "--n-neighbors", "-k", help="Number of neighbours per text, or 'all'.", rich_help_panel=GRAPH
        ),
    ] = "25",
    method: Method = "auto",
    recall: Recall = 0.95,
    missing: Missing = "mean",
    seed: Seed = 0,
    algorithm: Algorithm = "scc",
    linkage: LinkageName = "average",
    connect: Connect = "auto",
    language: Annotated[
        str,
        typer.Option(help="Language of the stop words, 'auto' or 'none'.", rich_help_panel=NAMES),
    ] = "auto",
    stop_words: Annotated[
        Path | None,
        typer.Option(help="File of further stop words, separated by white space.", rich_help_panel=NAMES),
    ] = None,
    namer: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command that reads a cluster as JSON on stdin and prints its name.",
            rich_help_panel=NAMES,
        ),
    ] = None,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    resolution: Resolution = None,
    out: Out = Path("agglo-text"),
    explore: Annotated[
        bool,
        typer.Option("--explore", help="Afterwards, serve the explorer until Ctrl-C.", rich_help_panel=OUTPUT),
    ] = False,
    csv_tables: Annotated[
        bool,
        typer.Option("--csv", help="Also write rows.csv and clusters.csv.", rich_help_panel=OUTPUT),
    ] = False,
    keep_model: KeepModel = False,
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster short texts; write a tree with named clusters for agglo explore.

    Texts are compared by their words and letters, or by the vectors of
    --embeddings or --model. rows.parquet has the cluster of each row of FILE,
    clusters.parquet one row per cluster.

    Example: agglo text queries.csv --column query -o out
    """
    with exit_with(USAGE):
        import numpy as np

        from agglo.cli import record as records
        from agglo.cli import record as report
        from agglo.cli.data import Data
        from agglo.estimators import run_folder
        from agglo.estimators.model_folder import model_files
        from agglo.evaluation.stop_words import check_language
        from agglo.io.files import write_arrow, write_csv, write_parquet
        from agglo.progress import progress_bar
        from agglo.text.names import name_nodes
        from agglo.text.tables import cluster_table, find_paths, row_table
        from agglo.text.vectors import compute_vectors

        if embeddings is not None and model is not None:
            raise ValueError("--embeddings and --model are two ways to get vectors: pass one of them")
        if embeddings is None and model is None:
            _check_sparse(metric, linkage)
            if keep_model:
                raise ValueError(
                    "--keep-model needs vectors that new texts can have too, but the features of words and "
                    "letters depend on all texts of FILE: pass vectors with --embeddings or --model, "
                    "or leave this option out"
                )
        check_language(language)
        csv = csv_options(None, encoding, delimiter)
        rule = parse_rule(n_clusters, round, height, resolution) or PERSISTENT
        clusterer = build_model(
            algorithm,
            metric=metric,
            n_neighbors=parse_integer("--n-neighbors", n_neighbors, "all"),
            method=method,
            recall=recall,
            missing=parse_float("--missing", missing, "mean", "ignore"),
            random_state=seed,
            linkage=linkage,
            connect=None if connect == "none" else connect,
            n_jobs=jobs,
            **rule,
        )
    with exit_with(CANNOT_WRITE):
        run_folder.check_folder(out, force=force)
    with progress_bar(not quiet) as progress, exit_with(BAD_INPUT):
        if progress:
            progress("reading", 0, 1)
        words = [] if stop_words is None else stop_words.read_text(encoding="utf-8").split()
        texts = _read(file, column, encoding, csv.delimiter)
        X, features_from = compute_vectors(texts, embeddings, model, progress)
    data = Data(X, None, {"path": str(file), "columns": column, "features_from": features_from})
    fit_model(clusterer, data, quiet)
    tree, labels = clusterer.tree_, clusterer.labels_
    start = time.perf_counter()
    cached = None if namer is None else _CachedCommand(namer, out / run_folder.NAMER)
    with progress_bar(not quiet) as progress, exit_with(USAGE):
        dense = X if isinstance(X, np.ndarray) else None
        levels = [labels, *tree.layers()]
        names = name_nodes(
            tree,
            texts.texts,
            dense,
            levels=levels,
            language=language,
            stop_words=words,
            namer=cached,
            progress=progress,
        )
        found = find_paths(tree, labels, levels)
        clusters = cluster_table(found, tree, names, texts.texts, texts.count)
        rows_of_input = row_table(clusters, found, labels, texts.inverse)
    clusterer._seconds["names"] = time.perf_counter() - start
    if texts.n_empty:
        print_message("note", f"{texts.n_empty:,} of {texts.n_rows:,} rows have no text and were left out")
    record = records.describe_run(clusterer, data, rule, {})
    record["data"] |= {"rows": texts.n_rows, "rows_without_text": texts.n_empty}
    with exit_with(CANNOT_WRITE, f"nothing was written to {out}: "):
        extra: dict[str, Callable[[Path], None]] = {
            run_folder.ITEMS: partial(write_arrow, texts.table()),
            run_folder.NAMES: partial(write_arrow, names.to_table()),
            run_folder.ROWS: partial(write_parquet, rows_of_input),
            run_folder.CLUSTERS: partial(write_parquet, clusters),
        }
        if csv_tables:
            extra[run_folder.ROWS_CSV] = partial(write_csv, rows_of_input)
            extra[run_folder.CLUSTERS_CSV] = partial(write_csv, clusters)
        if cached is not None:
            extra[run_folder.NAMER] = cached.write
        saved = model_files(clusterer) if keep_model else None
        run_folder.save_run(out, tree, labels, record, extra=extra, model=saved)
    name = command_to_type()
    rows = [("texts", f"{len(texts.texts):,} different ones in {texts.n_rows:,} rows of {file}")]
    rows += [row for row in report.summarize_run(record) if row[0] != "points"]
    own = clusters.filter(clusters["cluster"].is_valid())
    rows += report.summarize_largest(own["size"].to_pylist(), own["name"].to_pylist())
    rows += [("written", str(out)), ("next", f"{name} explore {out}")]
    print_result(record, rows, as_json, quiet)
    if explore:
        serve(out)


def _check_sparse(metric: str, linkage: str) -> None:
    """Raise if the metric or linkage needs dense vectors, because the vectors of words and letters are sparse."""
    wrong = f"--metric {metric}" if metric in ("euclidean", "sqeuclidean") else ""
    wrong = f"--linkage {linkage}" if linkage in ("exact-average", "centroid", "ward") else wrong
    if wrong:
        raise ValueError(
            f"{wrong} needs dense vectors, but words and letters give sparse ones: "
            "pass vectors with --embeddings or --model, or leave this option out"
        )


def _read(file: Path, column: str | None, encoding: str, delimiter: str | None) -> Any:
    """Read texts from a file or from stdin: JSON lines, one text per line, or a CSV table if a column is named."""
    from agglo.text.reader import read_texts

    if str(file) != "-":
        return read_texts(file, column, encoding, delimiter)
    content = sys.stdin.buffer.read()
    is_compressed = content.startswith(b"\x1f\x8b")
    with suppress(OSError, EOFError, zlib.error):  # the reader reports damaged content
        content = gzip.decompress(content) if is_compressed else content
    is_json = content.lstrip().startswith(b'{"')
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "stdin" + (".jsonl" if is_json else ".txt" if column is None else ".csv"))
        copy.write_bytes(content)
        return read_texts(copy, column, encoding, delimiter)


class _CachedCommand:
    """A function that names clusters by running a command; the answers are stored in a file of the run folder."""

    def __init__(self, command: str, path: Path) -> None:
        self.command = shlex.split(command)
        self.answers: dict[str, str] = {}
        with suppress(OSError, ValueError):  # a new run, or a damaged cache
            self.answers = json.loads(path.read_text(encoding="utf-8"))

    def __call__(self, cluster: Mapping[str, Any]) -> str:
        request = json.dumps(cluster, ensure_ascii=False)
        key = hashlib.blake2b(f"{self.command}\n{request}".encode(), digest_size=16).hexdigest()
        if key not in self.answers:
            try:
                done = subprocess.run(
                    self.command, input=request, capture_output=True, text=True, encoding="utf-8"
                )
            except OSError as error:
                raise ValueError(
                    f"--namer {shlex.join(self.command)} cannot be run ({error}): check the command"
                ) from None
            if done.returncode:
                cause = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise ValueError(
                    f"--namer {shlex.join(self.command)} ended with code {done.returncode} ({cause}): correct it"
                )
            self.answers[key] = done.stdout
        return self.answers[key]

    def write(self, path: Path) -> None:
        """Write all answers of the command to a file."""
        path.write_text(json.dumps(self.answers, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
