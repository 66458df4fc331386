"""The tree as others know it: networkx, Newick, pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy


def to_networkx(tree: Hierarchy) -> Any:
    """See :meth:`agglo.Hierarchy.to_networkx`."""
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
    lengths = _branches(tree).tolist()
    graph.add_edges_from(
        (parent, child, {"length": lengths[child]}) for child, parent in enumerate(tree.parent[:-1].tolist())
    )
    return graph


def to_newick(tree: Hierarchy, names: Sequence[object] | None = None) -> str:
    """See :meth:`agglo.Hierarchy.to_newick`."""
    if names is not None and len(names) != tree.n_leaves:
        raise ValueError(
            f"names has {len(names)} entries, but the tree has {tree.n_leaves} leaves: pass one a leaf"
        )
    leaves = [_quoted(str(name)) for name in (range(tree.n_leaves) if names is None else names)]
    lengths = [f":{length!r}" for length in _branches(tree).tolist()] + [""]
    text: list[str] = []
    stack = [tree.n_nodes - 1]  # a node to write, or ~node: its children are written, so close it
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
    """See :meth:`agglo.Hierarchy.to_frame`."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_frame needs pandas, which is not installed: pip install pandas") from None
    columns = {name: getattr(tree, name) for name in ("parent", "height", "size", "round")}
    return pd.DataFrame(columns, index=pd.RangeIndex(tree.n_nodes, name="node"), copy=True)


def _branches(tree: Hierarchy) -> npt.NDArray[np.float64]:
    """The height that lies between each node but the root and its parent."""
    return tree.height[tree.parent[:-1]] - tree.height[:-1]


def _quoted(name: str) -> str:
    """``name`` as Newick writes it: quoted if it holds anything that would be read as something else."""
    plain = name.isascii() and name.replace(".", "").replace("-", "").isalnum()
    return name if plain else "'" + name.replace("'", "''") + "'"
