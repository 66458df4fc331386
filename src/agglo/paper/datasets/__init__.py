"""Datasets for benchmarks and tests: seeded generators, and loaders for the files of the paper's datasets.

Loaders do not download files. The docstring of each loader names the public file that it reads. Loaders return the
unscaled values of the file. :meth:`Dataset.prepare` scales them.

Examples
--------
>>> from agglo.paper import datasets
>>> datasets.dp_mixture(1000, random_state=0)
Dataset(dp-mixture: 1000 points, 10 columns, 30 classes, euclidean)
>>> datasets.load_wine().prepare("standard")
Dataset(wine: 178 points, 13 columns, 3 classes, cosine)
"""

from agglo.paper.datasets.dataset import Dataset
from agglo.paper.datasets.readers import (
    load_aloi,
    load_covtype,
    load_features,
    load_iris,
    load_npz,
    load_tsv,
    load_wine,
)
from agglo.paper.datasets.synthetic import delta_separated, dp_mixture, model_separated

__all__ = [
    "Dataset",
    "delta_separated",
    "dp_mixture",
    "load_aloi",
    "load_covtype",
    "load_features",
    "load_iris",
    "load_npz",
    "load_tsv",
    "load_wine",
    "model_separated",
]
