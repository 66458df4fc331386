"""Descriptions of clusters: centers, examples, spread, terms; see :mod:`agglo.evaluation.clusters`."""

from agglo.evaluation.clusters import (
    Absorbed,
    Spread,
    absorbed,
    centers,
    describe,
    examples,
    medoids,
    spread,
)
from agglo.evaluation.terms import terms

__all__ = ["Absorbed", "Spread", "absorbed", "centers", "describe", "examples", "medoids", "spread", "terms"]
