"""The thresholds of the rounds: from near to far, one after the other."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agglo.graph import NeighborGraph

ScheduleName = Literal["geometric", "linear", "doubling"]
SCHEDULES = ("geometric", "linear", "doubling")

# The range of the paper's schedules, for cosine similarities and for unit-length squared Euclidean distances.
_COSINE = (1.0, 0.001)
_UNIT_SQEUCLIDEAN = (0.001, 4.0)

_SAMPLE = 1_000_000  # weights that are enough to find a quantile


def threshold_range(graph: NeighborGraph) -> tuple[float, float]:
    """The nearest and the farthest threshold that make sense for ``graph``.

    Similarities: from 1 (or the largest weight, if that is larger) down to a thousandth of it, as the paper
    does for cosines. Unit-length squared Euclidean distances: from 0.001 up to 4, as in the paper. Other
    distances: from the weight that a thousandth of all positive weights do not exceed, so that a few near
    duplicates do not stretch the range, up to the largest weight or ``missing``, whichever is larger.
    """
    weights = graph.weights
    if graph.kind == "similarity":
        if len(weights) == 0 or -1 <= weights.min() <= weights.max() <= 1:
            return _COSINE
        nearest = max(1.0, float(weights.max()))
        return nearest, nearest * _COSINE[1]
    if not len(weights):
        return 0.0, 0.0
    if graph.metric == "sqeuclidean" and graph.missing == _UNIT_SQEUCLIDEAN[1]:
        return _UNIT_SQEUCLIDEAN
    farthest = float(weights.max())
    if graph.missing != "ignore":
        farthest = max(farthest, float(graph.missing or 0.0))
    if farthest <= 0:
        return float(weights.min()), farthest
    sample = weights[:: 1 + len(weights) // _SAMPLE]
    positive = sample[sample > 0]
    return float(np.quantile(positive, 0.001, method="lower")) if len(positive) else farthest, farthest


def schedule(
    graph: NeighborGraph,
    thresholds: ScheduleName | npt.ArrayLike = "geometric",
    n_thresholds: int = 200,
) -> npt.NDArray[np.float64]:
    """The thresholds for ``graph``, from near to far.

    Parameters
    ----------
    graph : NeighborGraph
        What is to be clustered. Its kind and weights give the range, see :func:`threshold_range`.
    thresholds : {"geometric", "linear", "doubling"} or array-like
        ``"geometric"`` and ``"linear"``: ``n_thresholds`` of them, in equal ratios or equal steps.
        ``"doubling"``: τ₀·2ⁱ from the smallest positive distance until the farthest is covered (similarities
        are halved), the schedule of the paper's theorem. An array is used as it is.
    n_thresholds : int
        How many, for the first two; with one, it is the farthest.

    Examples
    --------
    >>> from agglo import NeighborGraph
    >>> from agglo.schedule import schedule
    >>> graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.9, 0.5], kind="similarity")
    >>> schedule(graph, "geometric", 4).round(3).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    if not isinstance(thresholds, str):
        return _given(graph, thresholds)
    if thresholds not in SCHEDULES:
        raise ValueError(f"thresholds={thresholds!r} is unknown: pass one of {', '.join(SCHEDULES)}, or an array")
    if isinstance(n_thresholds, bool) or not isinstance(n_thresholds, int | np.integer) or n_thresholds < 1:
        raise ValueError(f"n_thresholds={n_thresholds!r} must be a positive integer")
    nearest, farthest = threshold_range(graph)
    if nearest == farthest or (n_thresholds == 1 and thresholds != "doubling"):
        return np.array([farthest])
    if thresholds == "linear":
        return np.linspace(nearest, farthest, n_thresholds)
    if min(nearest, farthest) <= 0:
        raise ValueError(
            f"{thresholds} thresholds need a positive range, but the weights give {nearest:g} to {farthest:g}: "
            "pass thresholds='linear' or an array"
        )
    if thresholds == "geometric":
        return np.geomspace(nearest, farthest, n_thresholds)
    first = nearest
    if graph.kind == "distance":
        first = float(graph.weights[graph.weights > 0].min(initial=nearest))
    factor = 2.0 if farthest > nearest else 0.5
    steps = int(np.ceil(np.abs(np.log2(farthest / first))))
    return first * factor ** np.arange(steps + 1.0)


def _given(graph: NeighborGraph, thresholds: npt.ArrayLike) -> npt.NDArray[np.float64]:
    given: npt.NDArray[Any] = np.atleast_1d(np.asarray(thresholds))
    if given.dtype.kind not in "iuf" or given.ndim != 1 or len(given) == 0:
        raise ValueError(
            f"thresholds must be a name or a one-dimensional array of numbers, got dtype {given.dtype} "
            f"and shape {given.shape}"
        )
    values = given.astype(np.float64)
    if not np.isfinite(values).all():
        where = int((~np.isfinite(values)).argmax())
        raise ValueError(
            f"thresholds[{where}] is {values[where]}, but thresholds are finite: leave it out, or end with the "
            "value of the farthest pair"
        )
    steps = np.diff(values) if graph.kind == "distance" else -np.diff(values)
    if (steps <= 0).any():
        where = int((steps <= 0).argmax())
        order = "increasing (distances)" if graph.kind == "distance" else "decreasing (similarities)"
        raise ValueError(
            f"thresholds must be strictly {order}, from near to far, but thresholds[{where}]={values[where]:g} is "
            f"followed by {values[where + 1]:g}: sort them and drop duplicates"
        )
    return values
