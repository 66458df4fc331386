"""agglo: hierarchical clustering of very many points."""

from agglo.graph import NeighborGraph
from agglo.tree import Hierarchy

__all__ = ["Hierarchy", "NeighborGraph"]
__version__ = "0.1.0"
