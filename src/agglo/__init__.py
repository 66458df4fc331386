"""agglo: hierarchical clustering of very many points."""

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = [
    "HAC",
    "SCC",
    "Affinity",
    "Hierarchy",
    "Linkage",
    "NeighborGraph",
    "affinity",
    "attach",
    "baselines",
    "contents",
    "datasets",
    "dp_means_path",
    "dpmeans",
    "hac",
    "handover",
    "load",
    "metrics",
    "neighbor_graph",
    "reference",
    "scc",
    "spark",
]

if TYPE_CHECKING:
    from agglo import baselines, contents, datasets, dpmeans, handover, metrics, reference, spark
    from agglo.estimator import HAC, SCC, Affinity
    from agglo.graph import NeighborGraph
    from agglo.linkage import Linkage
    from agglo.modelfile import load
    from agglo.neighbors import neighbor_graph
    from agglo.path import dp_means_path
    from agglo.predict import attach
    from agglo.rounds import affinity, hac, scc
    from agglo.tree import Hierarchy
else:
    # Each name is imported when it is first used, so that `agglo --help` need not wait for SciPy and scikit-learn.
    _HOME = {
        "Affinity": "estimator",
        "HAC": "estimator",
        "Hierarchy": "tree",
        "Linkage": "linkage",
        "NeighborGraph": "graph",
        "SCC": "estimator",
        "affinity": "rounds",
        "attach": "predict",
        "dp_means_path": "path",
        "hac": "rounds",
        "load": "modelfile",
        "neighbor_graph": "neighbors",
        "scc": "rounds",
    }

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'agglo' has no attribute {name!r}")
        from importlib import import_module

        if name not in _HOME:
            return import_module(f"agglo.{name}")
        found = getattr(import_module(f"agglo.{_HOME[name]}"), name)
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *__all__})
