"""Build the tree of a graph: run the rounds, and merge the clusters that the graph does not connect.

If the graph has several connected components, the rounds end with a forest. HAC then merges the roots of the
forest by a vector linkage (:mod:`agglo.rounds.vector_linkage`), on a new graph of the roots' means. Each of these
merges is a round. With ``connect="auto"``, merges that the graph does not support are dropped first. Then there
are more roots to merge.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from agglo import _core
from agglo._validation import check_choice
from agglo.neighbors.graph import Kind, Missing, NeighborGraph
from agglo.neighbors.search import neighbor_graph
from agglo.rounds.constraints import Constraints
from agglo.rounds.linkage import GRAPH_LINKAGES, LINKAGES, GraphLinkageName, Linkage, LinkageName, check_linkage
from agglo.rounds.schedule import RoundPlan, hac_plan
from agglo.rounds.vector_linkage import (
    CLEAR,
    EPSILON,
    FEW,
    VECTOR_LINKAGES,
    ConnectName,
    VectorLinkage,
    VectorLinkageName,
)
from agglo.tree.default_level import ModularityPath, modularity_path
from agglo.tree.forest import Forest
from agglo.tree.hierarchy import Hierarchy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ALL_PAIRS = 2000  # compare all pairs of roots up to this number of roots
_NEIGHBORS = 25
_ROWS = 65536  # number of points that are summed at a time
# A merge is supported if the edge weight between its clusters is at least this share of what chance would give.
_LEAST_RESOLUTION = 2 / 3
_LEAST_EXCESS = 2 / 5  # a merge is also supported if the excess of one child is at least this; see _excess
_NO_EDGE = 1e-12  # a smaller share of the total edge weight is a rounding error and counts as 0
_ROUNDING = 1e-9  # the order of the points changes sums by less than this
Planner = Callable[[GraphLinkageName | Linkage | VectorLinkage, npt.NDArray[np.float64] | None], RoundPlan]
"""A function that returns the parameters of the rounds, given the linkage and the weights of the points."""
Engine = Callable[[NeighborGraph, RoundPlan, Constraints | None], Forest]
"""A function that runs the rounds with the parameters of a plan, and returns the merges as a forest."""


def check_round_options(linkage: object, connect: object) -> None:
    """Raise if ``linkage``, or the linkage ``connect`` that merges the roots, is unknown."""
    if not isinstance(linkage, str) or linkage not in LINKAGES:
        check_linkage(linkage)
    check_choice("connect", connect, (None, "auto", *VECTOR_LINKAGES))


def build_hierarchy(
    engine: Engine,
    plan_rounds: Planner,
    graph: NeighborGraph,
    linkage: LinkageName | Linkage,
    X: npt.ArrayLike | None,
    connect: ConnectName | None,
    constraints: Constraints | None,
) -> Hierarchy:
    """Run the rounds on ``graph``, merge the remaining roots, and return the tree.

    ``plan_rounds(linkage, weights)`` returns the parameters of the rounds. ``weights`` are point weights, or None.
    """
    weights = None if constraints is None else constraints.weights
    rule: GraphLinkageName | Linkage | VectorLinkage
    if linkage == "exact-average" or linkage == "centroid" or linkage == "ward":
        rule = VectorLinkage(graph, linkage, X, weights)
        rule.warn_of_rounding(stacklevel=3)
    else:
        rule = linkage
    root_linkage: VectorLinkage | None = None
    if connect is not None and connect != "auto":
        root_linkage = VectorLinkage(graph, connect, X, weights)  # raises if X is invalid, before the rounds run
    plan = plan_rounds(rule, weights)
    forest = engine(graph, plan, constraints)

    kind, about = graph.kind, {"linkage": str(rule), "metric": graph.metric, **plan.about}
    missing, closest = cast(Missing, graph.missing), graph.weights.max(initial=1.0)
    if not isinstance(rule, str):
        kind, missing = rule.kind, "ignore"
        closest = np.max(forest.value, initial=1.0, where=np.isfinite(forest.value))
        if not isinstance(rule, VectorLinkage):
            about["linkage"] = type(rule).__name__
    if plan.mutual:
        forest = _sort_merges(forest, kind == "similarity")
    if constraints is not None:
        about |= constraints.about()
    origin = max(1.0, float(closest))
    n_clusters = int(forest.after[-1]) if len(forest.after) else graph.n_points
    if connect == "auto":
        chosen = choose_connect(graph.metric, linkage, X)
        # If thresholds or constraints ended the rounds while edges were left, do not merge the roots.
        if chosen is not None and (n_clusters == 1 or n_clusters == _count_components(graph)):
            if chosen == "ward" and 2 * graph.n_edges < graph.n_points * (graph.n_points - 1):
                tree = Hierarchy.from_forest(forest, kind=kind, missing=missing, origin=origin, about=about)
                forest = drop_unsupported_merges(forest, modularity_path(tree, graph, sample_weight=weights))
                n_clusters = int(np.count_nonzero(forest.parent < 0))
            if n_clusters > 1:
                root_linkage = VectorLinkage(graph, chosen, X, weights)
    if root_linkage is not None:
        n_below = len(forest.parent)
        forest = merge_roots(engine, forest, root_linkage, kind, constraints)
        if connect == "auto" and root_linkage.linkage == "ward":
            forest = extend_heights(forest, n_below, kind, missing)
        about |= {"connect": str(root_linkage), "graph_clusters": n_clusters}
    return Hierarchy.from_forest(forest, kind=kind, missing=missing, origin=origin, about=about)


def _sort_merges(forest: Forest, is_similarity: bool) -> Forest:
    """Sort the merges of a binary forest by linkage value; return a forest with one merge per round, as in HAC.

    If a merge is closer than a merge below it, both are sorted by the value of the merge below. So children come
    before their parents. Merges of must-link points have infinite linkage values. They stay in the first round.
    """
    must_link = np.isinf(forest.value)
    # Number of nodes that are not sorted: leaves and must-link merges.
    n = int(((forest.round == 0) | must_link).sum())
    rounds = int(must_link.any())  # number of rounds that are not sorted
    merges = len(forest.parent) - n
    distance = -forest.value[n:] if is_similarity else forest.value[n:]
    settled = _core.make_heights_monotone(forest.parent, np.concatenate([np.full(n, -np.inf), distance]))[n:]
    order = np.argsort(settled, kind="stable")
    place = np.empty(merges, np.int32)
    place[order] = np.arange(merges, dtype=np.int32)
    old = np.concatenate([np.arange(n), n + order])
    parent = forest.parent[old]
    inner = parent >= n
    parent[inner] = n + place[parent[inner] - n]
    clusters = int(forest.before[rounds]) if merges else 0
    before = clusters - np.arange(merges)
    unknown = np.full(merges, np.nan)
    return Forest(
        parent,
        forest.value[old],
        forest.size[old],
        np.concatenate([forest.round[:n], rounds + np.arange(1, merges + 1, dtype=np.int32)]),
        np.concatenate([forest.threshold[:rounds], unknown]),
        np.concatenate([forest.before[:rounds], before]),
        np.concatenate([forest.after[:rounds], before - 1]),
        np.concatenate([forest.seconds[:rounds], unknown]),
    )


def _count_components(graph: NeighborGraph) -> int:
    return int(connected_components(graph.to_scipy(), False, return_labels=False))


def choose_connect(metric: str | None, linkage: object, X: Any) -> VectorLinkageName | None:
    """Choose the linkage that merges roots for ``connect="auto"``: the first that the metric supports.

    If ``linkage`` is ``"average"``, the order is ward, exact-average, centroid. Otherwise, it is exact-average,
    centroid. If ``X`` is None or sparse, or if ``linkage`` is not a graph linkage, return None.
    """
    if X is None or sp.issparse(X) or linkage not in GRAPH_LINKAGES:
        return None
    names: tuple[VectorLinkageName, ...] = ("exact-average", "centroid")
    if linkage == "average":
        names = ("ward", *names)
    return next((name for name in names if metric in VECTOR_LINKAGES[name]), None)


def drop_unsupported_merges(forest: Forest, path: ModularityPath) -> Forest:
    """Return the forest without the merges that the graph does not support, and without all merges above them.

    If clusters have hardly any edges between them, their average linkages on the graph are almost equal. The
    nearest cluster is then arbitrary. A merge is supported in two cases:

    1. The cut with the largest modularity at resolution 2/3 applies the merge. So the edge weight between the
       merged clusters is at least about 2/3 of the edge weight that chance would give. See
       :func:`agglo.modularity_path`.
    2. The other child is a clear neighbour of one of the two children. Consider all edge weight that leaves a
       child. A share of this weight goes to the other child. By chance, this share would be the other child's
       share of all degrees outside the child. The share must exceed chance by at least 2/5 of the largest possible
       excess. This rule keeps the parts of long or curved clusters together. Such parts have few edges between
       them, but hardly any edges to other clusters. If a node has more than two children, the edge
       weights that leave its children are added up. Their sum is compared with chance.

    ``path`` is the modularity path of the tree of ``forest``.
    """
    tree, up = path.tree, path.tree.parent[:-1]
    inside, volume = path.node_inside, path.node_volume
    leaving = np.maximum(volume - inside, 0.0)

    def add_children(values: Floats) -> Floats:
        return np.bincount(up, values, tree.n_nodes).astype(np.float64, copy=False)

    between = inside - add_children(inside[:-1])  # contains each edge twice, as `inside` does
    between[between < _NO_EDGE] = 0.0
    siblings = volume[up] - volume[:-1]
    outside = 1 - volume[:-1]
    best = np.full(tree.n_nodes, -np.inf)  # if a node has two children, each child has half of `between`
    np.maximum.at(best, up, _excess(between[up] / 2, leaving[:-1], siblings, outside))
    pooled = _excess(
        between,
        add_children(leaving[:-1]),
        add_children(volume[:-1] * siblings),
        add_children(volume[:-1] * outside),
    )
    n_children = np.bincount(up, minlength=tree.n_nodes)
    has_clear_neighbor = np.where(n_children == 2, best, pooled) >= _LEAST_EXCESS - _ROUNDING
    merged = -_core.min_over_ancestors(tree.parent, -path.node_resolution) >= _LEAST_RESOLUTION * (1 - _ROUNDING)
    is_supported = merged | (has_clear_neighbor & (between > 0)) | (tree.round == 0)
    is_kept = _core.sum_descendants(tree.parent, (~is_supported).astype(np.int64))[: len(forest.parent)] == 0
    return _select_nodes(forest, is_kept)


def _excess(weight: Floats, leaving: Floats, chance: Floats, total: Floats) -> Floats:
    """Return the excess of weight / leaving over chance / total, as a share of the largest possible excess."""
    with np.errstate(divide="ignore", invalid="ignore"):
        excess: Floats = (weight / leaving - chance / total) / (1 - chance / total)
    return np.where(np.isfinite(excess), excess, -np.inf)


def _select_nodes(forest: Forest, is_kept: npt.NDArray[np.bool_]) -> Forest:
    """Return the forest with only the nodes to keep, and only the rounds that created one of these nodes.

    All descendants of a kept node must be kept, too.
    """
    if is_kept.all():
        return forest
    nodes = np.flatnonzero(is_kept)
    place = np.full(len(is_kept) + 1, -1, np.int32)  # new id of each node; the last entry keeps the parent -1
    place[nodes] = np.arange(len(nodes), dtype=np.int32)
    parent = place[forest.parent[nodes]]
    rounds, round = np.unique(forest.round[nodes], return_inverse=True)  # rounds[0] is 0, the round of the leaves
    children = np.bincount(parent[parent >= 0], minlength=len(nodes))
    n_leaves = int(np.count_nonzero(round == 0))
    removed = np.bincount(round, np.maximum(children - 1, 0))[1:].astype(np.int64)
    after = n_leaves - np.cumsum(removed)
    return Forest(
        parent,
        forest.value[nodes],
        forest.size[nodes],
        round.astype(np.int32),
        forest.threshold[rounds[1:] - 1],
        after + removed,
        after,
        forest.seconds[rounds[1:] - 1],
    )


def extend_heights(forest: Forest, n_below: int, kind: Kind, missing: Missing) -> Forest:
    """Return the forest with new linkage values for Ward's merges, which are the nodes from ``n_below`` on.

    Values of Ward's linkage grow with the number of points, so they cannot be compared with averages. The new
    values continue the values of the rounds on the graph. They start at the farthest value on the graph. The
    difference between a new value and ``missing``, the value of a pair without an edge, is inversely proportional
    to Ward's value. If ``missing`` is ``"ignore"``, the values do not change.
    """
    if missing == "ignore" or len(forest.value) == n_below:
        return forest
    is_merge = (forest.round[:n_below] > 0) & np.isfinite(forest.value[:n_below])
    sign = 1.0 if kind == "similarity" else -1.0
    differences = sign * (forest.value[:n_below][is_merge] - missing)
    closer = max(0.0, float(differences.min())) if len(differences) else 0.0
    ward = 2 - 2 * forest.value[n_below:] if kind == "similarity" else forest.value[n_below:]
    smallest = np.min(ward, initial=np.inf, where=ward > 0)
    ratio = np.where(ward > 0, smallest / np.where(ward > 0, ward, 1.0), 1.0)
    value = forest.value.copy()
    value[n_below:] = missing + sign * closer * ratio
    return forest._replace(value=value)


def merge_roots(
    engine: Engine, forest: Forest, linkage: VectorLinkage, kind: Kind, constraints: Constraints | None
) -> Forest:
    """Merge the roots of a forest by HAC, as far as the constraints allow; return the forest with these merges.

    Parameters
    ----------
    engine : callable
        The function that runs the rounds of HAC on a graph of the roots.
    forest : Forest
        The result of the rounds on the graph. Its leaves are the points of ``linkage``.
    linkage : VectorLinkage
        The linkage that merges the roots.
    kind : {"similarity", "distance"}
        Whether the linkage values of the forest are similarities or distances. The values of new nodes are
        converted to this kind.
    constraints : Constraints, optional
        The constraints on the points, which the forest satisfies.
    """
    is_first = True
    while True:
        roots, labels = _find_roots(forest)
        if len(roots) == 1:
            return forest
        means, spreads, weights = _moments(linkage.points, labels, len(roots), constraints)
        if is_first and linkage.lost > FEW:
            _warn_of_rounding(linkage, means)
        is_first = False
        plan = hac_plan(linkage.with_clusters(means, spreads))
        above = engine(_graph(means, linkage.metric), plan, _translate_constraints(constraints, labels, weights))
        above = _sort_merges(above, linkage.kind == "similarity")
        if not len(above.threshold):
            return forest
        forest = _stack_forests(forest, roots, above._replace(value=_convert_values(kind, linkage, above.value)))


def _find_roots(forest: Forest) -> tuple[Ints, Ints]:
    """Return the roots, in order of their smallest point, and the index of each point's root."""
    up = np.where(forest.parent < 0, np.arange(len(forest.parent)), forest.parent)
    while True:
        higher = up[up]
        if np.array_equal(higher, up):
            break
        up = higher
    found, first, labels = np.unique(up[forest.round == 0], return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return found[order], place[labels]


class _Moments(NamedTuple):
    means: npt.NDArray[np.float32]
    spreads: Floats
    weights: Floats


def _moments(
    points: npt.NDArray[np.float32], labels: Ints, n_clusters: int, constraints: Constraints | None
) -> _Moments:
    """Compute the mean, the sum of squared distances to the mean, and the weight of each cluster."""
    each = np.ones(len(points)) if constraints is None or constraints.weights is None else constraints.weights
    weights: Floats = np.bincount(labels, weights=each, minlength=n_clusters).astype(np.float64)
    sums = np.zeros((n_clusters, points.shape[1]))
    spreads = np.zeros(n_clusters)
    blocks = [slice(first, first + _ROWS) for first in range(0, len(points), _ROWS)]
    for block in blocks:
        own, weight = labels[block], each[block]
        member = sp.csr_array((weight, (own, np.arange(len(own)))), shape=(n_clusters, len(own)))
        sums += member @ points[block].astype(np.float64)
    means = (sums / weights[:, None]).astype(np.float32)
    for block in blocks:
        away = points[block].astype(np.float64) - means[labels[block]]
        squares = np.square(away).sum(axis=1)  # unlike einsum, sum adds in a fixed order
        spreads += np.bincount(labels[block], weights=each[block] * squares, minlength=n_clusters)
    return _Moments(means, spreads, weights)


def _warn_of_rounding(linkage: VectorLinkage, means: npt.NDArray[np.float32]) -> None:
    """Warn if the rounding of cluster means to float32 is large compared with the distances between means."""
    rounding = EPSILON * np.linalg.norm(means.astype(np.float64), axis=1)
    nearest = cKDTree(means).query(means, 2)[0][:, 1]
    is_lost = nearest < CLEAR * rounding
    if is_lost.mean() > FEW:
        largest = rounding[is_lost].max()
        warnings.warn(
            f"connect={linkage.linkage!r} merges {len(means)} clusters by their means in float32, but the nearest "
            f"mean of {is_lost.mean():.0%} of them is closer than {CLEAR} times its rounding: it rounds means by "
            f"up to {largest:.2g}, because they are up to {largest / EPSILON:.2g} from the "
            "mean of all points. Merges of these clusters may be wrong: move groups of points that are far "
            "apart closer together, cluster each of them alone, or pass connect=None",
            stacklevel=5,
        )


def _graph(means: npt.NDArray[np.float32], metric: str) -> NeighborGraph:
    """Build a nearest-neighbour graph of the root clusters. Each root is represented by the mean of its points.

    The graph is complete up to ``ALL_PAIRS`` roots. Otherwise, it connects each root with its nearest neighbours.
    """
    n = len(means)
    if n > ALL_PAIRS:
        return neighbor_graph(means, _NEIGHBORS, metric, missing=None)
    everyone = np.broadcast_to(np.arange(n, dtype=np.int32), (n, n))
    # All edge weights are 0: vector linkages use edge weights only between single points.
    return NeighborGraph.from_neighbors(everyone, np.zeros((n, n)), kind="distance", metric=metric)


def _translate_constraints(constraints: Constraints | None, labels: Ints, weights: Floats) -> Constraints:
    """Convert constraints on points to constraints on clusters; ``labels`` is the cluster of each point."""
    none = np.empty((0, 2), np.int32)
    if constraints is None:
        return Constraints(none, none, none, np.inf, weights)
    groups = constraints.groups.copy()
    groups[:, 0] = labels[groups[:, 0]]
    return Constraints(none, labels[constraints.cannot].astype(np.int32), groups, constraints.most, weights)


def _convert_values(kind: Kind, linkage: VectorLinkage, values: Floats) -> Floats:
    """Convert linkage values to the kind of the tree. For unit vectors, squared distance = 2 - 2 cosine."""
    if linkage.kind == kind:
        return values
    return 1 - values / 2 if kind == "similarity" else 2 - 2 * values


def _stack_forests(forest: Forest, roots: Ints, above: Forest) -> Forest:
    """Combine two forests: the leaves of ``above`` are the roots of ``forest``."""
    below, n_roots, rounds = len(forest.parent), len(roots), len(forest.threshold)
    new = len(above.parent) - n_roots
    node = np.concatenate([roots, below + np.arange(new)])
    parent = np.concatenate([forest.parent, np.full(new, -1, np.int32)])
    inner = above.parent >= 0
    parent[node[inner]] = node[above.parent[inner]]
    size = np.concatenate([forest.size, np.zeros(new, np.int32)])
    for child in node[inner]:  # children come before their parents
        size[parent[child]] += size[child]
    return Forest(
        parent,
        np.concatenate([forest.value, above.value[n_roots:]]),
        size,
        np.concatenate([forest.round, rounds + above.round[n_roots:]]).astype(np.int32),
        np.concatenate([forest.threshold, above.threshold]),
        np.concatenate([forest.before, above.before]),
        np.concatenate([forest.after, above.after]),
        np.concatenate([forest.seconds, above.seconds]),
    )
