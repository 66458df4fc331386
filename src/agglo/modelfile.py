"""A fitted model on disk: a folder with its parameters, graph, tree and points, all of them or none.

``known.npz`` has what was known of the points beforehand, and which of the graph's points stands for each. Where
points are equal, so that these are fewer, ``graph_tree.parquet`` is the tree of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import __version__
from agglo.constraints import Constraints, check_constraints
from agglo.folding import Folding
from agglo.graph import NeighborGraph, RecallEstimate
from agglo.outputs import replacing_all
from agglo.search.queries import QUERIED, Fitted
from agglo.tree import Hierarchy

if TYPE_CHECKING:
    from agglo.clusterer import Clusterer

MODEL = "model.json"
TREE = "tree.parquet"
GRAPH_TREE = "graph_tree.parquet"
GRAPH = "graph.npz"
KNOWN = "known.npz"
POINTS = "points.npy"
SPARSE_POINTS = "points.npz"
VERSION = 1

_CHUNK = 1 << 24  # bytes that are read at a time


def save(
    model: Clusterer, folder: str | os.PathLike[str], points: str | os.PathLike[str] | None = None
) -> list[Path]:
    """Write a fitted model to ``folder``; see :meth:`agglo.SCC.save`."""
    home = Path(folder)
    if home.exists() and not home.is_dir():
        raise FileExistsError(f"cannot write to {home}: it is a file; pass the name of a folder")
    if home.exists() and any(home.iterdir()) and not (home / MODEL).exists() and not (home / TREE).exists():
        raise FileExistsError(
            f"will not write to {home}: it is not empty and holds no model; choose another folder"
        )
    fitted = model._fitted
    writers: dict[str, Callable[[Path], None]] = {
        TREE: model.tree_.save,
        GRAPH: lambda path: _write_graph(model.graph_, path),
        KNOWN: lambda path: _write_known(model._known, model._folding, path),
    }
    if model._folding.n_copies:
        writers[GRAPH_TREE] = model._tree.save
    about: dict[str, Any] | None = None
    if fitted is not None:
        X = fitted.X
        about = {"sparse": bool(sp.issparse(X)), "method": fitted.method, "effort": fitted.effort}
        if points is not None:
            about |= _reference(X, Path(points), model._folding)
        elif sp.issparse(X):
            writers[SPARSE_POINTS] = lambda path: _write_sparse(X, path)
        else:
            writers[POINTS] = lambda path: _write_array(X, path)
    elif points is not None:
        raise ValueError("points is given, but the model is of a graph and has none: leave it out")
    record = {
        "agglo": __version__,
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": {name: _plain(name, value) for name, value in model.get_params(deep=False).items()},
        "round": model.round_,
        "features": int(model.n_features_in_),
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "graph": _about_graph(model.graph_),
        "points": about,
    }
    home.mkdir(parents=True, exist_ok=True)
    paths = [home / name for name in (*writers, MODEL)]
    with replacing_all(paths) as partials:
        for (_, write), partial in zip(writers.items(), partials, strict=False):
            write(partial)
        # What belongs together is known by its content: files of another save are found out.
        sums = {name: _checksum_of_file(partial) for name, partial in zip(writers, partials, strict=False)}
        text = json.dumps({**record, "files": sums}, indent=2, allow_nan=False)
        partials[-1].write_text(text + "\n", encoding="utf-8")
    return paths


def load(folder: str | os.PathLike[str]) -> Clusterer:
    """The model that was saved to ``folder``, to go on with: predict, add points, cut.

    Nothing in the folder is executed, and everything is checked: files that are damaged, or not of one save, are
    an error, and so are points by reference that are not the same any more.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
    >>> files = agglo.SCC(metric="euclidean").fit(X).save("model")
    >>> model = agglo.load("model")
    >>> model
    SCC(metric='euclidean')
    >>> model.predict([[0.4], [41.0]])
    array([0, 1])
    """
    home = Path(folder)
    if not (home / MODEL).is_file():
        raise FileNotFoundError(f"{home} holds no model: there is no {MODEL} in it; write one with save")
    record = _record(home)
    for name, known in record["files"].items():
        if not (home / name).is_file():
            raise FileNotFoundError(f"{home} holds no whole model: {name} is not there; save it again")
        if _checksum_of_file(home / name) != known:
            raise ValueError(f"{home / name} is damaged, or not of the same save as {MODEL}: save the model again")
    try:
        return _model(home, record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _broken(home, f"{type(error).__name__}: {error}") from error


def _model(home: Path, record: dict[str, Any]) -> Clusterer:
    from agglo import estimator

    kinds = {"SCC": estimator.SCC, "Affinity": estimator.Affinity, "HAC": estimator.HAC}
    model: Clusterer = kinds[record["class"]](**{k: _value(v) for k, v in record["parameters"].items()})
    graph, tree = _read_graph(home / GRAPH, record["graph"]), Hierarchy.load(home / TREE)
    model._known, model._folding = _read_known(home / KNOWN)
    model._tree = Hierarchy.load(home / GRAPH_TREE) if model._folding.n_copies else tree
    model.graph_index_ = model._folding.place
    about, fitted = record["points"], None
    if about is not None:
        if about["method"] not in QUERIED:
            raise ValueError(f"method {about['method']!r} is unknown")
        X = _points(home, about, model._folding)
        settings = (about["method"], about["effort"], model.recall, model.random_state, graph.cells)
        fitted = Fitted(X, str(graph.metric), *settings)
        if X.shape[1] != record["features"] or len(fitted) != graph.n_points:
            raise ValueError(f"the points are of shape {X.shape}, and the graph has {graph.n_points}")
    leaves = tree.n_leaves, model._tree.n_leaves
    if leaves != (len(model._folding.place), graph.n_points) or len(model._folding.point) != graph.n_points:
        raise ValueError(f"the tree has {tree.n_leaves} leaves, and the graph {graph.n_points} points")
    model._fitted, model.query_method_ = fitted, None if fitted is None else fitted.method
    model.graph_, model.tree_, model.n_features_in_ = graph, tree, int(record["features"])
    if record["feature_names"]:
        model.feature_names_in_ = np.array(record["feature_names"], object)
    model.round_ = record["round"]
    model.labels_ = tree.cut(round=model.round_, height=model.height if model.round_ is None else None)
    return model


def _record(home: Path) -> dict[str, Any]:
    try:
        record = json.loads((home / MODEL).read_text(encoding="utf-8"))
    except ValueError as error:
        raise _broken(home, f"it is not JSON ({error})") from error
    version = record.get("version") if isinstance(record, dict) else None
    if version != VERSION:
        raise _broken(home, f"it is of version {version}, and this agglo reads version {VERSION}")
    files = record.get("files")
    known = {TREE, GRAPH, KNOWN, GRAPH_TREE, POINTS, SPARSE_POINTS}
    if not isinstance(files, dict) or not {TREE, GRAPH, KNOWN} <= set(files) <= known:
        raise _broken(home, "it does not list the files of a model")
    checked: dict[str, Any] = record
    return checked


def _broken(home: Path, cause: str) -> ValueError:
    return ValueError(f"{home / MODEL} is no model of agglo's: {cause}; save it again")


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(name, item) for item in np.asarray(value).tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"{name} is a {type(value).__name__}, which cannot be saved: only numbers, names and lists of numbers can"
    )


def _value(plain: Any) -> Any:
    return float(plain["float"]) if isinstance(plain, dict) else plain


def _about_graph(graph: NeighborGraph) -> dict[str, Any]:
    estimate = graph.recall_estimate
    parameters = {name: _plain(name, value) for name, value in graph.parameters.items()}
    return {
        "kind": graph.kind,
        "missing": graph.missing,
        "metric": graph.metric,
        "method": graph.method,
        "parameters": parameters,
        "recall_estimate": None if estimate is None else list(estimate),
    }


def _write_graph(graph: NeighborGraph, path: Path) -> None:
    with path.open("wb") as file:
        cells = np.empty(0, np.int32) if graph.cells is None else graph.cells
        np.savez(file, indptr=graph.indptr, indices=graph.indices, weights=graph.weights, cells=cells)


def _read_arrays(path: Path, names: tuple[str, ...]) -> list[npt.NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return [arrays[name] for name in names]
    except (OSError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _write_known(known: Constraints, folded: Folding, path: Path) -> None:
    weights = np.empty(0) if known.weights is None else known.weights
    with path.open("wb") as file:
        np.savez(
            file,
            place=folded.place,
            weights=weights,
            must=known.must,
            cannot=known.cannot,
            groups=known.groups,
            most=np.array(known.most),
        )


def _read_known(path: Path) -> tuple[Constraints, Folding]:
    names = ("place", "weights", "must", "cannot", "groups", "most")
    place, weights, must, cannot, groups, most = _read_arrays(path, names)
    point = np.unique(place, return_index=True)[1]
    if place.ndim != 1 or place.dtype != np.int64 or (np.diff(point) <= 0).any() or place.max() != len(point) - 1:
        raise ValueError(f"{path} does not say which point of the graph stands for each")
    given = Constraints(must, cannot, groups, float(most), weights if len(weights) else None)
    known = check_constraints(
        len(place),
        must,
        [*cannot.tolist(), *given.large_groups()],
        given.most if np.isfinite(given.most) else None,
        given.weights,
    )
    return known, Folding(point, place)


def _read_graph(path: Path, about: Mapping[str, Any]) -> NeighborGraph:
    indptr, indices, weights, cells = _read_arrays(path, ("indptr", "indices", "weights", "cells"))
    known: dict[str, Any] = {name: about[name] for name in ("kind", "missing", "metric", "method", "parameters")}
    if about["recall_estimate"] is not None:
        known["recall_estimate"] = RecallEstimate(*about["recall_estimate"])
    if len(cells):
        known["cells"] = cells
    return NeighborGraph(indptr, indices, weights, **known)


def _write_array(X: npt.NDArray[Any], path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, X, allow_pickle=False)


def _write_sparse(X: Any, path: Path) -> None:
    with path.open("wb") as file:
        sp.save_npz(file, sp.csr_array(X), compressed=False)


def _points(home: Path, about: Mapping[str, Any], folded: Folding) -> Any:
    if "path" not in about:
        if about["sparse"]:
            return sp.csr_array(sp.load_npz(home / SPARSE_POINTS))
        return np.lib.format.open_memmap(home / POINTS, mode="r")
    path = Path(about["path"])
    if not path.is_file():
        raise ValueError(f"the points were saved by reference, and {path} is not there any more: bring it back")
    X = np.lib.format.open_memmap(path, mode="r")
    if [list(X.shape), str(X.dtype)] != [about["shape"], about["dtype"]] or _checksum(X) != about["checksum"]:
        raise ValueError(f"{path} does not hold the points that were fitted any more: bring them back")
    return folded.rows(X)


def _reference(X: Any, path: Path, folded: Folding) -> dict[str, Any]:
    """What there is to know of points in a file, if they are those of the model."""
    if sp.issparse(X):
        raise ValueError("sparse points cannot be saved by reference: leave points out")
    there = np.lib.format.open_memmap(path, mode="r")
    shape = (len(folded.place), X.shape[1])
    if there.shape != shape or there.dtype != X.dtype or _checksum(folded.rows(there)) != _checksum(X):
        raise ValueError(
            f"{path} holds an array of shape {there.shape} and dtype {there.dtype} that is not the points of the "
            f"model, of shape {shape} and dtype {X.dtype}: pass the file that was fitted, or leave points out"
        )
    return {
        "path": str(path.resolve()),
        "shape": list(shape),
        "dtype": str(X.dtype),
        "checksum": _checksum(there),
    }


def _checksum(X: npt.NDArray[Any]) -> str:
    """A hash of the rows of an array, read a few at a time."""
    digest = hashlib.blake2b(digest_size=16)
    rows = max(1, _CHUNK // max(1, X.nbytes // max(1, len(X))))
    for first in range(0, len(X), rows):
        digest.update(np.ascontiguousarray(X[first : first + rows]).view(np.uint8).data)
    return digest.hexdigest()


def _checksum_of_file(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
