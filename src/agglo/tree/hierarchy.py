"""The tree: what every clustering returns, and where cuts and evaluation start."""

from __future__ import annotations

import importlib
import json
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._arrays import Column, Immutable, check_column, release
from agglo.neighbors.graph import KINDS, Kind, Missing, NeighborGraph
from agglo.tree.cut import Noise, RoundRule, accept_old_names, cut, find_cluster_nodes
from agglo.tree.dp_means import Centers
from agglo.tree.forest import Forest as Forest
from agglo.tree.forest import Round as Round
from agglo.tree.forest import Rounds as Rounds
from agglo.tree.persistence import layers
from agglo.tree.validation import check_round


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy(Immutable):
    """A tree over points, any number of children a node, and the partition after each round that made it.

    Parameters
    ----------
    parent, height, size, round : ndarray of int32, float64, int32, int32
        An entry a node: its parent (-1 for the root), its height (a distance), its number of leaves, and the
        round that merged it, counted from 1 (0 for leaves). Node ``i`` is point ``i`` for ``i < n_leaves``.
    rounds : Rounds
        A record for each round that merged: ``threshold``, clusters ``before`` and ``after``, ``seconds``.
    about : mapping, optional
        What is on record of how the tree was made, as JSON can hold it.

    Notes
    -----
    Invariants, checked when a tree is made:

    1. leaves come first, are of round 0, size 1 and height 0; there is at least one;
    2. a node's parent has a larger id and is no leaf; the last node is the root, the only one with parent -1;
    3. every other node has two children or more, and the sum of their sizes;
    4. heights are finite, and a parent is not below its children;
    5. a parent's round is larger than its children's; only the root may be of the round after the last,
       ``len(rounds) + 1``: then it ties up a forest and stands for no merge;
    6. round ``i`` has at least one node, and the records of the rounds count the clusters that nodes make.

    Heights are distances for any graph: the linkage value itself for distances, and for similarities
    ``about["origin"]`` minus it (1 - cosine, for cosines), each at least as high as the nodes below. The
    explicit root of a forest has the height of ``missing`` pairs, or of its highest child if those are
    ignored.

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
            raise ValueError(f"parent, height, size and round must be of one length, got lengths {lengths}")
        message = _core.tree_violation(
            self.parent, self.height, self.size, self.round, self.rounds.before, self.rounds.after
        )
        if message:
            raise ValueError(f"not a hierarchy: {message}; see the invariants in the notes of Hierarchy")
        try:  # what is on record must survive a file, and is kept as it would come back from one
            set_(self, "about", json.loads(json.dumps(dict(self.about), allow_nan=False)))
        except (TypeError, ValueError) as error:
            raise TypeError(f"about must hold what JSON can hold (finite numbers, text, lists): {error}") from None

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
        """The tree of what an engine returned: linkage values turned into heights, and a root over all roots.

        Parameters
        ----------
        forest : Forest
            The columns of the nodes and of the rounds.
        kind, missing
            As of the graph: what linkage values mean, and the value of pairs without an edge.
        origin : float
            The similarity that stands at height 0; not used for distances.
        about : mapping, optional
            What else to put on record beside ``kind``, ``missing`` and ``origin``.
        """
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is unknown: pass 'similarity' or 'distance'")
        parent, value, size, round = forest[:4]
        height = np.where(round == 0, 0.0, origin - value if kind == "similarity" else value)
        roots = np.flatnonzero(parent == -1)
        if len(roots) > 1:
            top = -np.inf  # the highest child will raise it
            if missing != "ignore":
                top = origin - missing if kind == "similarity" else missing
            parent = np.append(parent, np.int32(-1))
            parent[roots] = len(parent) - 1
            height = np.append(height, top)
            size = np.append(size, size[roots].sum(dtype=np.int32))
            round = np.append(round, np.int32(len(forest.threshold) + 1))
        height = _core.tree_settled(np.ascontiguousarray(parent, np.int32), height)
        record: dict[str, Any] = {"kind": kind, "missing": missing}
        if kind == "similarity":
            record["origin"] = float(origin)
        rounds = Rounds(forest.threshold, forest.before, forest.after, forest.seconds)
        height = release(height + 0.0)  # -0.0 becomes 0.0
        parent, size, round = (column if len(roots) == 1 else release(column) for column in (parent, size, round))
        return cls(parent, height, size, round, rounds, record | dict(about or {}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Hierarchy:
        """Load the tree that :meth:`save` wrote to ``path``."""
        from agglo.tree.file import read_tree  # PyArrow is slow to import

        return read_tree(path, cls)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to ``path`` as one Parquet file, whole or not at all.

        A row is a node, with the columns ``parent``, ``height``, ``size``, ``round``, and the ``threshold``
        and ``seconds`` of that round; ``about`` is in the metadata. Any reader of Parquet can use it.
        """
        from agglo.tree.file import write_tree  # PyArrow is slow to import

        write_tree(self, path)

    @cached_property
    def n_leaves(self) -> int:
        """Number of leaves, which are the points."""
        return int(np.count_nonzero(self.round == 0))

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves and root among them."""
        return len(self.parent)

    def labels(self, round: SupportsIndex) -> npt.NDArray[np.int64]:
        """Labels of the points after the ``round``-th round that merged, in order of first appearance.

        Round 0 is before the first, every point being its own cluster; negative rounds count from the end.
        """
        return self.partition(self.round <= check_round(round, len(self.rounds)))

    @accept_old_names
    def cut(
        self,
        n_clusters: SupportsIndex | None = None,
        *,
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
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
        """Label the points by a flat clustering, which exactly one rule selects.

        The rules are the parameters ``n_clusters`` to ``known_classes``.

        Parameters
        ----------
        n_clusters : int
            Select the round whose number of clusters is closest; of two equally close rounds, the finer. Round 0
            has every point as its own cluster. Rounds may skip the number: see ``exact``.
        round : int, "persistent" or "silhouette"
            Select a round by its number, as :meth:`labels` counts them. ``"persistent"`` selects the cluster count
            that survives the longest range of thresholds, see :func:`agglo.tree.persistence.persistent_round`.
            ``"silhouette"`` selects the round whose clusters are best separated in ``graph``, see
            :func:`agglo.tree.silhouette.silhouette_round`.
        height : float
            Apply all merges of at most this height. The explicit root of a forest is never applied.
        dp_means : float
            Select the nodes of least DP-means cost: the squared distances to the centers, plus this value for each
            cluster. Needs ``X``. For more than one value, see :func:`agglo.dp_means_path`.
        min_size, max_size : int
            ``min_size`` selects the finest partition whose clusters have at least that number of points;
            ``max_size`` the coarsest whose clusters have at most that number. With both, the clusters are those of
            ``max_size``, and a cluster smaller than ``min_size`` is an error unless ``noise="label"``.
        known_classes : mapping of points to classes, or array-like of shape (n_leaves,)
            Select the partition that agrees with the known classes on the most pairs of points. In an array, -1,
            None and NaN mean unknown. See :func:`agglo.tree.known_classes.cut_by_known_classes`.
        exact : bool
            With ``n_clusters``: select exactly that number of nodes, from any rounds, such that the sum of squared
            distances to their centers is least. Needs ``X``. An error if the tree has no such partition, see
            :meth:`agglo.tree.dp_means.DPMeansPath.cut_exactly`.
        X : array-like of shape (n_leaves, n_features)
            The points that the tree was built from, for ``dp_means`` and ``exact``; see
            :func:`agglo.dp_means_path`.
        centers : {"means", "points"}
            For ``dp_means`` and ``exact``: the center of a cluster is its mean, or the best of its points.
        graph : NeighborGraph
            The graph that the tree was built from, for ``round="silhouette"``.
        noise : {"merge", "label"}
            For ``min_size``: ``"merge"`` keeps a node whole if one of its children is too small. ``"label"``
            splits a node as soon as two of its children are large enough, and labels the points of its small
            children -1, as DBSCAN labels noise.
        random_state : int
            For ``round="silhouette"``: the random seed of its sample of points.
        n_jobs : int, optional
            Number of threads to compute costs, all cores by default. It does not change the result.

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
        """Labels of up to ``n`` distinct granularities, from fine to coarse, a row each.

        They are the partitions after those rounds that represent the whole merging best: as for
        ``cut(round="persistent")``, which is what one layer gives, but with every round counting towards the layer
        that is closest to it in number of clusters; see :func:`agglo.tree.persistence.layer_rounds`. Single points
        and one cluster for all are no layers. A tree of fewer rounds has fewer layers.

        Examples
        --------
        >>> import agglo
        >>> from sklearn.datasets import load_digits
        >>> tree = agglo.scc(agglo.neighbor_graph(load_digits().data))
        >>> [len(set(labels)) for labels in tree.layers(3)]
        [126, 31, 9]
        """
        return layers(self, n)

    def partition(self, joined: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Labels once the nodes chosen by ``joined`` have merged, in order of first appearance.

        ``joined`` has an entry a node; whatever lies below a joined node counts as joined.
        """
        chosen = np.ascontiguousarray(joined, np.bool_)
        if chosen.shape != self.parent.shape:
            raise ValueError(f"joined must have an entry for each of {self.n_nodes} nodes, got {chosen.shape}")
        labels: npt.NDArray[np.int64] = _core.tree_partition(self.parent, chosen, self.n_leaves)
        return labels.view(np.int64)  # of two types of 64 bits the one that prints plainly

    def nodes(self, labels: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """The node that each cluster of a cut is; ``labels`` are as :meth:`cut` and :meth:`partition` return them.

        Points labelled -1 are of no cluster.

        Raises
        ------
        ValueError
            If a cluster is no node of the tree.
        """
        return find_cluster_nodes(self, labels)

    def children(self, node: SupportsIndex) -> npt.NDArray[np.int32]:
        """The children of ``node``, ascending; none for a leaf."""
        inner = self._node(node) - self.n_leaves
        indptr, children, _, _ = self._below
        return children[indptr[inner] : indptr[inner + 1]].copy() if inner >= 0 else children[:0]

    def leaves(self, node: SupportsIndex) -> npt.NDArray[np.int32]:
        """The leaves under ``node``, ascending; a leaf has itself."""
        checked = self._node(node)
        first = self.start[checked]
        return np.sort(self.order[first : first + self.size[checked]])

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """The leaves in the order of the tree, in which those under any node stand side by side."""
        return self._below[3]

    @property
    def start(self) -> npt.NDArray[np.int32]:
        """Where the leaves of each node begin in :attr:`order`; there are ``size`` of them."""
        return self._below[2]

    @cached_property
    def _below(self) -> tuple[Column, Column, Column, Column]:
        indptr, children, start, order = _core.tree_below(self.parent, self.size, self.n_leaves)
        return indptr, children, start, order

    def _node(self, node: SupportsIndex) -> int:
        try:
            index = operator.index(node)
        except TypeError:
            raise TypeError(f"node={node!r} is not a node: pass an integer") from None
        if not 0 <= index < self.n_nodes:
            raise IndexError(
                f"node={index} is out of range: the tree has {self.n_nodes} nodes, 0 to {self.n_nodes - 1}, "
                f"of which the first {self.n_leaves} are leaves"
            )
        return index

    def to_scipy(self) -> npt.NDArray[np.float64]:
        """SciPy's linkage matrix of the tree, rows sorted by height; needs two leaves or more.

        A node of m children becomes m - 1 rows of the same height, joined in pairs and pairs of pairs,
        not one after another, so that they stay shallow for functions that recurse.
        """
        if self.n_leaves < 2:
            raise ValueError("a tree of 1 leaf has no linkage matrix: SciPy's format needs 2 leaves or more")
        rows: npt.NDArray[np.float64] = _core.tree_linkage(
            self.parent, self.height, self.size, self.round, self.n_leaves
        )
        return rows.reshape(-1, 4)

    def to_networkx(self) -> Any:
        """The tree as a networkx.DiGraph, edges from parent to child.

        Nodes have ``height``, ``size`` and ``round``; an edge has its ``length``, the difference in height.
        """
        from agglo.tree import export as exchange

        return exchange.to_networkx(self)

    def to_newick(self, names: Sequence[object] | None = None) -> str:
        """The tree in Newick's notation, with branch lengths; leaves are named by index or by ``names``."""
        from agglo.tree import export as exchange

        return exchange.to_newick(self, names)

    def to_frame(self) -> Any:
        """The nodes as a pandas.DataFrame: ``parent``, ``height``, ``size`` and ``round`` by ``node``."""
        from agglo.tree import export as exchange

        return exchange.to_frame(self)

    def explore(self, texts: Sequence[str] | None = None, columns: Mapping[str, Any] | None = None) -> Any:
        """An :class:`agglo.explore.Explorer` of the tree: shown in a notebook, a link elsewhere.

        It serves a page on this machine until it is closed or the program ends. ``texts`` stand for the points and
        name the clusters; ``columns`` has further things known of the points, to see and to colour by.

        Examples
        --------
        >>> import agglo
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
        >>> with tree.explore(["ant", "bee", "cow"]) as explorer:
        ...     explorer.url.startswith("http://127.0.0.1:")
        True
        """
        # The one import of a higher layer, by name at run time: the tree does not depend on its viewer.
        viewer = importlib.import_module("agglo.explore")
        return viewer.Explorer(viewer.open_tree(self, texts, columns)).start()

    def __repr__(self) -> str:
        return (
            f"Hierarchy({self.n_leaves} leaves, {self.n_nodes} nodes, {len(self.rounds)} rounds, "
            f"height {self.height[-1]:.4g})"
        )
