"""agglo: hierarchical clustering of very many points."""

from agglo import metrics, reference
from agglo.graph import NeighborGraph
from agglo.neighbors import neighbor_graph
from agglo.rounds import affinity, hac, scc
from agglo.tree import Hierarchy

__all__ = [
    "Hierarchy",
    "NeighborGraph",
    "affinity",
    "hac",
    "metrics",
    "neighbor_graph",
    "reference",
    "scc",
]
__version__ = "0.1.0"
