"""agglo: hierarchical clustering of very many points."""

from agglo.graph import NeighborGraph

__all__ = ["NeighborGraph"]
__version__ = "0.1.0"
