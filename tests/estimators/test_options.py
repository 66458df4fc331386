"""Parameters are validated before the search, and most of them before any data is known."""

import numpy as np
import pytest
import scipy.sparse as sp

from agglo import HAC, SCC, Affinity, NeighborGraph
from agglo.estimators.scc import FitOptions


def options(**parameters):
    return FitOptions.from_params(SCC(**parameters).get_params(deep=False))


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"metric": "manhattan"}, ValueError, "metric='manhattan' is unknown: pass one of 'cosine'"),
        ({"method": 3}, ValueError, "method=3 is unknown: pass one of 'auto'"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors=0 must be at least 1"),
        ({"n_neighbors": "some"}, ValueError, "n_neighbors='some' is unknown"),
        ({"recall": 2}, ValueError, "recall=2"),
        ({"missing": "median"}, ValueError, "missing='median'"),
        ({"linkage": "median"}, ValueError, "linkage='median' is unknown"),
        ({"connect": "single"}, ValueError, "connect='single' is unknown: pass one of None, 'auto'"),
        ({"top": "single"}, ValueError, "connect='single' is unknown"),
        ({"advance": "never"}, ValueError, "advance='never' is unknown"),
        ({"kind": "close"}, ValueError, "kind='close' is unknown: pass one of None, 'similarity', 'distance'"),
        ({"kind": "distance"}, ValueError, "kind='distance' is wrong, because metric='cosine' gives"),
        ({"thresholds": None}, ValueError, "thresholds must be a name or a one-dimensional array"),
        ({"thresholds": [1, 2]}, ValueError, "thresholds must be strictly decreasing"),
        ({"thresholds": [2, 1], "linkage": "ward"}, ValueError, "thresholds must be strictly increasing"),
        ({"random_state": -1}, ValueError, "random_state=-1"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0 is not a number of threads"),
    ],
)
def test_wrong_parameters_are_errors_without_data(parameters, error, match):
    with pytest.raises(error, match=match):
        options(**parameters)


@pytest.mark.parametrize("clusterer", [SCC, Affinity, HAC])
def test_defaults_are_valid_and_select_the_persistent_resolution(clusterer):
    made = FitOptions.from_params(clusterer().get_params(deep=False))
    assert made.rule == {"n_clusters": None, "round": None, "height": None, "resolution": "persistent"}
    assert made.seed == 0


@pytest.mark.parametrize("clusterer", [SCC, Affinity, HAC])
def test_linkages_that_do_not_fit_the_data_are_found_before_the_search(clusterer, monkeypatch):
    monkeypatch.setattr("agglo.estimators.scc.neighbor_graph", lambda *_, **__: pytest.fail("searched"))
    X = sp.csr_array(np.random.default_rng(0).integers(0, 2, (20, 5)).astype(float))
    for parameters in ({"linkage": "ward"}, {"connect": "ward"}):
        with pytest.raises(TypeError, match=r"sparse .* dense: pass X\.toarray"):
            clusterer(**parameters).fit(X)
    graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.9, 0.5], kind="similarity")
    for parameters in ({"linkage": "ward"}, {"connect": "ward"}):
        with pytest.raises(ValueError, match="compares the points themselves, and a graph has none"):
            clusterer(metric="precomputed", **parameters).fit(graph)


def test_thresholds_follow_the_kind_of_a_precomputed_graph():
    graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.9, 0.5], kind="distance")
    with pytest.raises(ValueError, match="thresholds must be strictly increasing"):
        SCC(metric="precomputed", thresholds=[0.9, 0.5]).fit(graph)
    fitted = SCC(metric="precomputed", thresholds=[0.5, 0.9], round=1).fit(graph)
    assert fitted.labels_.tolist() == [1, 0, 0]


def test_a_random_state_gives_one_seed_per_fit():
    draws = np.random.RandomState(3).randint(2**31 - 1, size=2)
    X = np.random.default_rng(0).normal(size=(30, 4))
    model = SCC(random_state=np.random.RandomState(3))
    assert [model.fit(X)._seed for _ in draws] == draws.tolist()
