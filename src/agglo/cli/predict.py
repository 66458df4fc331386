"""The verb for new points: predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agglo.cli.app import app
from agglo.cli.ends import BAD_INPUT, CANNOT_WRITE, EPILOG, USAGE, failing, tell, verb
from agglo.cli.options import INPUT, OUTPUT, AsJson, Height, Jobs, NClusters, NoHeader, Quiet, Round, rule_of


@app.command(epilog=EPILOG)
@verb
def predict(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder that agglo fit --keep-model wrote, or of a saved model.")
    ],
    data: Annotated[Path, typer.Argument(metavar="NEW", help="New points: as DATA of agglo fit.")],
    array: Annotated[str | None, typer.Option(help="Array of an .npz file.", rich_help_panel=INPUT)] = None,
    no_header: NoHeader = False,
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
        from agglo import files, modelfile, pipeline

        rule = rule_of(n_clusters, round, height) or {}
        files.check_label_format(out)
    with failing(BAD_INPUT):
        model = modelfile.load(run)
        names = list(model.__dict__.pop("feature_names_in_", []))  # columns are chosen by them, here
        table = data.suffix.lower() in (".parquet", ".csv", ".tsv")
        X = pipeline.read(data, None, None, names if names and table else None, array, not no_header).X
        if X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"{data} has points of {X.shape[1]} columns, but those of the run have {model.n_features_in_}"
            )
    model.set_params(n_jobs=jobs, verbose=not quiet)
    with failing(USAGE):
        labels = model.predict(X, **rule)
    with failing(CANNOT_WRITE):
        files.write_labels(labels, out)
    new = int((labels < 0).sum())
    result = {"run": str(run), "points": len(labels), "new": new, "rule": rule, "written": str(out)}
    rows = [("points", f"{len(labels)}, of which {new} are in no cluster"), ("written", str(out))]
    tell(result, rows, as_json, quiet)
