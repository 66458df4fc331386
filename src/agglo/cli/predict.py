"""The verb for new points: predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agglo.cli.app import app
from agglo.cli.ends import BAD_INPUT, CANNOT_WRITE, EPILOG, USAGE, failing, tell, verb
from agglo.cli.options import (
    OUTPUT,
    AsJson,
    Columns,
    Delimiter,
    Drop,
    Encoding,
    Header,
    Height,
    Jobs,
    NClusters,
    NpzArray,
    Quiet,
    Round,
    csv_options,
    feature_names,
    rule_of,
)


@app.command(epilog=EPILOG)
@verb
def predict(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder that agglo fit --keep-model wrote, or of a saved model.")
    ],
    data: Annotated[Path, typer.Argument(metavar="NEW", help="New points: as DATA of agglo fit.")],
    columns: Columns = None,
    drop: Drop = None,
    array: NpzArray = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    delimiter: Delimiter = None,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="File for labels: .parquet, .csv or .npy.", rich_help_panel=OUTPUT),
    ] = Path("labels.parquet"),
    jobs: Jobs = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tell the clusters of new points; -1 for those that none would have taken in.

    Labels are like those of the run, or by --n-clusters, --round or --height.
    """
    with failing(USAGE):
        from agglo._validation import effective_n_threads
        from agglo.cli import pipeline
        from agglo.estimators import model_folder as modelfile
        from agglo.estimators import run_folder as runfolder
        from agglo.io import atomic as outputs
        from agglo.io import points as files

        rule = rule_of(n_clusters, round, height) or {}
        files.check_label_format(out)
        features = feature_names(columns, drop)
        csv = csv_options(header, encoding, delimiter)
    with failing(CANNOT_WRITE):
        outputs.check_writable_file(out)
    with failing(BAD_INPUT):
        if not run.is_dir():
            raise FileNotFoundError(
                f"{run} holds no model: it is no folder; pass one that agglo fit --keep-model wrote"
            )
        if not outputs.resolve_file(run, runfolder.MODEL).exists():
            raise FileNotFoundError(
                f"{run} holds no model, which predictions need: there is no {runfolder.MODEL} in it; "
                "run agglo fit again, with --keep-model"
            )
        model = modelfile.load(run)
    with failing(USAGE):
        model.set_params(n_jobs=effective_n_threads(jobs), verbose=not quiet)
        if rule:
            pipeline.cut(model.tree_, rule)  # an error before the search, if it cannot be followed
    with failing(BAD_INPUT):
        names = list(model.__dict__.pop("feature_names_in_", []))  # columns are chosen by them, here
        is_table = data.suffix.lower() in (".parquet", ".csv", ".tsv")
        if names and is_table and columns is None and drop is None:
            features["columns"] = names
        X = pipeline.read(data, **features, array=array, csv=csv).X
        if X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"{data} has points of {X.shape[1]} columns, but those of the run have {model.n_features_in_}: "
                "pass points with the same features"
            )
    with failing(USAGE):
        labels = model.predict(X, **rule)
    with failing(CANNOT_WRITE):
        files.write_labels(labels, out)
    new = int((labels < 0).sum())
    result = {"run": str(run), "points": len(labels), "new": new, "rule": rule, "written": str(out)}
    rows = [("points", f"{len(labels)}, of which {new} are in no cluster"), ("written", str(out))]
    tell(result, rows, as_json, quiet)
