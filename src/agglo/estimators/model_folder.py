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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import __version__
from agglo._arrays import release
from agglo.estimators.run_folder import (
    GRAPH,
    GRAPH_TREE,
    KNOWN,
    MODEL,
    MODEL_FILES,
    POINTS,
    RECORDS,
    SPARSE_POINTS,
    TREE,
    Write,
    write_folder,
)
from agglo.io.atomic import read_consistently, resolve_file, write_array
from agglo.io.checksum import has_valid_checksum, hash_file
from agglo.neighbors.graph import NeighborGraph, RecallEstimate
from agglo.neighbors.index import QUERY_METHODS, NeighborIndex
from agglo.points.dedup import Duplicates
from agglo.rounds.constraints import Constraints, check_constraints
from agglo.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from agglo.estimators.base import Clusterer

VERSION = 1

_CHUNK = 1 << 24  # bytes that are read at a time


def save(
    model: Clusterer, folder: str | os.PathLike[str], points: str | os.PathLike[str] | None = None
) -> list[Path]:
    """Write a fitted model to ``folder``; see :meth:`agglo.SCC.save`."""
    home = Path(folder)
    if home.exists() and not home.is_dir():
        raise FileExistsError(f"cannot write to {home}: it is a file; pass the name of a folder")
    others = home.exists() and any(not entry.name.startswith(".agglo-") for entry in home.iterdir())
    if others and not resolve_file(home, MODEL).exists() and not resolve_file(home, TREE).exists():
        raise FileExistsError(
            f"will not write to {home}: it is not empty and holds no model; choose another folder"
        )
    files, record = contents(model, points)
    return write_folder(home, files, {MODEL: record})


def contents(
    model: Clusterer, points: str | os.PathLike[str] | None = None
) -> tuple[dict[str, Write], dict[str, Any]]:
    """Return functions that write the files of a fitted model, by their names, and its record."""
    fitted = model._fitted
    writers: dict[str, Write] = {
        TREE: model.tree_.save,
        GRAPH: lambda path: _write_graph(model.graph_, path),
        KNOWN: lambda path: _write_known(model, path),
    }
    if model._duplicates.n_duplicates:
        writers[GRAPH_TREE] = model._tree.save
    about: dict[str, Any] | None = None
    if fitted is not None:
        X = fitted.X
        about = {"sparse": bool(sp.issparse(X)), "method": fitted.method, "effort": fitted.parameters}
        about["seed"] = int(fitted.seed)
        if points is not None:
            if model._counted is not None:
                raise ValueError("points is given, but some have weight 0 and are saved apart: leave it out")
            about |= _reference(X, Path(points), model._duplicates)
        elif sp.issparse(X):
            writers[SPARSE_POINTS] = lambda path: _write_sparse(X, path)
        else:
            writers[POINTS] = lambda path: write_array(X, path)
    elif points is not None:
        raise ValueError("points is given, but the model is of a graph and has none: leave it out")
    parameters = model.get_params(deep=False) | {"connect": model._connect()}
    del parameters["top"]  # the deprecated alias of connect
    if isinstance(model.random_state, np.random.RandomState):
        parameters["random_state"] = model._seed  # the seed that it gave
    record = {
        "agglo": __version__,
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": {name: _plain(name, value) for name, value in parameters.items()},
        "round": model.round_,
        "features": int(model.n_features_in_),
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "graph": _about_graph(model.graph_),
        "points": about,
    }
    return writers, record


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
    return read_consistently(home, RECORDS, lambda: _load(home))


def _load(home: Path) -> Clusterer:
    record = _record(home)
    for name, known in record["files"].items():
        path = resolve_file(home, name)
        if not path.is_file():
            raise FileNotFoundError(f"{home} holds no whole model: {name} is not there; save it again")
        if hash_file(path) != known:
            raise ValueError(f"{path} is damaged, or not of the same save as {MODEL}: save the model again")
    try:
        return _model(home, record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _broken(home, f"{type(error).__name__}: {error}") from error


def _model(home: Path, record: dict[str, Any]) -> Clusterer:
    from agglo.estimators import scc as estimator

    kinds = {"SCC": estimator.SCC, "Affinity": estimator.Affinity, "HAC": estimator.HAC}
    parameters = {name: _value(value) for name, value in record["parameters"].items()}
    if "top" in parameters:  # the name of connect in models that earlier versions saved
        parameters["connect"] = parameters.pop("top")
    model: Clusterer = kinds[record["class"]](**parameters)
    graph, tree = _read_graph(resolve_file(home, GRAPH), record["graph"]), Hierarchy.load(resolve_file(home, TREE))
    model._known, model._duplicates = _read_known(resolve_file(home, KNOWN))
    _read_uncounted(model, resolve_file(home, KNOWN))
    model._tree = Hierarchy.load(resolve_file(home, GRAPH_TREE)) if model._duplicates.n_duplicates else tree
    about, fitted = record["points"], None
    if about is not None:
        if about["method"] not in QUERY_METHODS:
            raise ValueError(f"method {about['method']!r} is unknown")
        X = _points(home, about, model._duplicates)
        model._seed = int(about.get("seed", model.random_state))
        settings = (about["method"], about["effort"], model.recall, model._seed, graph.cells)
        fitted = NeighborIndex(X, str(graph.metric), *settings)
        if X.shape[1] != record["features"] or len(fitted) != graph.n_points:
            raise ValueError(f"the points are of shape {X.shape}, and the graph has {graph.n_points}")
    leaves = tree.n_leaves, model._tree.n_leaves
    if (
        leaves != (len(model._duplicates.inverse), graph.n_points)
        or len(model._duplicates.first) != graph.n_points
    ):
        raise ValueError(f"the tree has {tree.n_leaves} leaves, and the graph {graph.n_points} points")
    model._fitted, model.query_method_ = fitted, None if fitted is None else fitted.method
    model.graph_, model.tree_, model.n_features_in_ = graph, tree, int(record["features"])
    if record["feature_names"]:
        model.feature_names_in_ = np.array(record["feature_names"], object)
    model.round_ = record["round"]
    model._label(None)
    return model


def _record(home: Path) -> dict[str, Any]:
    path = resolve_file(home, MODEL)
    if not path.is_file():
        raise FileNotFoundError(f"{home} holds no model: there is no {MODEL} in it; write one with save")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _broken(home, f"it is not JSON ({error})") from error
    version = record.get("version") if isinstance(record, dict) else None
    if version != VERSION:
        raise _broken(home, f"it is of version {version}, and this agglo reads version {VERSION}")
    files = record.get("files")
    if not isinstance(files, dict) or not {TREE, GRAPH, KNOWN} <= set(files) <= MODEL_FILES:
        raise _broken(home, "it does not list the files of a model")
    if not has_valid_checksum(record):
        raise _broken(home, "it is damaged (its checksum does not match)")
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
            return [release(arrays[name]) for name in names]
    except (OSError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _write_known(model: Clusterer, path: Path) -> None:
    known, duplicates = model._known, model._duplicates
    weights = np.empty(0) if known.weights is None else known.weights
    with path.open("wb") as file:
        np.savez(
            file,
            place=duplicates.inverse,
            weights=weights,
            must=known.must,
            cannot=known.cannot,
            groups=known.groups,
            most=np.array(known.most),
            **_uncounted_arrays(model),  # type: ignore[arg-type]  # none of them is called allow_pickle
        )


def _uncounted_arrays(model: Clusterer) -> dict[str, npt.NDArray[Any]]:
    """Return which points are of positive weight, and the rows of the others; nothing if all are."""
    if model._counted is None:
        return {}
    if not sp.issparse(model._uncounted):
        return {"counted": model._counted, "uncounted": model._uncounted}
    rows = sp.csr_array(model._uncounted)
    columns = {name: getattr(rows, name) for name in ("data", "indices", "indptr")}
    return {"counted": model._counted} | {f"uncounted_{name}": column for name, column in columns.items()}


def _read_uncounted(model: Clusterer, path: Path) -> None:
    """Set what :func:`_uncounted_arrays` wrote, if it is there."""
    with np.load(path, allow_pickle=False) as arrays:
        if "counted" not in arrays:
            return
        model._counted = release(arrays["counted"])
        if "uncounted" in arrays:
            model._uncounted = arrays["uncounted"]
        else:
            columns = tuple(arrays[f"uncounted_{name}"] for name in ("data", "indices", "indptr"))
            model._uncounted = sp.csr_array(columns)
    counted, n_points = model._counted, len(model._counted) + model._uncounted.shape[0]
    if len(counted) != len(model._duplicates.inverse) or not 0 <= counted[0] <= counted[-1] < n_points:
        raise ValueError(f"{path} does not say which points are of positive weight")
    if (np.diff(counted) <= 0).any():
        raise ValueError(f"{path} does not say which points are of positive weight")


def _read_known(path: Path) -> tuple[Constraints, Duplicates]:
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
    return known, Duplicates(point, place)


def _read_graph(path: Path, about: Mapping[str, Any]) -> NeighborGraph:
    indptr, indices, weights, cells = _read_arrays(path, ("indptr", "indices", "weights", "cells"))
    known: dict[str, Any] = {name: about[name] for name in ("kind", "missing", "metric", "method", "parameters")}
    if about["recall_estimate"] is not None:
        known["recall_estimate"] = RecallEstimate(*about["recall_estimate"])
    if len(cells):
        known["cells"] = cells
    return NeighborGraph(indptr, indices, weights, **known)


def _write_sparse(X: Any, path: Path) -> None:
    with path.open("wb") as file:
        sp.save_npz(file, sp.csr_array(X), compressed=False)


def _points(home: Path, about: Mapping[str, Any], duplicates: Duplicates) -> Any:
    if "path" not in about:
        if about["sparse"]:
            return sp.csr_array(sp.load_npz(resolve_file(home, SPARSE_POINTS)))
        return np.lib.format.open_memmap(resolve_file(home, POINTS), mode="r")
    path = Path(about["path"])
    if not path.is_file():
        raise ValueError(f"the points were saved by reference, and {path} is not there any more: bring it back")
    X = np.lib.format.open_memmap(path, mode="r")
    if [list(X.shape), str(X.dtype)] != [about["shape"], about["dtype"]] or _checksum(X) != about["checksum"]:
        raise ValueError(f"{path} does not hold the points that were fitted any more: bring them back")
    return duplicates.select_first(X)


def _reference(X: Any, path: Path, duplicates: Duplicates) -> dict[str, Any]:
    """What there is to know of points in a file, if they are those of the model."""
    if sp.issparse(X):
        raise ValueError("sparse points cannot be saved by reference: leave points out")
    there = np.lib.format.open_memmap(path, mode="r")
    shape = (len(duplicates.inverse), X.shape[1])
    if there.shape != shape or there.dtype != X.dtype or _checksum(duplicates.select_first(there)) != _checksum(X):
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
