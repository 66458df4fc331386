"""The stages in order for the command line: what is to be done, what came out, and a record of both."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import __version__, _core
from agglo._validation import check_seed, effective_n_threads
from agglo.estimators.duplicates import collapse_duplicates, expand_duplicates, map_constraints
from agglo.estimators.labels import number_clusters
from agglo.evaluation import metrics
from agglo.io.points import read_labels, read_points
from agglo.io.tables import CsvOptions, ReadError
from agglo.neighbors.graph import NeighborGraph
from agglo.neighbors.missing import MissingRule, check_missing
from agglo.neighbors.search import METRICS, neighbor_graph
from agglo.neighbors.sparse import check_sparse
from agglo.neighbors.validation import check_n_neighbors, check_recall, clip_n_neighbors
from agglo.points.dedup import Duplicates
from agglo.points.validation import check_points
from agglo.progress import Progress
from agglo.rounds.algorithms import affinity, hac, scc
from agglo.rounds.constraints import Constraints, check_constraints
from agglo.tree.cut import check_rule, select_round
from agglo.tree.hierarchy import Hierarchy

_MOST_ROUNDS = 1000  # in a record; HAC has one a merge, and all are in the tree's file
_ALGORITHMS: dict[str, Callable[..., Hierarchy]] = {"scc": scc, "affinity": affinity, "hac": hac}


@dataclass(frozen=True)
class Plan:
    """What is to be done with points; the names and defaults are those of the functions that do it."""

    metric: str = "cosine"
    n_neighbors: int | str = 25
    method: str = "auto"
    recall: float = 0.95
    missing: MissingRule = "mean"
    seed: int = 0
    algorithm: str = "scc"
    linkage: str = "average"
    connect: str | None = "auto"
    schedule: Mapping[str, Any] = field(default_factory=dict)  # thresholds, n_thresholds, advance: for SCC alone
    max_cluster_size: float | None = None
    rule: Mapping[str, Any] = field(default_factory=lambda: {"round": "persistent"})
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.algorithm != "scc" and self.schedule:
            options = ", ".join("--" + name.replace("_", "-") for name in self.schedule)
            raise ValueError(f"--algorithm {self.algorithm} has no thresholds: leave out {options}")
        effective_n_threads(self.n_jobs)
        check_recall(self.recall)
        check_seed(self.seed)
        if self.n_neighbors != "all":  # whose memory depends on the number of points
            check_n_neighbors(self.n_neighbors, 2**31)
        check_missing(self.missing)
        pair = NeighborGraph.from_edges([0], [1], [1.0], kind=METRICS[self.metric], metric=self.metric)
        self.tree(pair, np.eye(2, dtype=np.float32))  # tries the rest out

    def tree(self, graph: NeighborGraph, X: Any, progress: Progress | None = None, **known: Any) -> Hierarchy:
        """The tree that the algorithm makes of points and their graph, and of what else is known of the points."""
        settings: dict[str, Any] = {
            "linkage": self.linkage,
            "connect": self.connect,
            "X": X,
            "n_jobs": self.n_jobs,
        }
        return _ALGORITHMS[self.algorithm](graph, **settings, **self.schedule, **known, progress=progress)


@dataclass(frozen=True, eq=False)
class Data:
    """Points to cluster, their classes if known, and where they are from."""

    X: Any  # an array, or a SciPy sparse matrix
    y: npt.NDArray[np.int32] | None
    about: dict[str, Any]
    known: Mapping[str, Any] = field(default_factory=dict)  # must_link, cannot_link, sample_weight


@dataclass(frozen=True, eq=False)
class Run:
    """What came out, and the record of it as JSON can hold it."""

    data: Data
    known: Constraints
    duplicates: Duplicates
    X: Any  # the points of the graph, fewer than those of the data where these have copies
    graph: NeighborGraph
    graph_tree: Hierarchy
    tree: Hierarchy
    labels: npt.NDArray[np.int64]
    record: dict[str, Any]


def read(
    path: Path,
    label_path: Path | None = None,
    label_column: str | None = None,
    *,
    columns: list[str] | None = None,
    drop: list[str] | None = None,
    array: str | None = None,
    csv: CsvOptions | None = None,
    known: Mapping[str, Path | None] | None = None,
) -> Data:
    """Read points from a file, and classes and constraints from others if they are given; check all of them."""
    if label_path is not None and label_path.exists() and path.exists() and label_path.samefile(path):
        if label_column is None:
            raise ValueError(
                f"{path} holds points and known classes: name the column of classes with --label-column, "
                "lest it be taken for a feature"
            )
        label_path = None
    inside = label_column if label_path is None else None
    points = read_points(path, columns=columns, drop=drop or (), array=array, label_column=inside, csv=csv)
    try:
        X = points.X
        if sp.issparse(X):
            check_sparse(X)
        else:
            X = check_points(X, compact=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be clustered: {error}") from error
    given = points.labels
    if label_path is not None:
        given = read_labels(label_path, column=label_column, csv=csv)
    about = {"path": str(path), "columns": points.columns, "classes_from": str(label_path or inside or "") or None}
    there = {name: file for name, file in (known or {}).items() if file is not None}
    facts: dict[str, Any] = {
        name: read_weights(file, csv) if name == "sample_weight" else groups(file, csv)
        for name, file in there.items()
    }
    check_constraints(X.shape[0], **facts)
    about |= {name: str(file) for name, file in there.items()}
    return Data(X, None if given is None else classes(given, X.shape[0]), about, facts)


def read_weights(path: Path, csv: CsvOptions | None = None) -> npt.NDArray[Any]:
    """Read the weights of points from a file: its only column, or the column ``label``."""
    try:
        return read_labels(path, csv=csv)
    except ReadError as error:
        raise ReadError(error.cause, "pass a file with one column, the weight of each point") from error


def groups(path: Path, csv: CsvOptions | None = None) -> npt.NDArray[np.int64]:
    """Read groups of points from a file: one row per group, with the row numbers of its points."""
    remedy = "pass a table with one row per group: the numbers of the rows of DATA in it, from 0"
    try:
        given = read_points(path, csv=csv, row_numbers=True).X
    except ReadError as error:
        raise ReadError(error.cause, remedy) from error
    if sp.issparse(given) or given.ndim != 2 or given.dtype.kind not in "iufb" or not np.isfinite(given).all():
        raise ReadError(f"{path} holds no groups of points", remedy)
    if not np.array_equal(given, given.astype(np.int64)):
        raise ReadError(f"{path} holds no groups of points, but numbers that are not whole", remedy)
    return np.asarray(given.astype(np.int64))


def classes(labels: npt.NDArray[Any], n_points: int) -> npt.NDArray[np.int32]:
    """Known classes as numbers from 0, if a tree of so many points can be scored with them."""
    if len(labels) != n_points:
        raise ValueError(f"there are {len(labels)} known classes for {n_points} points: pass one per point")
    codes = metrics.encode_labels("labels", labels)
    if int(codes.max()) + 1 == n_points:
        raise ValueError(
            f"no two of {n_points} points are of the same known class, so there is nothing to score: "
            "pass the classes, not something else such as names of points"
        )
    return codes


def run(plan: Plan, data: Data, progress: Progress | None = None) -> Run:
    """Search, merge, cut and score."""
    check_rule(data.X.shape[0], **_full(plan.rule))
    known = check_constraints(data.X.shape[0], max_cluster_size=plan.max_cluster_size, **data.known)
    start = time.perf_counter()
    duplicates = collapse_duplicates(data.X, known, plan.n_jobs)
    X = duplicates.select_first(data.X)
    graph = neighbor_graph(
        *(X, clip_n_neighbors(plan.n_neighbors, X.shape[0]), plan.metric, plan.method, plan.n_jobs),
        recall=plan.recall,
        missing=plan.missing,
        random_state=plan.seed,
        progress=progress,
    )
    searched = time.perf_counter()
    graph_tree = plan.tree(graph, X, progress, **map_constraints(duplicates, known))
    tree = expand_duplicates(graph_tree, duplicates, known)
    merged = time.perf_counter()
    labels, about = cut(tree, plan.rule)
    labels = number_clusters(labels, known.weights, X, duplicates.inverse)
    record = {
        "agglo": __version__,
        "data": {
            **data.about,
            "points": data.X.shape[0],
            "distinct": X.shape[0],
            "features": data.X.shape[1],
            "dtype": str(data.X.dtype),
        },
        "parameters": {
            "metric": plan.metric,
            "n_neighbors": plan.n_neighbors,
            "method": plan.method,
            "recall": plan.recall,
            "missing": plan.missing,
            "seed": plan.seed,
            "algorithm": plan.algorithm,
            "linkage": plan.linkage,
            "connect": plan.connect,
            "max_cluster_size": plan.max_cluster_size,
            **plan.schedule,
            "threads": effective_n_threads(plan.n_jobs),
        },
        "graph": {
            "method": graph.method,
            "parameters": dict(graph.parameters),
            "recall_estimate": None if graph.recall_estimate is None else graph.recall_estimate._asdict(),
            "kind": graph.kind,
            "edges": graph.n_edges,
            "missing": graph.missing,
            "smallest": float(graph.weights.min()) if graph.n_edges else None,
            "largest": float(graph.weights.max()) if graph.n_edges else None,
            "bytes": graph.nbytes,
        },
        **tree_record(tree),
        **about,
        "scores": None if data.y is None else scores(tree, labels, data.y),
        "seconds": {"search": round(searched - start, 3), "rounds": round(merged - searched, 3)},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "pyarrow")},
            "instructions": _core.simd_level(),
        },
    }
    return Run(data, known, duplicates, X, graph, graph_tree, tree, labels, record)


def model_of(plan: Plan, run: Run) -> Any:
    """The clusterer that would have come to the same, fitted, for points to come."""
    from agglo.estimators import scc as estimator

    kinds = {"scc": estimator.SCC, "affinity": estimator.Affinity, "hac": estimator.HAC}
    names = ("metric", "n_neighbors", "method", "recall", "missing", "linkage", "connect", "max_cluster_size")
    settings = {name: getattr(plan, name) for name in names} | {"random_state": plan.seed, "n_jobs": plan.n_jobs}
    model = kinds[plan.algorithm](**settings, **plan.schedule, **plan.rule)
    model.n_features_in_ = run.data.X.shape[1]
    if run.data.about["columns"]:
        model.feature_names_in_ = np.array(run.data.about["columns"], object)
    model._seed = plan.seed
    model._keep(run.X, run.graph)
    model._known, model._duplicates, model._tree = run.known, run.duplicates, run.graph_tree
    model.graph_, model.graph_index_ = run.graph, run.duplicates.inverse
    model.tree_, model.labels_ = run.tree, run.labels
    model.round_ = run.record["labels"]["round"]
    return model


def tree_record(tree: Hierarchy) -> dict[str, Any]:
    """What a tree itself tells, the clusters after each round included unless there are very many."""
    rounds = [
        {
            "threshold": _known(step.threshold),
            "before": step.before,
            "after": step.after,
            "seconds": _known(step.seconds),
        }
        for step in tree.rounds[:_MOST_ROUNDS]
    ]
    return {
        "tree": {
            "points": tree.n_leaves,
            "nodes": tree.n_nodes,
            "rounds": len(tree.rounds),
            "fewest_clusters": int(tree.rounds.after[-1]) if len(tree.rounds) else tree.n_leaves,
            "height": float(tree.height[-1]),
            **tree.about,
        },
        "rounds": rounds if len(tree.rounds) <= _MOST_ROUNDS else None,
    }


def cut(tree: Hierarchy, rule: Mapping[str, Any]) -> tuple[npt.NDArray[np.int64], dict[str, Any]]:
    """Labels by a rule, and what they are like."""
    full = _full(rule)
    check_rule(tree.n_leaves, **full)
    chosen = None
    if full["height"] is None:
        chosen = select_round(tree, full["n_clusters"], full["round"])
    labels = tree.cut(round=chosen, height=full["height"])
    sizes = np.sort(np.bincount(labels))[::-1]
    about = {
        "rule": {name: str(value) if value in (np.inf, -np.inf) else value for name, value in rule.items()},
        "round": chosen,
        "clusters": len(sizes),
        "largest": sizes[:10].tolist(),
        "single_points": int((sizes == 1).sum()),
    }
    return labels, {"labels": about}


def scores(tree: Hierarchy, labels: npt.NDArray[np.int64], y: npt.NDArray[np.int32]) -> dict[str, Any]:
    """How well the tree, the labels and the best of all rounds fit known classes."""
    flat = metrics.pairwise_f1(y, labels)
    by_round = metrics.pairwise_f1_by_round(tree, y)
    best = int(by_round.f1.argmax())
    return {
        "classes": int(y.max()) + 1,
        "dendrogram_purity": metrics.dendrogram_purity(tree, y),
        "labels": flat._asdict(),
        "best_round": {
            "round": best,
            "clusters": int(tree.rounds.after[best - 1]) if best else tree.n_leaves,
            **{name: float(column[best]) for name, column in by_round._asdict().items()},
        },
    }


def _full(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {"n_clusters": None, "round": None, "height": None, **rule}


def _known(number: float) -> float | None:
    return None if np.isnan(number) else number
