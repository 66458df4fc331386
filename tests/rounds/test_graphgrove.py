"""Partitions of the authors' own implementation of SCC, GraphGrove 0.0.11, which needs Python 3.8 or older.

``graphgrove.npz`` has the cluster of each point after each of 200 thresholds, numbered by first appearance.
GraphGrove got the edges of the same graph, by ``SCC.init(thresholds, 1, 0).fit_on_large_batch``.
"""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

import agglo

THRESHOLDS = np.geomspace(0.9999, 0.001, 200).astype(np.float32)


@pytest.mark.parametrize(("name", "load"), [("iris", load_iris), ("digits", load_digits)])
def test_every_level_is_that_of_the_authors(name, load):
    graph = agglo.neighbor_graph(load().data, 10, "cosine", "exact", missing=0)
    tree = agglo.scc(graph, thresholds=THRESHOLDS, connect=None)
    with np.load(Path(__file__).with_name("graphgrove.npz")) as file:
        theirs = file[name]
    assert len(theirs) == len(THRESHOLDS)
    for threshold, labels in zip(THRESHOLDS, theirs, strict=True):
        n_rounds = int((tree.rounds.threshold >= threshold).sum())
        np.testing.assert_array_equal(tree.cut(round=n_rounds), labels, err_msg=f"threshold {threshold}")
