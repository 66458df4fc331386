"""Save and load a fitted clusterer as a folder: parameters, graph, tree and points, written atomically.

``known.npz`` contains the constraints and the groups of duplicates. Each group of duplicates is one point of the
graph. If there are duplicates, ``graph_tree.parquet`` contains the tree whose leaves are the points of the graph.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import __version__
from agglo._validation import release
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
    RunFiles,
    Write,
    load_record,
    write_folder,
)
from agglo.io.atomic import read_consistently, resolve_file, write_array
from agglo.io.files import explain_read_errors
from agglo.neighbors.graph import NeighborGraph, RecallEstimate
from agglo.neighbors.index import QUERY_METHODS, NeighborIndex
from agglo.neighbors.sparse import BINARY_METRICS
from agglo.points.points import Duplicates, check_points
from agglo.rounds.constraints import Constraints, check_constraints
from agglo.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from agglo.estimators.scc import Clusterer

T = TypeVar("T")

VERSION = 1

_CHUNK = 1 << 24  # number of bytes that are hashed at a time
_CSR_ARRAYS = ("data", "indices", "indptr")


def save_model(
    model: Clusterer, folder: str | os.PathLike[str], points: str | os.PathLike[str] | None = None
) -> list[Path]:
    """Write a fitted model to ``folder``; see :meth:`agglo.SCC.save`."""
    home = Path(folder)
    if home.exists() and not home.is_dir():
        raise FileExistsError(f"cannot write to {home}: it is a file; pass the name of a folder")
    has_files = home.exists() and any(not entry.name.startswith(".agglo-") for entry in home.iterdir())
    if has_files and not resolve_file(home, MODEL).exists() and not resolve_file(home, TREE).exists():
        raise FileExistsError(
            f"will not write to {home}: it is not empty and holds no model; choose another folder"
        )
    files, record = model_files(model, points)
    return write_folder(home, files, {MODEL: record})


def model_files(
    model: Clusterer, points: str | os.PathLike[str] | None = None
) -> tuple[dict[str, Write], dict[str, Any]]:
    """Return functions that write the files of a fitted model, by file name, and the model's JSON record."""
    index, duplicates = model._index, model._duplicates
    writers: dict[str, Write] = {
        TREE: model.tree_.save,
        GRAPH: lambda path: _write_graph(model.graph_, path),
        KNOWN: lambda path: _write_known(model, path),
    }
    if duplicates.n_duplicates:
        writers[GRAPH_TREE] = model._graph_tree.save
    about: dict[str, Any] | None = None
    if index is not None:
        about = {"sparse": bool(sp.issparse(index.X)), "method": index.method, "effort": index.parameters}
        about["seed"] = model._seed
        if points is not None:
            if model._weighted is not None:
                raise ValueError("points is given, but some have weight 0 and are saved apart: leave it out")
            about |= _describe_file(index.X, Path(points), duplicates)
        elif sp.issparse(index.X):
            writers[SPARSE_POINTS] = lambda path: _write_sparse(index.X, path)
        else:
            writers[POINTS] = lambda path: write_array(index.X, path)
    elif points is not None:
        raise ValueError("points is given, but the model is of a graph and has none: leave it out")
    parameters = model.get_params(deep=False) | {"connect": model._resolve_connect()}
    del parameters["top"]  # the deprecated alias of connect
    if isinstance(model.random_state, np.random.RandomState):
        parameters["random_state"] = model._seed  # the seed that the fit drew from this RandomState
    record = {
        "agglo": __version__,
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": {name: _to_json(name, value) for name, value in parameters.items()},
        "round": model.round_,
        "resolution": _to_json("resolution", model.resolution_),
        "features": int(model.n_features_in_),
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "graph": _describe_graph(model.graph_),
        "points": about,
    }
    return writers, record


def load_model(folder: str | os.PathLike[str], classes: Mapping[str, type[T]]) -> T:
    """Load and check the model in ``folder``; return the fitted estimator.

    The JSON record of the model contains a class name. ``classes`` maps the class names to classes of estimators.
    """
    home = Path(folder)

    def load() -> T:
        record = _read_record(home)
        files = RunFiles(home, record, MODEL)
        paths = {name: files.find(name) for name in record["files"]}
        try:
            return _read_model(paths, record, classes[record["class"]])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise _invalid_record(home, f"{type(error).__name__}: {error}") from error

    return read_consistently(home, RECORDS, load)


def _read_model(paths: Mapping[str, Any], record: dict[str, Any], cls: type[T]) -> T:
    """Read the files of a model, check that their sizes agree, and return the fitted estimator."""
    parameters = {name: _from_json(value) for name, value in record["parameters"].items()}
    if "top" in parameters:  # earlier versions saved the parameter connect as top
        parameters["connect"] = parameters.pop("top")
    graph, tree = _read_graph(paths[GRAPH], record["graph"]), Hierarchy.load(paths[TREE])
    known = _read_arrays(paths[KNOWN])
    constraints, duplicates = _read_known(known)
    weighted, weightless = _read_weightless(known, duplicates)
    graph_tree = Hierarchy.load(paths[GRAPH_TREE]) if duplicates.n_duplicates else tree
    about, index, seed = record["points"], None, 0
    if about is not None:
        if about["method"] not in QUERY_METHODS:
            raise ValueError(f"method {about['method']!r} is unknown")
        X = _read_points(paths, about, duplicates)
        if not sp.issparse(X) and graph.metric not in BINARY_METRICS:
            X = check_points(X, compact=True)
        seed = int(about.get("seed", parameters["random_state"]))
        settings = (about["method"], about["effort"], parameters["recall"], seed, graph.cells)
        index = NeighborIndex(X, str(graph.metric), *settings)
        if X.shape[1] != record["features"] or len(index) != graph.n_points:
            raise ValueError(f"the points are of shape {X.shape}, and the graph has {graph.n_points}")
    leaves = tree.n_leaves, graph_tree.n_leaves
    if leaves != (len(duplicates.inverse), graph.n_points) or len(duplicates.first) != graph.n_points:
        raise ValueError(f"the tree has {tree.n_leaves} leaves, and the graph {graph.n_points} points")
    model: Any = cls(**parameters)
    model.n_features_in_ = int(record["features"])
    if record["feature_names"]:
        model.feature_names_in_ = np.array(record["feature_names"], object)
    model.graph_, model.tree_, model._graph_tree, model.round_ = graph, tree, graph_tree, record["round"]
    model.resolution_ = _from_json(record.get("resolution"))  # models of earlier versions have no resolution
    model._index, model._seed, model.query_method_ = index, seed, None if index is None else index.method
    model._constraints, model._duplicates = constraints, duplicates
    model._weighted, model._weightless = weighted, weightless
    model._set_labels(None)
    fitted: T = model
    return fitted


def _read_record(home: Path) -> dict[str, Any]:
    """Read the JSON record of a saved model; raise if the record is incomplete or damaged."""
    record = load_record(home, MODEL)
    if record is None:
        raise FileNotFoundError(f"{home} holds no model: there is no {MODEL} in it; write one with save")
    version = record.get("version")
    if version != VERSION:
        raise _invalid_record(home, f"it is of version {version}, and this agglo reads version {VERSION}")
    if not {TREE, GRAPH, KNOWN} <= set(record.get("files", ())) <= MODEL_FILES:
        raise _invalid_record(home, "it does not list the files of a model")
    return record


def _invalid_record(home: Path, cause: str) -> ValueError:
    return ValueError(f"{home / MODEL} is no model of agglo's: {cause}; save it again")


def _to_json(name: str, value: Any) -> Any:
    """Convert a parameter to a value that JSON can represent."""
    if isinstance(value, np.ndarray | list | tuple):
        return [_to_json(name, item) for item in np.asarray(value).tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"{name} is a {type(value).__name__}, which cannot be saved: only numbers, names and lists of numbers can"
    )


def _from_json(value: Any) -> Any:
    """Convert a result of :func:`_to_json` back to the parameter."""
    return float(value["float"]) if isinstance(value, dict) else value


def _describe_graph(graph: NeighborGraph) -> dict[str, Any]:
    """Return the attributes of a graph that are not arrays, as values that JSON can represent."""
    estimate = graph.recall_estimate
    parameters = {name: _to_json(name, value) for name, value in graph.parameters.items()}
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


def _read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    with explain_read_errors(path), np.load(path, allow_pickle=False) as arrays:
        return {name: release(array) for name, array in arrays.items()}


def _write_known(model: Clusterer, path: Path) -> None:
    """Write the constraints, the groups of duplicates, and the points of weight 0 to the file ``path``."""
    constraints, weightless = model._constraints, model._weightless
    arrays = {
        "place": model._duplicates.inverse,
        "weights": np.empty(0) if constraints.weights is None else constraints.weights,
        "must": constraints.must,
        "cannot": constraints.cannot,
        "groups": constraints.groups,
        "most": np.array(constraints.most),
    }
    if model._weighted is not None:
        arrays["counted"] = model._weighted
        if sp.issparse(weightless):
            rows = sp.csr_array(weightless)
            arrays |= {f"uncounted_{name}": getattr(rows, name) for name in _CSR_ARRAYS}
        else:
            arrays["uncounted"] = weightless
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle


def _read_known(arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[Constraints, Duplicates]:
    """Check and return the constraints and groups of duplicates that :func:`_write_known` wrote."""
    inverse = arrays["place"]
    first = np.unique(inverse, return_index=True)[1]
    is_valid = inverse.ndim == 1 and inverse.dtype == np.int64 and inverse.max() == len(first) - 1
    if not is_valid or (np.diff(first) <= 0).any():
        raise ValueError(f"{KNOWN} does not say which point of the graph stands for each")
    weights, most = arrays["weights"] if len(arrays["weights"]) else None, float(arrays["most"])
    given = Constraints(arrays["must"], arrays["cannot"], arrays["groups"], most, weights)
    apart = [*given.cannot.tolist(), *given.large_groups()]
    limit = most if np.isfinite(most) else None
    return check_constraints(len(inverse), given.must, apart, limit, weights), Duplicates(first, inverse)


def _read_weightless(
    arrays: Mapping[str, npt.NDArray[Any]], duplicates: Duplicates
) -> tuple[npt.NDArray[np.int64] | None, Any]:
    """Return the ids of points with positive weight, and the rows of points with weight 0.

    If all points have positive weight, return None twice.
    """
    if "counted" not in arrays:
        return None, None
    weighted, weightless = arrays["counted"], arrays.get("uncounted")
    if weightless is None:
        weightless = sp.csr_array(tuple(arrays[f"uncounted_{name}"] for name in _CSR_ARRAYS))
    n_points = len(weighted) + weightless.shape[0]
    in_range = len(weighted) == len(duplicates.inverse) and 0 <= weighted[0] <= weighted[-1] < n_points
    if not in_range or (np.diff(weighted) <= 0).any():
        raise ValueError(f"{KNOWN} does not say which points are of positive weight")
    return weighted, weightless


def _read_graph(path: Path, about: Mapping[str, Any]) -> NeighborGraph:
    arrays: dict[str, Any] = _read_arrays(path)
    if not len(arrays["cells"]):
        del arrays["cells"]
    estimate = about["recall_estimate"]
    recall = None if estimate is None else RecallEstimate(*estimate)
    return NeighborGraph(**arrays, **{**about, "recall_estimate": recall})


def _write_sparse(X: Any, path: Path) -> None:
    with path.open("wb") as file:
        sp.save_npz(file, sp.csr_array(X), compressed=False)


def _read_points(paths: Mapping[str, Any], about: Mapping[str, Any], duplicates: Duplicates) -> Any:
    """Open the points of the graph, from the model's folder or from the file that the JSON record names."""
    if "path" not in about:
        if about["sparse"]:
            return sp.csr_array(sp.load_npz(paths[SPARSE_POINTS]))
        return np.lib.format.open_memmap(paths[POINTS], mode="r")
    path = Path(about["path"])
    if not path.is_file():
        raise ValueError(f"the points were saved by reference, and {path} is not there any more: bring it back")
    X = np.lib.format.open_memmap(path, mode="r")
    if [list(X.shape), str(X.dtype)] != [about["shape"], about["dtype"]] or _checksum(X) != about["checksum"]:
        raise ValueError(f"{path} does not hold the points that were fitted any more: bring them back")
    return duplicates.select_first(X)


def _describe_file(X: Any, path: Path, duplicates: Duplicates) -> dict[str, Any]:
    """Return path, shape, dtype and checksum of a file of points; raise if it does not hold the points ``X``."""
    if sp.issparse(X):
        raise ValueError("sparse points cannot be saved by reference: leave points out")
    saved = np.lib.format.open_memmap(path, mode="r")
    shape = (len(duplicates.inverse), X.shape[1])
    if saved.shape != shape or saved.dtype != X.dtype or _checksum(duplicates.select_first(saved)) != _checksum(X):
        raise ValueError(
            f"{path} holds an array of shape {saved.shape} and dtype {saved.dtype} that is not the points of the "
            f"model, of shape {shape} and dtype {X.dtype}: pass the file that was fitted, or leave points out"
        )
    return {
        "path": str(path.resolve()),
        "shape": list(shape),
        "dtype": str(X.dtype),
        "checksum": _checksum(saved),
    }


def _checksum(X: npt.NDArray[Any]) -> str:
    """Return a hash of an array, computed block by block."""
    digest = hashlib.blake2b(digest_size=16)
    rows = max(1, _CHUNK // max(1, X.nbytes // max(1, len(X))))
    for first in range(0, len(X), rows):
        digest.update(np.ascontiguousarray(X[first : first + rows]).view(np.uint8).data)
    return digest.hexdigest()
