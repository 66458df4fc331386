"""The hierarchy explorer: a page on this machine that loads a tree as it is looked into."""

from agglo.explore.run import Opened, open_run, open_tree
from agglo.explore.server import Explorer

__all__ = ["Explorer", "Opened", "open_run", "open_tree"]
