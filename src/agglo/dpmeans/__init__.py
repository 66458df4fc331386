"""Solvers for DP-means, the tree's rivals: squared distances to the cluster's mean, plus ``lam`` a cluster."""

from agglo.dpmeans.exemplars import LowRankALBCD
from agglo.dpmeans.passes import OCCDPMeans, SerialDPMeans
from agglo.dpmeans.seeding import DPMeansPlusPlus

__all__ = ["DPMeansPlusPlus", "LowRankALBCD", "OCCDPMeans", "SerialDPMeans"]
