"""Validate the parameters of a clusterer before the search for neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agglo._validation import check_seed, effective_n_threads
from agglo.neighbors.graph import KINDS, Kind, NeighborGraph
from agglo.neighbors.missing import check_missing
from agglo.neighbors.search import METHODS, METRICS
from agglo.neighbors.validation import check_n_neighbors, check_recall
from agglo.rounds.linkage import check_linkage
from agglo.rounds.schedule import ADVANCES, check_schedule
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, check_vector_linkage, vector_linkage_kind
from agglo.tree.cut import check_rule

MAX_POINTS = 2**31


def _one_of(name: str, choices: Iterable[object], remedy: str) -> Callable[[Any], None]:
    """Return a function that raises unless its argument is one of ``choices``."""
    allowed = tuple(choices)

    def check(value: Any) -> None:
        if not isinstance(value, str | None) or value not in allowed:
            raise ValueError(f"{name}={value!r} is unknown: pass {remedy}")

    return check


def _check_number_of_neighbors(n_neighbors: Any) -> None:
    if n_neighbors != "all":  # "all" is checked later, because its memory depends on the data
        check_n_neighbors(n_neighbors, MAX_POINTS)


_CHECKS: dict[str, Callable[[Any], object]] = {
    "metric": _one_of(
        "metric", [*METRICS, "precomputed"], f"one of {', '.join(map(repr, [*METRICS, 'precomputed']))}"
    ),
    "n_neighbors": _check_number_of_neighbors,
    "method": _one_of("method", METHODS, f"one of {', '.join(map(repr, METHODS))}"),
    "recall": check_recall,
    "missing": check_missing,
    "linkage": check_linkage,
    "connect": _one_of(
        "connect", [None, "auto", *VECTOR_LINKAGES], f"None, 'auto' or one of {', '.join(VECTOR_LINKAGES)}"
    ),
    "advance": _one_of("advance", ADVANCES, f"one of {', '.join(ADVANCES)}"),
    "kind": _one_of("kind", [None, *KINDS], "'similarity' or 'distance'"),
    "n_jobs": effective_n_threads,
}
"""For each parameter, a function that raises if its value is invalid for all data."""


def cut_rule(n_clusters: Any, round: Any, height: Any, resolution: Any) -> dict[str, Any]:
    """Return the rule that selects ``labels_`` from the tree; by default, the most persistent resolution."""
    rule = {"n_clusters": n_clusters, "round": round, "height": height, "resolution": resolution}
    return rule if any(value is not None for value in rule.values()) else rule | {"resolution": "persistent"}


@dataclass(frozen=True, eq=False)
class FitOptions:
    """Validated parameters of one fit.

    :meth:`from_params` checks everything that does not depend on the data, and :meth:`check_data` checks the rest.
    """

    metric: str
    linkage: Any
    connect: str | None
    kind: Kind | None
    thresholds: Any
    n_thresholds: int | None
    rule: dict[str, Any]
    """The rule that selects ``labels_``: exactly one of n_clusters, round, height and resolution is not None."""
    seed: int

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> FitOptions:
        """Validate ``params``, a result of the clusterer's ``get_params``."""
        given = dict(params)
        if given.get("top", "deprecated") != "deprecated":
            given["connect"] = given["top"]
        for name, check in _CHECKS.items():
            if name in given:
                check(given[name])
        options = cls(
            given["metric"],
            given["linkage"],
            given["connect"],
            given["kind"],
            given.get("thresholds", "odds"),
            given.get("n_thresholds"),
            cut_rule(given["n_clusters"], given["round"], given["height"], given["resolution"]),
            check_seed(given["random_state"]),
        )
        if options.metric in METRICS:
            options._check_thresholds(options.graph_kind(None))
        return options

    def check_data(self, data: Any, n_points: int) -> None:
        """Raise if a parameter does not fit the data: points, a matrix or a graph.

        ``n_points`` is the number of points with positive weight.
        """
        kind = self.graph_kind(data)
        check_rule(n_points, **self.rule)
        X = None if self.metric == "precomputed" else data
        metric = data.metric if isinstance(data, NeighborGraph) else self.metric
        for name in (self.linkage, self.connect):
            if isinstance(name, str) and name in VECTOR_LINKAGES:
                check_vector_linkage(name, metric, X)
        if X is None:
            self._check_thresholds(kind)

    def graph_kind(self, data: Any) -> Kind:
        """Return the kind of the neighbour graph of ``data``; raise if it is unknown or contradicts ``kind``."""
        known: Kind
        if isinstance(data, NeighborGraph):
            known, cause = data.kind, f"the graph is one of kind {data.kind!r}"
        elif self.metric in METRICS:
            known = METRICS[self.metric]
            cause = f"metric={self.metric!r} gives a graph of kind {known!r}"
        elif self.kind is not None:
            return self.kind
        else:
            raise ValueError(
                "metric='precomputed' does not say what the numbers of the matrix mean: pass kind='distance' "
                "(smaller is closer) or kind='similarity' (larger is closer)"
            )
        if self.kind not in (None, known):
            raise ValueError(f"kind={self.kind!r} is wrong, because {cause}: leave kind out")
        return known

    def _check_thresholds(self, graph_kind: Kind) -> None:
        """Raise if the thresholds are invalid for the linkage, which has similarities or distances."""
        kind: Kind = graph_kind
        if not isinstance(self.linkage, str):
            kind = self.linkage.kind
        elif self.linkage in VECTOR_LINKAGES:
            kind = vector_linkage_kind(self.linkage, self.metric)
        check_schedule(self.thresholds, self.n_thresholds, kind)
