"""The hierarchy explorer: a local web page that loads the parts of a tree on demand."""

from agglo.explore.run import ExplorableRun, open_run, open_tree
from agglo.explore.server import Explorer

__all__ = ["ExplorableRun", "Explorer", "open_run", "open_tree"]
