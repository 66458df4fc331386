"""Scores of trees and labels; see :mod:`agglo.evaluation.metrics`."""

from agglo.evaluation.coherence import Coherence, coherence
from agglo.evaluation.metrics import (
    PairwiseScores,
    RoundScores,
    dendrogram_purity,
    dp_means_cost,
    pairwise_f1,
    pairwise_f1_by_round,
)

__all__ = [
    "Coherence",
    "PairwiseScores",
    "RoundScores",
    "coherence",
    "dendrogram_purity",
    "dp_means_cost",
    "pairwise_f1",
    "pairwise_f1_by_round",
]
