"""The tree of clusters that every algorithm returns, and that cuts, scores and plots take as input."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, SupportsFloat, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._html import render_facts
from agglo._validation import Column, Immutable, check_column, check_integer, check_round, read_only, release
from agglo.neighbors.graph import KINDS, Kind, Missing, NeighborGraph
from agglo.tree import export
from agglo.tree.condense import condense
from agglo.tree.cut import Noise, RoundRule, accept_old_names, cut, find_cluster_nodes
from agglo.tree.default_level import ResolutionRule
from agglo.tree.dp_means_path import Centers
from agglo.tree.forest import Forest
from agglo.tree.taxonomy import Taxonomy, layers, taxonomy


class Round(NamedTuple):
    """One round: its threshold, the number of clusters before and after it, and its duration in seconds.

    Examples
    --------
    >>> import agglo
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> tree.rounds[0].before, tree.rounds[0].after
    (3, 2)
    """

    threshold: float
    before: int
    after: int
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Rounds(Immutable, Sequence[Round]):
    """All rounds that merged clusters, with one array per field of :class:`Round`.

    Examples
    --------
    >>> import agglo
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> tree.rounds.after
    array([2, 1])
    """

    threshold: npt.NDArray[np.float64]
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, dtype in (("threshold", "f8"), ("before", "i8"), ("after", "i8"), ("seconds", "f8")):
            given = getattr(self, name)
            object.__setattr__(self, name, read_only(np.ascontiguousarray(given, dtype), given))
        shapes = {self.threshold.shape, self.before.shape, self.after.shape, self.seconds.shape}
        if len(shapes) != 1 or self.threshold.ndim != 1:
            raise ValueError(f"the columns of Rounds must be one-dimensional and of the same length, got {shapes}")

    def __len__(self) -> int:
        return len(self.threshold)

    @overload
    def __getitem__(self, index: int) -> Round: ...
    @overload
    def __getitem__(self, index: slice) -> Rounds: ...
    def __getitem__(self, index: int | slice) -> Round | Rounds:
        if isinstance(index, slice):
            return Rounds(self.threshold[index], self.before[index], self.after[index], self.seconds[index])
        columns = (self.threshold[index], self.before[index], self.after[index], self.seconds[index])
        return Round(*(column.item() for column in columns))

    def __repr__(self) -> str:
        span = f", {self.before[0]} to {self.after[-1]} clusters" if len(self) else ""
        return f"Rounds({len(self)} rounds{span})"


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy(Immutable):
    """A tree of clusters. Each round of merges gives one partition of the points.

    A node may have any number of children.

    Parameters
    ----------
    parent, height, size, round : ndarray of int32, float64, int32, int32
        One entry per node. ``parent`` is -1 for the root. ``height`` is a distance. ``size`` is the number of
        leaves below the node. ``round`` is the round that merged the node, counted from 1, and 0 for leaves. The
        first ``n_leaves`` nodes are the points.
    rounds : Rounds
        One entry per round that merged clusters: its ``threshold``, the number of clusters ``before`` and
        ``after`` it, and its duration in ``seconds``.
    about : mapping, optional
        Information about how the tree was built. JSON can represent all values.

    Notes
    -----
    The constructor checks these invariants:

    1. there is at least one leaf; leaves come first, with round 0, size 1 and height 0;
    2. the parent of a node has a larger id and is not a leaf; the last node is the root, the only one with
       parent -1;
    3. a node that is not a leaf has at least two children, and its size is the sum of the sizes of the children;
    4. heights are finite, and the height of a parent is not less than the heights of its children;
    5. the round of a parent is larger than the rounds of its children; only the root may have the round
       ``len(rounds) + 1``: the root is then the explicit root of a forest, and not a merge;
    6. every round has at least one node, and the numbers of clusters in ``rounds`` match the nodes.

    Heights are always distances. For a graph of distances, the height of a node is its linkage value. For
    similarities, it is ``about["origin"]`` minus the linkage value, such as 1 - cosine. If the node would be lower
    than a child, it gets the height of its highest child. The explicit root of a forest has the height of a pair
    without an edge. If such pairs are ignored, it has the height of its highest child.

    Examples
    --------
    >>> from agglo import Hierarchy
    >>> from agglo.tree.hierarchy import Rounds
    >>> rounds = Rounds(threshold=[0.5, 1.0], before=[4, 3], after=[3, 1], seconds=[0.0, 0.0])
    >>> parent, height = [4, 4, 5, 5, 5, -1], [0, 0, 0, 0, 0.4, 0.9]
    >>> tree = Hierarchy(parent, height, size=[1, 1, 1, 1, 2, 4], round=[0, 0, 0, 0, 1, 2], rounds=rounds)
    >>> tree
    Hierarchy(4 leaves, 6 nodes, 2 rounds, height 0.9)
    >>> tree.labels(round=1)
    array([0, 0, 1, 2])
    >>> tree.to_newick(names=["ant", "bee", "cow", "dog"])
    '(cow:0.9,dog:0.9,(ant:0.4,bee:0.4):0.5);'
    """

    parent: npt.NDArray[np.int32]
    height: npt.NDArray[np.float64]
    size: npt.NDArray[np.int32]
    round: npt.NDArray[np.int32]
    rounds: Rounds
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        for name, dtype in (("parent", "i4"), ("height", "f8"), ("size", "i4"), ("round", "i4")):
            set_(self, name, check_column(name, getattr(self, name), np.dtype(dtype)))
        if not isinstance(self.rounds, Rounds):
            raise TypeError(f"rounds must be a Rounds, got {type(self.rounds).__name__}")
        lengths = [len(self.parent), len(self.height), len(self.size), len(self.round)]
        if len(set(lengths)) != 1:
            raise ValueError(f"parent, height, size and round must have the same length, got lengths {lengths}")
        message = _core.find_tree_violation(
            (self.parent, self.height, self.size, self.round), self.rounds.before, self.rounds.after
        )
        if message:
            raise ValueError(f"not a hierarchy: {message}; see the invariants in the notes of Hierarchy")
        try:  # convert to JSON and back, so that `about` is equal after saving and loading
            set_(self, "about", json.loads(json.dumps(dict(self.about), allow_nan=False)))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"about must hold values that JSON can store (finite numbers, text, lists): {error}"
            ) from None

    @classmethod
    def from_forest(
        cls,
        forest: Forest,
        *,
        kind: Kind,
        missing: Missing,
        origin: float = 1.0,
        about: Mapping[str, Any] | None = None,
    ) -> Hierarchy:
        """Build the tree from a forest: convert linkage values to heights, and add a common root if needed.

        Parameters
        ----------
        forest : Forest
            The result of the rounds.
        kind, missing
            Whether linkage values are similarities or distances, and the value of a pair without an edge; see
            :class:`agglo.NeighborGraph`.
        origin : float
            The similarity at height 0. It is not used for distances.
        about : mapping, optional
            Further entries of ``about``, in addition to ``kind``, ``missing`` and ``origin``.

        Examples
        --------
        >>> import numpy as np
        >>> from agglo import Hierarchy
        >>> from agglo.testing import random_forest
        >>> forest = random_forest(np.random.default_rng(0), 4)
        >>> Hierarchy.from_forest(forest, kind="distance", missing="ignore").n_leaves
        4
        """
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is unknown: pass 'similarity' or 'distance'")
        parent, value, size, round = forest[:4]
        height = np.where(round == 0, 0.0, origin - value if kind == "similarity" else value)
        roots = np.flatnonzero(parent == -1)
        if len(roots) > 1:
            root_height = -np.inf  # make_heights_monotone raises this to the height of the highest child
            if missing != "ignore":
                root_height = origin - missing if kind == "similarity" else missing
            parent = np.append(parent, np.int32(-1))
            parent[roots] = len(parent) - 1
            height = np.append(height, root_height)
            size = np.append(size, size[roots].sum(dtype=np.int32))
            round = np.append(round, np.int32(len(forest.threshold) + 1))
        height = _core.make_heights_monotone(np.ascontiguousarray(parent, np.int32), height)
        record: dict[str, Any] = {"kind": kind, "missing": missing}
        if kind == "similarity":
            record["origin"] = float(origin)
        rounds = Rounds(forest.threshold, forest.before, forest.after, forest.seconds)
        height = release(height + 0.0)  # adding 0.0 turns -0.0 into 0.0
        parent, size, round = (column if len(roots) == 1 else release(column) for column in (parent, size, round))
        return cls(parent, height, size, round, rounds, record | dict(about or {}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Hierarchy:
        """Load the tree that :meth:`save` wrote to ``path``.

        Examples
        --------
        >>> import agglo, tempfile
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tree.save(f"{folder}/tree.parquet")
        ...     agglo.Hierarchy.load(f"{folder}/tree.parquet")
        Hierarchy(3 leaves, 5 nodes, 2 rounds, height 4.5)
        """
        from agglo.tree.file import read_tree  # PyArrow is slow to import

        return read_tree(path, cls.from_columns)

    @classmethod
    def from_columns(cls, rounds: Mapping[str, Column], **nodes: Any) -> Hierarchy:
        """Build the tree from columns with one entry per round and columns with one entry per node.

        Examples
        --------
        >>> from agglo import Hierarchy
        >>> rounds = {"threshold": [1.0], "before": [2], "after": [1], "seconds": [0.0]}
        >>> height = [0.0, 0.0, 1.0]
        >>> Hierarchy.from_columns(rounds, parent=[2, 2, -1], height=height, size=[1, 1, 2], round=[0, 0, 1])
        Hierarchy(2 leaves, 3 nodes, 1 rounds, height 1)
        """
        return cls(rounds=Rounds(**rounds), **nodes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to ``path`` as one Parquet file; if writing fails, an existing file does not change.

        The file has one row per node, with the columns ``parent``, ``height``, ``size`` and ``round``, and the
        ``threshold`` and ``seconds`` of the node's round. ``about`` is stored in the metadata. Any Parquet reader
        can read the file.
        """
        from agglo.tree.file import write_tree  # PyArrow is slow to import

        write_tree(self, path)

    @cached_property
    def n_leaves(self) -> int:
        """The number of leaves, which are the points."""
        return int(np.count_nonzero(self.round == 0))

    @property
    def n_nodes(self) -> int:
        """The number of nodes, including the leaves and the root."""
        return len(self.parent)

    @property
    def n_given_rounds(self) -> int:
        """Number of initial rounds (0 or 1) in which only duplicates and must-link points are merged."""
        return int(len(self.rounds) > 0 and ("copies" in self.about or "must_link" in self.about))

    def labels(self, round: SupportsIndex) -> npt.NDArray[np.int64]:
        """Return the labels of the points after a round, numbered in order of first appearance.

        Rounds are counted from 1. In round 0, every point is its own cluster. Negative numbers count from the last
        round.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> tree.labels(round=1)
        array([0, 0, 1])
        """
        return self.partition(self.round <= check_round(round, len(self.rounds)))

    @accept_old_names
    def cut(
        self,
        n_clusters: SupportsIndex | None = None,
        *,
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
        resolution: SupportsFloat | ResolutionRule | None = None,
        dp_means: SupportsFloat | None = None,
        min_size: SupportsIndex | None = None,
        max_size: SupportsIndex | None = None,
        known_classes: Mapping[int, Any] | npt.ArrayLike | None = None,
        exact: bool = False,
        X: npt.ArrayLike | None = None,
        centers: Centers = "means",
        graph: NeighborGraph | None = None,
        noise: Noise = "merge",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> npt.NDArray[np.int64]:
        """Select a flat clustering by exactly one rule, and return the label of each point.

        The rules are the parameters from ``n_clusters`` to ``known_classes``.

        Parameters
        ----------
        n_clusters : int
            Select the round whose number of clusters is closest to ``n_clusters``. Ties go to the finer round.
            Possibly no round has exactly this number of clusters: see ``exact``.
        round : int, "persistent" or "silhouette"
            Select a round by its number, as :meth:`labels` counts them. ``"persistent"`` selects the cluster count
            that survives the longest range of thresholds, see
            :func:`agglo.tree.persistent_round.persistent_round`.
            ``"silhouette"`` selects the round whose clusters are best separated in ``graph``, see
            :func:`agglo.tree.silhouette.silhouette_round`.
        height : float
            Apply all merges up to this height. The explicit root of a forest is not a merge.
        resolution : float or "persistent"
            Select the nodes with the largest modularity on ``graph`` at this resolution. A larger resolution gives
            more clusters. ``"persistent"`` selects the number of clusters that survives the longest range of
            resolutions. The clusterers use this rule by default. See :func:`agglo.modularity_path` and
            :meth:`agglo.tree.default_level.ModularityPath.persistent_resolution`.
        dp_means : float
            Select the nodes with the lowest DP-means cost: the sum of squared distances to the centers, plus this
            value (λ) for each cluster. Needs ``X``. For several values of λ, see :func:`agglo.dp_means_path`.
        min_size, max_size : int
            ``min_size`` selects the finest partition whose clusters all have at least this number of points.
            ``max_size`` selects the coarsest partition whose clusters all have at most this number. If both are
            given, ``max_size`` selects the clusters. A cluster smaller than ``min_size`` is then an error, unless
            ``noise="label"``.
        known_classes : mapping of points to classes, or array-like of shape (n_leaves,)
            Select the partition that agrees with the known classes on the most pairs of points. In an array, -1,
            None and NaN mean unknown. See :func:`agglo.tree.known_classes.cut_by_known_classes`.
        exact : bool
            With ``n_clusters``: select exactly this number of nodes, from any rounds, with the smallest sum of
            squared distances to their centers. Needs ``X``. Raises if the tree has no such partition, see
            :meth:`agglo.tree.dp_means_path.DPMeansPath.cut_exactly`.
        X : array-like of shape (n_leaves, n_features)
            The points that the tree was built from, for ``dp_means`` and ``exact``; see
            :func:`agglo.dp_means_path`.
        centers : {"means", "points"}
            For ``dp_means`` and ``exact``: the center of a cluster is its mean, or its point with the lowest cost.
        graph : NeighborGraph
            The graph that the tree was built from, for ``resolution`` and ``round="silhouette"``.
        noise : {"merge", "label"}
            For ``min_size``: ``"merge"`` keeps a node whole if one of its children is too small. ``"label"``
            splits a node as soon as two of its children are large enough. The points of its small children get
            the label -1, like noise in DBSCAN.
        random_state : int
            For ``round="silhouette"``: the random seed of the sample of points that it evaluates.
        n_jobs : int, optional
            The number of threads to compute costs. By default, all cores are used. The result does not depend on
            it.

        Returns
        -------
        ndarray of int64
            One label per point: 0, 1, ... in order of first appearance; -1 only with ``noise="label"``.

        Examples
        --------
        >>> import agglo
        >>> X = [[0.0], [1.0], [10.0], [12.0], [50.0], [51.0], [80.0]]
        >>> tree = agglo.scc(agglo.neighbor_graph(X, 3, "euclidean"))
        >>> tree.cut(n_clusters=2)
        array([0, 0, 0, 0, 1, 1, 1])
        >>> tree.cut(height=2)
        array([0, 0, 1, 1, 2, 2, 3])
        >>> tree.cut(dp_means=1.5, X=X)
        array([0, 0, 1, 2, 3, 3, 4])
        >>> tree.cut(n_clusters=3, exact=True, X=X)
        array([0, 0, 0, 0, 1, 1, 2])
        >>> tree.cut(max_size=2)
        array([0, 0, 1, 1, 2, 2, 3])
        >>> tree.cut(known_classes={0: "near", 3: "near", 4: "far"})
        array([0, 0, 0, 0, 1, 1, 1])
        """
        rules = {
            "n_clusters": n_clusters,
            "round": round,
            "height": height,
            "resolution": resolution,
            "dp_means": dp_means,
            "min_size": min_size,
            "max_size": max_size,
            "known_classes": known_classes,
        }
        inputs = {
            "exact": exact,
            "X": X,
            "centers": centers,
            "graph": graph,
            "random_state": random_state,
            "noise": noise,
        }
        return cut(self, rules, inputs, n_jobs)

    def layers(self, n: SupportsIndex = 4) -> npt.NDArray[np.int64]:
        """Return the labels of up to ``n`` nested levels to browse, one row per level, from fine to coarse.

        The numbers of clusters form a geometric progression, and :meth:`taxonomy` selects the levels. The finest
        layer has about as many clusters as the cut ``round="persistent"``, where small clusters hardly count. The
        ratio of the progression is at least 2, and such that one more layer would have 2.5 clusters. If there are
        few clusters, some layers are finer instead. Small trees may have fewer layers.

        Examples
        --------
        >>> import agglo
        >>> from sklearn.datasets import load_digits
        >>> tree = agglo.scc(agglo.neighbor_graph(load_digits().data))
        >>> [len(set(labels)) for labels in tree.layers(3)]
        [10, 5, 3]
        """
        return layers(self, n)

    def taxonomy(
        self,
        n_clusters: Sequence[SupportsIndex],
        *,
        min_children: SupportsIndex = 2,
        max_size: SupportsIndex | None = None,
    ) -> Taxonomy:
        """Cut the tree into nested levels, with about the numbers of clusters in ``n_clusters``.

        All clusters are nodes of the tree, from any rounds. The cost of a cut is the k-means cost with heights as
        squared distances; see :func:`agglo.tree.taxonomy.compute_cophenetic_costs`. Each level is a cut with the
        least cost among all cuts with at most as many clusters. Such cuts are nested. Outliers are rarely clusters
        of their own, unlike in a round of the tree. If no such cut has the wanted number of clusters, the level
        has the nearest possible number by ratio.

        Parameters
        ----------
        n_clusters : sequence of int
            The wanted numbers of clusters, increasing, such as ``[8, 50, 500]``.
        min_children : int
            The smallest number of parts into which the next finer level splits a cluster. A cluster may also stay
            whole. If ``min_children`` is above 2, levels are selected from fine to coarse. Each level then has the
            least cost, given the next finer level.
        max_size : int, optional
            The largest number of points of a cluster of the finest level. This level may then have more clusters
            than wanted.

        Returns
        -------
        Taxonomy
            ``labels``, one row per level in the order of ``n_clusters``, and ``tree``, a hierarchy of the clusters
            of all levels.

        Examples
        --------
        >>> import agglo
        >>> from sklearn.datasets import load_digits
        >>> tree = agglo.scc(agglo.neighbor_graph(load_digits().data))
        >>> levels = tree.taxonomy([4, 12, 60])
        >>> [len(set(labels)) for labels in levels.labels]
        [5, 12, 60]
        >>> levels.tree
        Hierarchy(1797 leaves, 1871 nodes, 73 rounds, height 0.3104)
        """
        return taxonomy(self, n_clusters, min_children, max_size)

    def condense(self, *, branching: SupportsFloat = 2.0, min_size: SupportsIndex | None = None) -> Hierarchy:
        """Return a smaller tree with the main nodes only: large clusters that exist over a long range of heights.

        The full tree is nearly binary. The condensed tree keeps the set of nodes that describes it best, by an
        exact optimization over the whole tree; :func:`agglo.tree.condense.select_nodes` has the definition. A
        child of a dropped node becomes a child of the lowest kept ancestor. So the points of small parts become
        single points of a kept node.

        Parameters
        ----------
        branching : float
            The typical number of children of a kept node; above 1. Larger numbers keep fewer nodes. The default
            keeps nearly all quality of the tree; pass 4 to 10 for a tree to read.
        min_size : int, optional
            The smallest number of points of a kept node. By default, an eighth of the cube root of the number of
            points, at least 2; see :func:`agglo.tree.condense.default_min_size`.

        Returns
        -------
        Hierarchy
            A tree with the same leaves. Kept nodes have the height of the full tree. ``about["condensed"]`` has
            both parameters.

        Examples
        --------
        >>> import agglo
        >>> from sklearn.datasets import load_digits
        >>> tree = agglo.scc(agglo.neighbor_graph(load_digits().data))
        >>> tree
        Hierarchy(1797 leaves, 3584 nodes, 1558 rounds, height 0.3104)
        >>> tree.condense(branching=5, min_size=50)
        Hierarchy(1797 leaves, 1834 nodes, 37 rounds, height 0.3104)
        """
        return condense(self, branching, min_size)

    def partition(self, merged: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return the labels of the points after merging some nodes, numbered in order of first appearance.

        ``merged`` is a mask with one entry per node. All nodes below a merged node are merged, too.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> tree.partition(tree.height <= 2)
        array([0, 0, 1])
        """
        mask = np.ascontiguousarray(merged, np.bool_)
        if mask.shape != self.parent.shape:
            raise ValueError(f"merged has shape {mask.shape}: pass one entry for each of {self.n_nodes} nodes")
        return _core.label_leaves(self.parent, mask, self.n_leaves).view(
            np.int64
        )  # the repr of int64 shows no dtype

    def nodes(self, labels: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Return the tree node of each cluster in ``labels``.

        ``labels`` is a result of :meth:`cut` or :meth:`partition`. Points labelled -1 are in no cluster.

        Raises
        ------
        ValueError
            If a cluster is not a node of the tree.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> tree.nodes(tree.cut(n_clusters=2))
        array([3, 2], dtype=int32)
        """
        return find_cluster_nodes(self, labels)

    def children(self, node: SupportsIndex) -> npt.NDArray[np.int32]:
        """Return the children of ``node`` in ascending order; a leaf has none.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> tree.children(4)
        array([2, 3], dtype=int32)
        """
        inner = self._check_node(node) - self.n_leaves
        indptr, children, _, _ = self._traversal
        return children[indptr[inner] : indptr[inner + 1]].copy() if inner >= 0 else children[:0]

    def leaves(self, node: SupportsIndex) -> npt.NDArray[np.int32]:
        """Return the leaves below ``node`` in ascending order; for a leaf, return the leaf itself.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> tree.leaves(3)
        array([0, 1], dtype=int32)
        """
        checked = self._check_node(node)
        first = self.start[checked]
        return np.sort(self.order[first : first + self.size[checked]])

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """The leaves, ordered such that the leaves below every node are contiguous."""
        return self._traversal[3]

    @property
    def start(self) -> npt.NDArray[np.int32]:
        """For each node, the position in :attr:`order` of its first leaf."""
        return self._traversal[2]

    @cached_property
    def _traversal(self) -> tuple[Column, Column, Column, Column]:
        """The children in CSR form (indptr, children), then :attr:`start` and :attr:`order`."""
        indptr, children, start, order = _core.index_descendants(self.parent, self.size, self.n_leaves)
        return indptr, children, start, order

    def _check_node(self, node: SupportsIndex) -> int:
        index = check_integer("node", node, "a node")
        if not 0 <= index < self.n_nodes:
            raise IndexError(
                f"node={index} is out of range: the tree has {self.n_nodes} nodes, 0 to {self.n_nodes - 1}, "
                f"of which the first {self.n_leaves} are leaves"
            )
        return index

    def to_scipy(self) -> npt.NDArray[np.float64]:
        """Return the tree as SciPy's linkage matrix, with rows sorted by height.

        A node with m children becomes m - 1 rows of the same height. The rows merge the children in pairs, then
        the pairs in pairs, so that the binary tree is shallow enough for recursive functions.

        Examples
        --------
        >>> import agglo
        >>> from scipy.cluster.hierarchy import fcluster
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> fcluster(tree.to_scipy(), 2.0, "distance")
        array([1, 1, 2], dtype=int32)
        """
        if self.n_leaves < 2:
            raise ValueError("a tree of 1 leaf has no linkage matrix: SciPy's format needs 2 leaves or more")
        columns = (self.parent, self.height, self.size, self.round)
        return _core.to_scipy_linkage(columns, self.n_leaves).reshape(-1, 4)

    def to_networkx(self) -> Any:
        """Return the tree as a networkx.DiGraph with edges from parent to child.

        Nodes have the attributes ``height``, ``size`` and ``round``. Edges have the attribute ``length``, the
        height of the parent minus the height of the child.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> tree.to_networkx().edges(data="length")
        OutEdgeDataView([(3, 0, 1.0), (3, 1, 1.0), (4, 2, 4.5), (4, 3, 3.5)])
        """
        return export.to_networkx(self)

    def to_newick(self, names: Sequence[object] | None = None) -> str:
        """Return the tree in Newick format with branch lengths; leaf names are ``names``, or the point indices.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> tree.to_newick(["a", "b", "c"])
        '(c:4.5,(a:1.0,b:1.0):3.5);'
        """
        return export.to_newick(self, names)

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with one row per node: ``parent``, ``height``, ``size`` and ``round``.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> tree.to_frame()["parent"].tolist()
        [3, 3, 4, 4, -1]
        """
        return export.to_frame(self)

    def explore(self, texts: Sequence[str] | None = None, columns: Mapping[str, Any] | None = None) -> Any:
        """Open an :class:`agglo.explore.Explorer` of the tree, shown in a notebook, or as a link elsewhere.

        The explorer is a web page, served on this machine until it is closed or the program ends. In a notebook,
        the displayed page has only the coarsest clusters, and needs no server. ``texts`` contains one text per
        point. The texts describe the points and name the clusters. ``columns`` contains further values per point,
        to show and to color by.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> with tree.explore(["ant", "bee", "cow"]) as explorer:
        ...     explorer.url.startswith("http://127.0.0.1:")
        True
        """
        # Import the explorer by name at run time, so that the tree does not depend on it.
        viewer = importlib.import_module("agglo.explore")
        return viewer.Explorer(viewer.open_tree(self, texts, columns)).start()

    def _repr_html_(self) -> str:
        """Return a summary for notebooks."""
        children = np.bincount(self.parent[:-1])[self.n_leaves :]
        facts = {
            "points": f"{self.n_leaves:,}",
            "clusters": f"{len(children):,}, {children.mean() if len(children) else 0:.1f} children on average",
            "rounds": f"{len(self.rounds):,}",
            "height": f"{self.height[-1]:.4g}",
        }
        names = ("method", "linkage", "metric")
        facts |= {name: str(self.about[name]) for name in names if self.about.get(name) is not None}
        return render_facts("Hierarchy", facts)

    def __repr__(self) -> str:
        return (
            f"Hierarchy({self.n_leaves} leaves, {self.n_nodes} nodes, {len(self.rounds)} rounds, "
            f"height {self.height[-1]:.4g})"
        )
