"""The neighbour graph: what every search returns and every clustering starts from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._arrays import Immutable, check_column, convert_column, read_only, release
from agglo._validation import threads
from agglo.points.validation import check_compressed

Kind = Literal["similarity", "distance"]
Missing = float | Literal["ignore"]

KINDS = ("similarity", "distance")
TRUSTED = object()
"""``checked=TRUSTED`` says that the core made the arrays, so that their invariants hold."""

_MOST_POINTS = 2**30
_FEW_NAMED = 0.1  # share of the points that edges must name, or there is a warning if these are many
_MANY_POINTS = 1000


class RecallEstimate(NamedTuple):
    """The share of the true neighbours that a search found, as measured on a sample of the points.

    ``value`` is the share, ``error`` half the width of its 99 % interval and ``sample`` the number of points whose
    true neighbours were found by comparing them with all points.
    """

    value: float
    error: float
    sample: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


class WeighedGraph(Protocol):
    """What thresholds depend on: a graph in a few numbers, wherever it is kept."""

    @property
    def kind(self) -> Kind:
        """Whether a larger weight is closer, or a smaller one."""

    @property
    def missing(self) -> Missing | None:
        """The value of a pair without an edge."""

    @property
    def metric(self) -> str | None:
        """What the weights measure."""

    @property
    def n_points(self) -> int:
        """Number of points."""

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""

    @property
    def least(self) -> float:
        """The smallest weight."""

    @property
    def most(self) -> float:
        """The largest weight."""

    def beyond(self, bound: float, up: bool, share: float) -> float | None:
        """Of the weights above ``bound`` (or below it) the one that a ``share`` of them do not lie beyond."""


@dataclass(frozen=True, eq=False)
class NeighborGraph(Immutable):
    """An undirected weighted graph over points, in compressed rows.

    A graph never changes: its arrays are read-only. Those that are given are copied unless nobody can write them.

    Parameters
    ----------
    indptr, indices, weights : ndarray of int64, int32, float32
        Row ``i`` has the neighbours ``indices[indptr[i]:indptr[i + 1]]`` and their weights.
    kind : {"similarity", "distance"}
        Whether a larger weight is closer, or a smaller one.
    missing : float or "ignore", optional
        The value that a pair without an edge has in a linkage; ``"ignore"``: such pairs take no part.
        By default 0 for similarities and the largest weight for distances.
    metric, method, parameters
        What the weights measure, how the neighbours were found and with which settings, for the record.
    recall_estimate : RecallEstimate, optional
        The share of the true neighbours that is in the graph, if a search measured it; None if all are.
    cells : ndarray of int32, optional
        The cell that each point was in when neighbours were searched, if by cells: new points are searched there.

    Notes
    -----
    Invariants, checked when a graph is made:

    1. ``indptr`` starts at 0, never decreases and ends at ``len(indices) == len(weights)``;
    2. the indices of a row are strictly increasing, within range and without the row's own index;
    3. edge (i, j) is there exactly if (j, i) is, with the same weight;
    4. all weights are finite.

    Use :meth:`from_scipy`, :meth:`from_edges` or :meth:`from_neighbors` for data that are not like that: they
    drop self-loops, unite both directions of one-way edges and keep the closest of several parallel edges.

    Examples
    --------
    >>> from agglo import NeighborGraph
    >>> graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.9, 0.5], kind="similarity")
    >>> graph
    NeighborGraph(3 points, 2 edges, similarity from 0.5 to 0.9, missing=0)
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    kind: Kind
    missing: Missing | None = None
    metric: str | None = None
    method: str = "given"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    recall_estimate: RecallEstimate | None = None
    cells: npt.NDArray[np.int32] | None = None
    checked: InitVar[object] = None

    def __post_init__(self, checked: object) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} is unknown: pass 'similarity' or 'distance'")
        set_ = object.__setattr__
        set_(self, "indptr", check_column("indptr", self.indptr, np.dtype(np.int64)))
        set_(self, "indices", check_column("indices", self.indices, np.dtype(np.int32)))
        set_(self, "weights", read_only(_check_weights("weights", self.weights), self.weights))
        set_(self, "parameters", dict(self.parameters))
        if len(self.indptr) < 2:
            raise ValueError("the graph is empty: it has no points; pass at least one")
        if len(self.indptr) - 1 > _MOST_POINTS:
            raise ValueError(f"the graph has {len(self.indptr) - 1} points; at most 2^30 are possible")
        message = (
            "" if checked is TRUSTED else _core.violation(self.indptr, self.indices, self.weights, threads(None))
        )
        if message:
            raise ValueError(
                f"not a neighbour graph: {message}. "
                "NeighborGraph.from_scipy, from_edges or from_neighbors repair what can be repaired."
            )
        set_(self, "missing", self._checked_missing())
        if self.cells is not None:
            n, cells = self.n_points, check_column("cells", self.cells, np.dtype(np.int32))
            if len(cells) != n or not 0 <= cells.min() <= cells.max() < n:
                raise ValueError(f"cells must be a number from 0 to {n - 1} for each of {n} points")
            set_(self, "cells", cells)

    def _checked_missing(self) -> Missing:
        missing = self.missing
        if isinstance(missing, str):
            if missing != "ignore":
                raise ValueError(f"missing={missing!r} is unknown: pass a number or 'ignore'")
            return "ignore"
        if missing is None:
            if self.kind == "similarity" or not len(self.weights):
                return 0.0
            return float(self.weights.max())
        if not np.isfinite(missing):
            raise ValueError(f"missing={missing!r} must be finite, or 'ignore'")
        return float(missing)

    @classmethod
    def from_scipy(
        cls,
        matrix: Any,
        *,
        kind: Kind,
        missing: Missing | None = None,
        metric: str | None = None,
        n_jobs: int | None = None,
    ) -> NeighborGraph:
        """Graph of the stored entries of a square SciPy sparse matrix.

        Stored zeros are edges of weight zero. The matrix need not be symmetric nor its indices sorted.
        """
        if not sp.issparse(matrix):
            raise TypeError(f"expected a SciPy sparse matrix, got {type(matrix).__name__}")
        check_compressed("matrix", matrix)
        entries: Any = sp.coo_array(matrix)
        if entries.shape[0] != entries.shape[1]:
            raise ValueError(f"a graph's matrix must be square, got shape {entries.shape}")
        return cls.from_edges(
            entries.row,
            entries.col,
            entries.data,
            n_points=entries.shape[0],
            kind=kind,
            missing=missing,
            metric=metric,
            n_jobs=n_jobs,
        )

    @classmethod
    def from_edges(
        cls,
        sources: npt.ArrayLike,
        targets: npt.ArrayLike,
        weights: npt.ArrayLike,
        *,
        n_points: int | None = None,
        kind: Kind,
        missing: Missing | None = None,
        metric: str | None = None,
        n_jobs: int | None = None,
    ) -> NeighborGraph:
        """Graph of the edges ``(sources[e], targets[e], weights[e])``, each given in one direction or both.

        Points are 0 to the largest index, or to ``n_points - 1``. If nearly all of them have no edge, because
        indices are ids with gaps, there is a warning unless ``n_points`` is given.
        """
        heads, tails = np.asarray(sources), np.asarray(targets)
        values = np.asarray(weights)
        if not heads.ndim == tails.ndim == values.ndim == 1 or not len(heads) == len(tails) == len(values):
            raise ValueError(
                "sources, targets and weights must be one-dimensional and of one length, "
                f"got shapes {heads.shape}, {tails.shape} and {values.shape}"
            )
        largest = -1
        for name, ids in (("sources", heads), ("targets", tails)):
            if len(ids) and ids.dtype.kind not in "iu":
                raise TypeError(f"{name} must be integers (point indices), got dtype {ids.dtype}")
            if len(ids) and ids.min() < 0:
                raise ValueError(f"{name} holds {ids.min()}: point indices start at 0")
            largest = max(largest, int(ids.max()) if len(ids) else -1)
        points = largest + 1 if n_points is None else n_points
        if points < 1:
            raise ValueError("the graph is empty: it has no points; pass n_points")
        if points > _MOST_POINTS:
            raise ValueError(f"the graph has {points} points; at most 2^30 are possible")
        if n_points is None and points > _MANY_POINTS and 2 * len(heads) < _FEW_NAMED * points:
            warnings.warn(
                f"the largest index is {largest}, so the graph has {points} points, of which at least "
                f"{points - 2 * len(heads)} have no edge. If the indices are ids with gaps, number the points "
                "with np.unique(..., return_inverse=True); if not, pass n_points to say so",
                stacklevel=2,
            )
        if largest >= points:
            raise ValueError(f"an edge names point {largest}, but n_points={points}: indices go to {points - 1}")
        rows, ends, edges = _core.grouped(
            points,
            np.ascontiguousarray(heads, np.int32),
            np.ascontiguousarray(tails, np.int32),
            _check_weights("weights", values),
        )
        return cls._united(rows, ends, edges, kind, missing, n_jobs, metric=metric)

    @classmethod
    def from_neighbors(
        cls,
        indices: npt.ArrayLike,
        values: npt.ArrayLike,
        *,
        kind: Kind,
        missing: Missing | None = None,
        metric: str | None = None,
        method: str = "given",
        parameters: Mapping[str, Any] | None = None,
        recall_estimate: RecallEstimate | None = None,
        cells: npt.NDArray[np.int32] | None = None,
        n_jobs: int | None = None,
    ) -> NeighborGraph:
        """Graph of neighbour lists: ``indices[i, j]`` is a neighbour of ``i`` at ``values[i, j]``.

        As every library has them: -1 is none, whatever its value, and a point in its own list does no harm.
        """
        lists, weights = np.asarray(indices), np.asarray(values)
        if lists.ndim != 2 or lists.shape != weights.shape:
            raise ValueError(
                f"indices and values must be (points, neighbours) arrays, got {lists.shape} and {weights.shape}"
            )
        if lists.dtype.kind not in "iu":
            raise TypeError(f"indices must be integers (point indices), got dtype {lists.dtype}")
        n = len(lists)
        if n == 0:
            raise ValueError("the graph is empty: it has no points; pass at least one row")
        if lists.size and (lists.min() < -1 or lists.max() >= n):
            worst = lists.min() if lists.min() < -1 else lists.max()
            raise ValueError(f"indices holds {worst}, outside 0..{n - 1}; -1 stands for no neighbour")
        if lists.size and lists.min() == -1:
            weights = np.where(lists == -1, 0, weights)  # libraries put infinity there
        return cls._united(
            np.arange(n + 1, dtype=np.int64) * lists.shape[1],
            np.ascontiguousarray(lists, np.int32).ravel(),
            _check_weights("values", weights.ravel()),
            kind,
            missing,
            n_jobs,
            metric=metric,
            method=method,
            parameters=parameters or {},
            recall_estimate=recall_estimate,
            cells=cells,
        )

    @classmethod
    def _united(
        cls,
        indptr: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int32],
        weights: npt.NDArray[np.float32],
        kind: Kind,
        missing: Missing | None,
        n_jobs: int | None,
        **record: Any,
    ) -> NeighborGraph:
        """The undirected union of directed rows, which the core makes as the invariants ask."""
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is unknown: pass 'similarity' or 'distance'")
        rows, indices, united = _core.united(indptr, targets, weights, kind == "similarity", threads(n_jobs))
        return cls(rows, indices, united, kind=kind, missing=missing, checked=TRUSTED, **record)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.indices) // 2

    @cached_property
    def least(self) -> float:
        """The smallest weight; 0 if there is none."""
        return float(self.weights.min()) if len(self.weights) else 0.0

    @cached_property
    def most(self) -> float:
        """The largest weight; 0 if there is none."""
        return float(self.weights.max()) if len(self.weights) else 0.0

    def beyond(self, bound: float, up: bool, share: float) -> float | None:
        """Of the weights above ``bound`` (or below it) the one that a ``share`` of them do not lie beyond."""
        if not 0 <= share <= 1:
            raise ValueError(f"share={share!r} is not a share of the weights: pass a number from 0 to 1")
        found: float = _core.beyond(self.weights, bound, up, share)
        return None if np.isnan(found) else found

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        return self.indptr.nbytes + self.indices.nbytes + self.weights.nbytes

    def to_scipy(self) -> sp.csr_array:
        """Return the weights as a symmetric SciPy matrix.

        It shares the read-only arrays of the graph. Functions that change a matrix in place, such as
        ``eliminate_zeros``, need a copy: ``graph.to_scipy().copy()``.
        """
        n, indptr = self.n_points, self.indptr
        if len(self.indices) <= np.iinfo(np.int32).max:
            indptr = release(indptr.astype(np.int32))  # with two types of indices SciPy would copy the larger
        return sp.csr_array((self.weights, self.indices, indptr), shape=(n, n))

    def __repr__(self) -> str:
        span = ""
        if len(self.weights):
            span = f" from {self.weights.min():.4g} to {self.weights.max():.4g}"
        missing = self.missing if isinstance(self.missing, str) else f"{self.missing:.4g}"
        return f"NeighborGraph({self.n_points} points, {self.n_edges} edges, {self.kind}{span}, missing={missing})"


def _check_weights(name: str, values: Any) -> npt.NDArray[np.float32]:
    """Return ``values`` as a column of finite float32 numbers."""
    weights = convert_column(name, values, np.dtype(np.float32))
    if weights.size and not (np.isfinite(weights.min()) and np.isfinite(weights.max())):
        where = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise ValueError(f"{name}[{where}] is {np.asarray(values)[where]}: weights must be finite float32 numbers")
    return weights
