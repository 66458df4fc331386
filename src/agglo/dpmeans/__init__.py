"""Solvers for DP-means, the tree's rivals: squared distances to the cluster's mean, plus ``lam`` a cluster."""

from agglo.dpmeans.passes import OCCDPMeans, SerialDPMeans
from agglo.dpmeans.seeding import DPMeansPlusPlus

__all__ = ["DPMeansPlusPlus", "OCCDPMeans", "SerialDPMeans"]
