"""The neighbour graph: the result of every search and the input of every clustering."""

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
from agglo._html import render_facts
from agglo._validation import Immutable, check_column, convert_column, effective_n_threads, read_only, release
from agglo.points.points import check_compressed

Kind = Literal["similarity", "distance"]
Missing = float | Literal["ignore"]

KINDS = ("similarity", "distance")
TRUSTED = object()
"""Pass ``checked=TRUSTED`` to skip the check of the invariants, for arrays that the C++ core built."""

_MOST_POINTS = 2**30
_MAX_BITS = 60  # the smallest product of two point weights is at least 2^-60 of the sum over all edges
_LIMB_BITS = 62  # usable bits of the highest 64-bit word of a sum: one bit is the sign, one is spare
_FLOAT_BITS = 24  # significant bits of a float32
_LIMBS = (1, 2, 6)  # a sum in the rounds has this number of 64-bit words (limbs)
ROW_LIMBS = (1, 6)  # a sum over the edges of one new point has this number of 64-bit words
# from_edges warns if a graph has more than _MANY_POINTS points and at most this share of them can have edges.
_FEW_WITH_EDGES = 0.1
_MANY_POINTS = 1000


class RecallEstimate(NamedTuple):
    """Recall of a search (the share of true neighbours found), measured on a sample of the points.

    ``value`` is the recall, and ``error`` is half the width of its 99 % confidence interval. ``sample`` is the
    number of sampled points. Their true neighbours were found by exact search.
    """

    value: float
    error: float
    sample: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


class WeightSummary(Protocol):
    """Summary of the edge weights of a graph, from which schedules choose their thresholds."""

    @property
    def kind(self) -> Kind:
        """``"similarity"`` if points with larger weights are closer, otherwise ``"distance"``."""

    @property
    def missing(self) -> Missing | None:
        """The value of a pair without an edge."""

    @property
    def metric(self) -> str | None:
        """The metric that the weights were computed by, or None if it is unknown."""

    @property
    def n_points(self) -> int:
        """The number of points."""

    @property
    def n_edges(self) -> int:
        """The number of undirected edges."""

    @property
    def min_weight(self) -> float:
        """The smallest weight."""

    @property
    def max_weight(self) -> float:
        """The largest weight."""

    def quantile_above(self, bound: float, up: bool, share: float) -> float | None:
        """Return the quantile ``share`` of the weights above ``bound``, or None if no weight is above ``bound``.

        If ``up`` is False, use the weights below ``bound``, and count from the largest weight downwards.
        """


@dataclass(frozen=True, eq=False)
class NeighborGraph(Immutable):
    """An undirected weighted graph over points, in CSR format.

    A graph is immutable. Its arrays are read-only; writable arrays are copied when a graph is created.

    Parameters
    ----------
    indptr, indices, weights : ndarray of int64, int32, float32
        The neighbours of point ``i`` are ``indices[indptr[i]:indptr[i + 1]]``. ``weights`` has the same layout.
    kind : {"similarity", "distance"}
        ``"similarity"`` if a larger weight means closer points, ``"distance"`` if a smaller weight does.
    missing : float or "ignore", optional
        The similarity or distance that linkages use for a pair without an edge. With ``"ignore"``, linkages ignore
        such pairs. The default is 0 for similarities and the largest weight for distances.
    metric, method, parameters
        The metric, the search method and the parameters of the search. They are only informative.
    recall_estimate : RecallEstimate, optional
        The measured recall of an approximate search; None if the search was exact.
    cells : ndarray of int32, optional
        With ``method="cells"``, the cell (inverted list) of each point. Searches for new points use it.

    Notes
    -----
    Invariants, checked when a graph is created:

    1. ``indptr`` starts at 0, never decreases and ends at ``len(indices) == len(weights)``;
    2. the indices of a row are strictly increasing, valid point ids, and do not contain the row itself;
    3. edge (i, j) is present if and only if edge (j, i) is present, and both have the same weight;
    4. all weights are finite.

    For other data, use :meth:`from_scipy`, :meth:`from_edges` or :meth:`from_neighbors`. They drop self-loops and
    symmetrize the graph. If there are several edges between two points, they keep the closest edge.

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
            ""
            if checked is TRUSTED
            else _core.find_graph_violation((self.indptr, self.indices, self.weights), effective_n_threads(None))
        )
        if message:
            raise ValueError(
                f"the arrays are not a neighbour graph: {message}. Build it with NeighborGraph.from_scipy, "
                "from_edges or from_neighbors, which sort and symmetrize"
            )
        set_(self, "missing", self._check_missing())
        if self.cells is not None:
            n, cells = self.n_points, check_column("cells", self.cells, np.dtype(np.int32))
            if len(cells) != n or not 0 <= cells.min() <= cells.max() < n:
                raise ValueError(f"cells must have one integer from 0 to {n - 1} for each of {n} points")
            set_(self, "cells", cells)

    def _check_missing(self) -> Missing:
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
        """Build a graph from the stored entries of a square SciPy sparse matrix.

        Stored zeros are edges of weight zero. The matrix may be asymmetric. Its indices may be unsorted.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from agglo import NeighborGraph
        >>> weights = sp.csr_array([[0, 0.9, 0], [0.9, 0, 0.5], [0, 0.5, 0]])
        >>> NeighborGraph.from_scipy(weights, kind="similarity").n_edges
        2
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
        """Build a graph from edges ``(sources[e], targets[e], weights[e])``, given in one or both directions.

        By default, ``n_points`` is the largest index plus 1. If the ids have gaps, most of these points have no
        edge. A warning is then shown, unless ``n_points`` is given.
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
        if n_points is None and points > _MANY_POINTS and 2 * len(heads) < _FEW_WITH_EDGES * points:
            warnings.warn(
                f"the largest index is {largest}, so the graph has {points} points, of which at least "
                f"{points - 2 * len(heads)} have no edge. If the indices are ids with gaps, number the points "
                "with np.unique(..., return_inverse=True); otherwise pass n_points",
                stacklevel=2,
            )
        if largest >= points:
            raise ValueError(f"an edge has index {largest}, but n_points={points}: indices go to {points - 1}")
        rows, ends, edges = _core.edges_to_csr(
            points,
            np.ascontiguousarray(heads, np.int32),
            np.ascontiguousarray(tails, np.int32),
            _check_weights("weights", values),
        )
        return cls._symmetrize(rows, ends, edges, kind, missing, n_jobs, metric=metric)

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
        """Build a graph from neighbour lists, as search libraries return them.

        Point ``indices[i, j]`` is a neighbour of point ``i``, with weight ``values[i, j]``. Entries whose index is
        -1 or ``i`` are ignored.

        Examples
        --------
        >>> from agglo import NeighborGraph
        >>> NeighborGraph.from_neighbors([[1], [0], [1]], [[0.9], [0.9], [0.5]], kind="similarity").n_edges
        2
        """
        lists, weights = check_neighbor_lists(indices, values, "point indices")
        n = len(lists)
        if n == 0:
            raise ValueError("the graph is empty: it has no points; pass at least one row")
        if lists.size and (lists.min() < -1 or lists.max() >= n):
            worst = lists.min() if lists.min() < -1 else lists.max()
            raise ValueError(f"indices holds {worst}, outside 0..{n - 1}; use -1 for no neighbour")
        if lists.size and lists.min() == -1:
            weights = np.where(lists == -1, 0, weights)  # search libraries return infinity with index -1
        return cls._symmetrize(
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
    def _symmetrize(
        cls,
        indptr: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int32],
        weights: npt.NDArray[np.float32],
        kind: Kind,
        missing: Missing | None,
        n_jobs: int | None,
        **record: Any,
    ) -> NeighborGraph:
        """Build an undirected graph from directed edges in CSR format, by adding the reverse of each edge."""
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is unknown: pass 'similarity' or 'distance'")
        rows, indices, merged = _core.symmetrize((indptr, targets, weights), kind, effective_n_threads(n_jobs))
        return cls(rows, indices, merged, kind=kind, missing=missing, checked=TRUSTED, **record)

    @property
    def n_points(self) -> int:
        """The number of points."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """The number of undirected edges."""
        return len(self.indices) // 2

    @cached_property
    def min_weight(self) -> float:
        """The smallest weight, or 0 if the graph has no edges."""
        return float(self.weights.min()) if len(self.weights) else 0.0

    @cached_property
    def max_weight(self) -> float:
        """The largest weight, or 0 if the graph has no edges."""
        return float(self.weights.max()) if len(self.weights) else 0.0

    def quantile_above(self, bound: float, up: bool, share: float) -> float | None:
        """Return the quantile ``share`` of the weights above ``bound``; see ``WeightSummary``.

        Examples
        --------
        >>> from agglo import NeighborGraph
        >>> graph = NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [1.0, 2.0, 3.0], kind="distance")
        >>> graph.quantile_above(1.0, True, 0.5)
        2.0
        """
        if not 0 <= share <= 1:
            raise ValueError(f"share={share!r} is not a quantile: pass a number from 0 to 1")
        quantile: float = _core.weight_quantile(self.weights, bound, up, share)
        return None if np.isnan(quantile) else quantile

    @property
    def nbytes(self) -> int:
        """The total size of the arrays in bytes."""
        return self.indptr.nbytes + self.indices.nbytes + self.weights.nbytes

    def to_scipy(self) -> sp.csr_array:
        """Return the weights as a symmetric SciPy CSR matrix.

        The matrix shares the read-only arrays of the graph. Copy it before you change it in place, for example
        with ``eliminate_zeros``: ``graph.to_scipy().copy()``.

        Examples
        --------
        >>> from agglo import NeighborGraph
        >>> graph = NeighborGraph.from_edges([0, 1], [1, 2], [1.0, 2.0], kind="distance")
        >>> graph.to_scipy().toarray()
        array([[0., 1., 0.],
               [1., 0., 2.],
               [0., 2., 0.]], dtype=float32)
        """
        n, indptr = self.n_points, self.indptr
        if len(self.indices) <= np.iinfo(np.int32).max:
            indptr = release(indptr.astype(np.int32))  # SciPy copies index arrays of different dtypes
        return sp.csr_array((self.weights, self.indices, indptr), shape=(n, n))

    def _repr_html_(self) -> str:
        """Return a summary for notebooks."""
        weights = f"{self.min_weight:.4g} to {self.max_weight:.4g}" if len(self.weights) else "none"
        facts = {
            "points": f"{self.n_points:,}",
            "edges": f"{self.n_edges:,}, {2 * self.n_edges / max(self.n_points, 1):.1f} per point",
            "weights": f"{self.kind}, {weights}",
            "pairs without an edge": self.missing if isinstance(self.missing, str) else f"{self.missing:.4g}",
            "memory": f"{self.nbytes / 1e6:,.1f} MB",
        }
        return render_facts("NeighborGraph", facts)

    def __repr__(self) -> str:
        span = f" from {self.min_weight:.4g} to {self.max_weight:.4g}" if len(self.weights) else ""
        missing = self.missing if isinstance(self.missing, str) else f"{self.missing:.4g}"
        return f"NeighborGraph({self.n_points} points, {self.n_edges} edges, {self.kind}{span}, missing={missing})"


def _check_weights(name: str, values: Any) -> npt.NDArray[np.float32]:
    """Return ``values`` as an array of finite float32 numbers; raise if that is impossible."""
    weights = convert_column(name, values, np.dtype(np.float32))
    if weights.size and not (np.isfinite(weights.min()) and np.isfinite(weights.max())):
        where = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise ValueError(f"{name}[{where}] is {np.asarray(values)[where]}: weights must be finite float32 numbers")
    return weights


# ---- exact sums of edge weights ----


@dataclass(frozen=True)
class FixedPoint:
    """Fixed-point format for sums of edge weights: each sum is an integer times 2^-shift.

    Sums of integers do not depend on the order of the terms, so NumPy, C++ and Spark get the same bits. An
    integer has ``limbs`` words of 64 bits: 1, 2 or 6.
    """

    shift: int
    limbs: int
    count_shift: int = 0
    """If points have weights, the weighted numbers of edges are integer multiples of 2^-count_shift."""

    @property
    def is_long(self) -> bool:
        """Whether sums need more than 64 bits."""
        return self.limbs > 1


def fixed_point_for(graph: WeightSummary, weights: npt.NDArray[np.float64] | None = None) -> FixedPoint:
    """Choose the shortest fixed-point format in which sums of the graph's edge weights are exact.

    For most graphs, 64 bits are enough. For nearly all other graphs, 128 bits are enough. 384 bits are enough for
    any float32 weights.

    If points have ``weights``, an edge weight is multiplied by the weights of its two points. The format keeps all
    24 bits of each edge weight, even between the lightest points.
    """
    largest, smallest = max(graph.max_weight, -graph.min_weight, 0.0), smallest_weight(graph)
    # Log2 of the sum of all factors, and of the smallest factor; see choose_fixed_point.
    total, one = graph.n_edges.bit_length(), 0
    if weights is not None:
        assert isinstance(graph, NeighborGraph)
        # The product of two weights is at most the mean of their squares.
        total = int(np.frexp((weights**2 * np.diff(graph.indptr)).sum() / 2)[1])
        one = int(np.frexp(weights.min() ** 2)[1]) - 1
        if graph.n_edges and total - one > _MAX_BITS:
            raise ValueError(
                f"sample_weight goes from {weights.min():g} to {weights.max():g}, and sums over {graph.n_edges} "
                "edges of so different weights lose the lightest: lower the largest weights or raise the smallest"
            )
    return choose_fixed_point(largest, smallest, total, one, 0 if weights is None else _LIMB_BITS - total)


def choose_fixed_point(
    largest: float, smallest: float, total: int, one: int, count_shift: int, choices: tuple[int, ...] = _LIMBS
) -> FixedPoint:
    """Choose the fixed-point format for sums of weights with magnitudes from ``smallest`` to ``largest``.

    Zero weights are ignored. In a sum, each weight is multiplied by a factor of at least 2^one. The sum of all
    factors is below 2^total. ``choices`` are the allowed values of ``limbs``, in ascending order.
    """
    shift = _LIMB_BITS - total - int(np.frexp(largest)[1])
    needed = 0 if largest == 0 else _FLOAT_BITS - int(np.frexp(smallest)[1]) - one  # bits after the binary point
    limbs = next(limbs for limbs in choices if needed <= shift + 64 * (limbs - 1))
    return FixedPoint(shift + 64 * (limbs - 1), limbs, count_shift)


def smallest_weight(graph: WeightSummary) -> float:
    """Return the smallest magnitude of the nonzero edge weights, or infinity if all weights are zero."""
    if graph.min_weight > 0:
        return graph.min_weight
    if graph.max_weight < 0:
        return -graph.max_weight
    found = [graph.quantile_above(0.0, up, 0.0) for up in (True, False)]
    return min((abs(weight) for weight in found if weight is not None), default=np.inf)


def check_neighbor_lists(
    indices: npt.ArrayLike, values: npt.ArrayLike, meaning: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return both tables as arrays; raise unless their shapes are equal and ``indices`` contains integers.

    ``meaning`` says in the error message what the indices refer to.
    """
    lists, weights = np.asarray(indices), np.asarray(values)
    if lists.ndim != 2 or lists.shape != weights.shape:
        raise ValueError(
            f"indices and values must be (points, neighbours) arrays, got {lists.shape} and {weights.shape}"
        )
    if lists.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers ({meaning}), got dtype {lists.dtype}")
    return lists, weights
