"""Find and name nested topics of texts in one call."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from agglo._html import render_facts
from agglo._validation import check_integer
from agglo.estimators.scc import SCC
from agglo.text.names import Names, name_nodes
from agglo.text.reader import merge_duplicates
from agglo.text.tables import standalone_names
from agglo.text.vectors import lexical_features
from agglo.tree.hierarchy import Hierarchy

_N_LARGEST = 10  # number of topics of a level in the summary for notebooks


@dataclass(frozen=True, eq=False, repr=False)
class Topics:
    """Nested topics of texts.

    Parameters
    ----------
    table : pyarrow.Table
        One row per text, in the order of the texts. The column ``text`` has the text. The columns ``level_1``,
        ``level_2``, … have the name of the topic of the text at each level, from coarse to fine. Topics of a
        level have different names. Empty texts have no topic, so their names are null.
    labels : ndarray of shape (n_levels, n_texts)
        The index of the topic of each text at each level, from 0. For empty texts, it is -1.
    tree : Hierarchy
        The tree of the different texts.
    names : Names
        The names of all inner nodes of the tree.
    texts : list of str
        The different texts, which are the leaves of the tree.

    Examples
    --------
    >>> import agglo
    >>> texts = ["red apple", "green apple", "fast car", "slow car", "new car", "ripe apple"]
    >>> topics = agglo.topics(texts, levels=[2])
    >>> topics.to_pandas().columns[0]
    'text'
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     topics.to_csv(f"{folder}/topics.csv")
    >>> explorer = topics.explore()
    >>> explorer.close()
    """

    table: Any
    labels: npt.NDArray[np.int64]
    tree: Hierarchy
    names: Names
    texts: list[str]

    def __len__(self) -> int:
        """Return the number of texts."""
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        """Return a summary: the number of texts, and the number of topics at each level."""
        return f"Topics({len(self)} texts, {' > '.join(map(str, self._counts()))} topics)"

    def _repr_html_(self) -> str:
        """Return a summary for notebooks: the largest topics of each level."""
        facts = {"texts": f"{len(self):,}"}
        for level, count in enumerate(self._counts(), start=1):
            sizes = pc.value_counts(self.table[f"level_{level}"].drop_null()).to_pylist()
            sizes.sort(key=lambda entry: -entry["counts"])
            largest = [f"{entry['values']} ({entry['counts']:,})" for entry in sizes[:_N_LARGEST]]
            facts[f"level {level}"] = f"{count:,} topics: {'; '.join(largest)}{'; …' * (len(sizes) > _N_LARGEST)}"
        return render_facts("Topics", facts)

    def _counts(self) -> list[int]:
        """Return the number of topics at each level."""
        return [int(labels.max()) + 1 for labels in self.labels]

    def to_pandas(self) -> Any:
        """Return the table as a pandas.DataFrame."""
        return self.table.to_pandas()

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a CSV file."""
        with open(path, "wb") as file:
            pa.csv.write_csv(self.table, file)

    def explore(self, columns: Mapping[str, Any] | None = None) -> Any:
        """Open the explorer of the tree with its texts and names; see :meth:`agglo.Hierarchy.explore`."""
        # Import the explorer by name at run time, so that texts do not depend on it.
        viewer = importlib.import_module("agglo.explore")
        return viewer.Explorer(viewer.open_tree(self.tree, self.texts, columns, self.names)).start()


def topics(
    texts: Iterable[str],
    X: npt.ArrayLike | None = None,
    levels: SupportsIndex | Iterable[SupportsIndex] = (10, 60, 300),
    *,
    language: str = "auto",
    stop_words: Sequence[str] = (),
) -> Topics:
    """Find nested topics of texts, and name them.

    Parameters
    ----------
    texts : iterable of str
        The texts. Duplicates and empty texts are allowed.
    X : array-like of shape (n_texts, n_features), optional
        Vectors of the texts, such as sentence embeddings. By default, words and character n-grams are compared.
    levels : int or sequence of int
        The requested numbers of topics, from coarse to fine; see :meth:`agglo.Hierarchy.taxonomy`. A number that
        exceeds the number of different texts is ignored.
    language, stop_words
        As for :func:`agglo.contents.terms`.

    Examples
    --------
    >>> import agglo
    >>> texts = ["red frog", "red frogs", "tree frog", "", "blue sky", "blue skies", "clear blue sky", "red frog"]
    >>> found = agglo.topics(texts, levels=[2])
    >>> found.table["level_1"].to_pylist()
    ['frog, red', 'frog, red', 'frog, red', None, 'blue sky', 'blue sky', 'blue sky', 'frog, red']
    """
    if isinstance(texts, str):
        raise TypeError("texts is a single text: pass a list of texts")
    if hasattr(texts, "columns") or getattr(texts, "ndim", 1) == 2:
        raise TypeError("texts is a data frame or another table: pass one column")
    requested = [
        check_integer("levels", k, "a number of topics")
        for k in (levels if isinstance(levels, Iterable) else [levels])
    ]
    given = list(texts)
    wrong = next((i for i, text in enumerate(given) if not isinstance(text, str)), None)
    if wrong is not None:
        raise TypeError(f"texts[{wrong}] is {given[wrong]!r}, not a text: pass strings")
    distinct, _, first, inverse = merge_duplicates(given)
    if len(distinct) < 2:
        raise ValueError(f"texts has {len(distinct)} different texts: pass at least two")
    vectors: Any = None
    if X is not None:
        vectors = np.asarray(X)
        if len(vectors) != len(given):
            raise ValueError(f"X has {len(vectors)} rows, but there are {len(given)} texts: pass one row per text")
        vectors = vectors[first]
    model = SCC().fit(lexical_features(distinct) if vectors is None else vectors)
    wanted = [k for k in requested if k <= len(distinct)]
    if not wanted:
        raise ValueError(f"levels={requested}, but there are {len(distinct)} different texts: pass fewer topics")
    cuts = list(model.tree_.taxonomy(wanted).labels)
    tree = model.tree_
    names = name_nodes(tree, distinct, vectors, levels=cuts, language=language, stop_words=stop_words)
    columns: dict[str, Any] = {"text": pa.array(given, pa.large_string())}
    is_empty = inverse < 0
    for level, labels in enumerate(cuts, start=1):
        named = pa.array(standalone_names(tree.nodes(labels), tree, names, distinct))
        columns[f"level_{level}"] = named.take(pa.array(labels[inverse], mask=is_empty))
    labels = np.where(is_empty, -1, np.stack(cuts)[:, inverse])
    return Topics(pa.table(columns), labels, tree, names, distinct)
