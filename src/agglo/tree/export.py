"""Convert a tree to networkx, Newick and pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy


def to_networkx(tree: Hierarchy) -> Any:
    """Convert the tree to a networkx.DiGraph; see :meth:`agglo.Hierarchy.to_networkx`."""
    try:
        import networkx as nx
    except ImportError:
        raise ImportError("to_networkx needs networkx, which is not installed: pip install networkx") from None
    graph = nx.DiGraph()
    columns = (tree.height.tolist(), tree.size.tolist(), tree.round.tolist())
    graph.add_nodes_from(
        (node, {"height": height, "size": size, "round": round})
        for node, (height, size, round) in enumerate(zip(*columns, strict=True))
    )
    lengths = _branch_lengths(tree).tolist()
    graph.add_edges_from(
        (parent, child, {"length": lengths[child]}) for child, parent in enumerate(tree.parent[:-1].tolist())
    )
    return graph


def to_newick(tree: Hierarchy, names: Sequence[object] | None = None) -> str:
    """Convert the tree to a Newick string; see :meth:`agglo.Hierarchy.to_newick`."""
    if names is not None and len(names) != tree.n_leaves:
        raise ValueError(
            f"names has {len(names)} entries, but the tree has {tree.n_leaves} leaves: pass one name per leaf"
        )
    leaves = [_quote(str(name)) for name in (range(tree.n_leaves) if names is None else names)]
    lengths = [f":{length!r}" for length in _branch_lengths(tree).tolist()] + [""]
    text: list[str] = []
    stack = [tree.n_nodes - 1]  # node: write the node; ~node: write the closing bracket of the node
    first = True
    while stack:
        node = stack.pop()
        if node < 0:
            text.append(")" + lengths[~node])
            continue
        if not first:
            text.append(",")
        first = node >= len(leaves)
        if first:
            text.append("(")
            stack.append(~node)
            stack.extend(tree.children(node)[::-1].tolist())
        else:
            text.append(leaves[node] + lengths[node])
    return "".join(text) + ";"


def to_frame(tree: Hierarchy) -> Any:
    """Convert the nodes to a pandas.DataFrame; see :meth:`agglo.Hierarchy.to_frame`."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_frame needs pandas, which is not installed: pip install pandas") from None
    columns = {name: getattr(tree, name) for name in ("parent", "height", "size", "round")}
    return pd.DataFrame(columns, index=pd.RangeIndex(tree.n_nodes, name="node"), copy=True)


def _branch_lengths(tree: Hierarchy) -> npt.NDArray[np.float64]:
    """Return, for each node except the root, the height of its parent minus its own height."""
    return tree.height[tree.parent[:-1]] - tree.height[:-1]


def _quote(name: str) -> str:
    """Quote ``name`` for Newick if it contains anything but letters, digits, dots and hyphens."""
    plain = name.isascii() and name.replace(".", "").replace("-", "").isalnum()
    return name if plain else "'" + name.replace("'", "''") + "'"
