"""Load a saved model as a clusterer."""

from __future__ import annotations

import os

from agglo.estimators.base import Clusterer
from agglo.estimators.model_folder import ModelState, load_model
from agglo.estimators.scc import HAC, SCC, Affinity

_CLUSTERERS: dict[str, type[Clusterer]] = {"SCC": SCC, "Affinity": Affinity, "HAC": HAC}


def load(folder: str | os.PathLike[str]) -> Clusterer:
    """Load the model that :meth:`agglo.SCC.save` wrote to ``folder``.

    Loading executes no code from the folder. It raises if files are damaged or come from different saves. It also
    raises if the model refers to a file of points that has changed.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
    >>> files = agglo.SCC(metric="euclidean").fit(X).save("model")
    >>> model = agglo.load("model")
    >>> model
    SCC(metric='euclidean')
    >>> model.predict([[0.4], [41.0]])
    array([0, 1])
    """
    return load_model(folder, _build_clusterer)


def _build_clusterer(state: ModelState) -> Clusterer:
    model = _CLUSTERERS[state.class_name](**state.parameters)
    model._set_state(state)
    return model
