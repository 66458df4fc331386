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
    "contents",
    "dp_means_path",
    "hac",
    "load",
    "metrics",
    "modularity_path",
    "neighbor_graph",
    "reference",
    "scc",
    "topic_models",
    "topics",
]

if TYPE_CHECKING:
    from agglo import contents, metrics, topic_models
    from agglo.estimators.scc import HAC, SCC, Affinity, load
    from agglo.neighbors.graph import NeighborGraph
    from agglo.neighbors.search import neighbor_graph
    from agglo.rounds import reference
    from agglo.rounds.algorithms import affinity, hac, scc
    from agglo.rounds.attach import attach
    from agglo.rounds.linkage import Linkage
    from agglo.text.topics import topics
    from agglo.tree.default_level import modularity_path
    from agglo.tree.dp_means_path import dp_means_path
    from agglo.tree.hierarchy import Hierarchy
else:
    # Names are imported at first use, because SciPy and scikit-learn would slow down `agglo --help`.
    _CLASSES_AND_FUNCTIONS = {
        "Affinity": "estimators.scc",
        "HAC": "estimators.scc",
        "Hierarchy": "tree.hierarchy",
        "Linkage": "rounds.linkage",
        "NeighborGraph": "neighbors.graph",
        "SCC": "estimators.scc",
        "affinity": "rounds.algorithms",
        "attach": "rounds.attach",
        "dp_means_path": "tree.dp_means_path",
        "hac": "rounds.algorithms",
        "load": "estimators.scc",
        "modularity_path": "tree.default_level",
        "neighbor_graph": "neighbors.search",
        "scc": "rounds.algorithms",
        "topics": "text.topics",
    }
    _MODULES = {
        "contents": "contents",
        "metrics": "metrics",
        "paper": "paper",
        "plot": "plot",
        "reference": "rounds.reference",
        "spark": "spark",
        "topic_models": "topic_models",
    }
    _MOVED = {  # old name of a documented module: new name
        "baselines": "paper.baselines",
        "datasets": "paper.datasets",
        "dpmeans": "paper.dpmeans",
        "handover": "topic_models",
    }

    def __getattr__(name):
        from importlib import import_module

        if name in _CLASSES_AND_FUNCTIONS:
            found = getattr(import_module(f"agglo.{_CLASSES_AND_FUNCTIONS[name]}"), name)
            globals()[name] = found
            return found
        if name in _MODULES:
            try:
                return import_module(f"agglo.{_MODULES[name]}")
            except ImportError as error:  # an optional library is missing: hasattr(agglo, name) is False
                raise AttributeError(f"agglo.{name} cannot be imported: {error}") from error
        if name in _MOVED:
            import warnings

            warnings.warn(f"agglo.{name} is agglo.{_MOVED[name]} now: use that", FutureWarning, stacklevel=2)
            return import_module(f"agglo.{_MOVED[name]}")
        raise AttributeError(f"module 'agglo' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
