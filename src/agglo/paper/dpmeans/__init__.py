"""Solvers for DP-means: minimize the sum of squared distances to cluster means, plus ``lam`` per cluster."""

from agglo.paper.dpmeans.exemplars import LowRankALBCD
from agglo.paper.dpmeans.passes import OCCDPMeans, SerialDPMeans
from agglo.paper.dpmeans.seeding import DPMeansPlusPlus
from agglo.paper.dpmeans.tree import TreeDPMeans

__all__ = ["DPMeansPlusPlus", "LowRankALBCD", "OCCDPMeans", "SerialDPMeans", "TreeDPMeans"]
