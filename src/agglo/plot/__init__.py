"""Figures of trees and clusters, drawn with matplotlib: ``pip install 'agglo[plot]'``."""

try:
    import matplotlib  # noqa: F401
except ImportError:
    raise ImportError("matplotlib is not installed: pip install 'agglo[plot]'") from None

from agglo.plot.dendrogram import dendrogram
from agglo.plot.pictures import (
    draw,
    icicle,
    overview,
    prices,
    rounds,
    save,
    scatter,
)
from agglo.plot.treemap import treemap

__all__ = ["dendrogram", "draw", "icicle", "overview", "prices", "rounds", "save", "scatter", "treemap"]
