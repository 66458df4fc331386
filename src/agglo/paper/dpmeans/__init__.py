"""Solvers for DP-means, by a tree and by its rivals: squared distances to the means, plus ``lam`` a cluster."""

from agglo.paper.dpmeans.exemplars import LowRankALBCD
from agglo.paper.dpmeans.passes import OCCDPMeans, SerialDPMeans
from agglo.paper.dpmeans.seeding import DPMeansPlusPlus
from agglo.paper.dpmeans.tree import TreeDPMeans

__all__ = ["DPMeansPlusPlus", "LowRankALBCD", "OCCDPMeans", "SerialDPMeans", "TreeDPMeans"]
