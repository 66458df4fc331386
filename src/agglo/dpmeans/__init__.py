"""Solvers for DP-means, by a tree and by its rivals: squared distances to the means, plus ``lam`` a cluster."""

from agglo.dpmeans.exemplars import LowRankALBCD
from agglo.dpmeans.passes import OCCDPMeans, SerialDPMeans
from agglo.dpmeans.seeding import DPMeansPlusPlus
from agglo.dpmeans.tree import TreeDPMeans

__all__ = ["DPMeansPlusPlus", "LowRankALBCD", "OCCDPMeans", "SerialDPMeans", "TreeDPMeans"]
