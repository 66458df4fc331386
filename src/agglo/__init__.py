"""agglo: hierarchical clustering of very many points."""

from agglo import metrics
from agglo.graph import NeighborGraph
from agglo.tree import Hierarchy

__all__ = ["Hierarchy", "NeighborGraph", "metrics"]
__version__ = "0.1.0"
