"""The command ``agglo predict``: assign new points to the clusters of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agglo.cli import options as opt
from agglo.cli.app import BAD_INPUT, CANNOT_WRITE, USAGE, command, exit_with, print_result


@command()
def predict(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of agglo fit or text --keep-model, or of a saved model.")
    ],
    data: Annotated[Path, typer.Argument(metavar="NEW", help="File of new points, in the formats of agglo fit.")],
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    array: opt.NpzArray = None,
    header: opt.Header = None,
    encoding: opt.Encoding = "utf-8",
    delimiter: opt.Delimiter = None,
    n_clusters: opt.NClusters = None,
    round: opt.Round = None,
    height: opt.Height = None,
    out: Annotated[Path, opt.label_file] = Path("labels.parquet"),
    jobs: opt.Jobs = None,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Assign new points to the clusters of a model.

    The label is -1 only if a point joins no cluster up to the selected level.
    Points of an unknown kind usually get a label.

    The labels are the cluster numbers of the run, unless --n-clusters, --round
    or --height selects another cut of its tree. For a run of agglo text, NEW
    has the embeddings of the new texts.

    Example: agglo predict out new.npy -o labels.csv
    """
    with exit_with(USAGE):
        from agglo._validation import effective_n_threads
        from agglo.cli.data import read_data
        from agglo.cli.record import cut_tree
        from agglo.estimators.run_folder import MODEL, load_record
        from agglo.estimators.scc import load
        from agglo.io.atomic import check_writable_file, resolve_file
        from agglo.io.files import ReadError
        from agglo.io.points import check_label_format, write_labels
        from agglo.text.tables import read_cluster_names

        rule = opt.parse_rule(n_clusters, round, height) or {}
        check_label_format(out)
        features = opt.parse_columns(columns, drop)
        csv = opt.csv_options(header, encoding, delimiter)
    with exit_with(CANNOT_WRITE):
        check_writable_file(out)
    with exit_with(BAD_INPUT):
        if not run.is_dir():
            raise FileNotFoundError(
                f"{run} is not a folder with a model: pass a folder that agglo fit --keep-model wrote"
            )
        is_text = "features_from" in (load_record(run) or {}).get("data", {})
        if not resolve_file(run, MODEL).exists():
            again = (
                "agglo text … --embeddings VECTORS --keep-model"
                if is_text
                else "agglo fit again, with --keep-model"
            )
            raise FileNotFoundError(
                f"{run} holds no model, which predictions need: there is no {MODEL} in it; run {again}"
            )
        model = load(run)
    with exit_with(USAGE):
        model.set_params(n_jobs=effective_n_threads(jobs), verbose=not quiet)
        # Raise before the search if the cut does not exist.
        clusters = cut_tree(model.tree_, rule)[0] if rule else model.labels_
    with exit_with(BAD_INPUT):
        cluster_names = read_cluster_names(run, model.tree_, clusters)
        names = list(model.__dict__.pop("feature_names_in_", []))  # read_data selects the columns by name
        is_table = data.suffix.lower() in (".parquet", ".csv", ".tsv")
        if names and is_table and columns is None and drop is None:
            features["columns"] = names
        remedy = (
            "pass the embeddings of the new texts as .npy" if is_text else "pass points with the same features"
        )
        try:
            X = read_data(data, **features, array=array, csv=csv).X
        except ReadError as error:
            if is_text and is_table:
                raise ReadError(error.cause, remedy) from error
            raise
        if X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"{data} has points of {X.shape[1]} columns, but those of the run have {model.n_features_in_}: "
                f"{remedy}"
            )
    with exit_with(USAGE):
        labels = model.predict(X, **rule)
    with exit_with(CANNOT_WRITE):
        write_labels(labels, out, names=cluster_names)
    n_new = int((labels < 0).sum())
    result = {"run": str(run), "points": len(labels), "new": n_new, "rule": rule, "written": str(out)}
    outside = f", of which {n_new} are in no cluster" if n_new else ""
    rows = [("points", f"{len(labels)}{outside}"), ("written", str(out))]
    print_result(result, rows, as_json, quiet)
