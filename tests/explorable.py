"""Small runs to explore, for tests."""

import dataclasses
import json
from types import UnionType
from typing import get_args, get_origin, get_type_hints

import pyarrow as pa

import agglo
from agglo.estimators import run_folder as runfolder
from agglo.explore.run import open_run
from agglo.io.files import write_arrow

ANIMALS = ["reed frog", "tree frog", "black rhino", "white rhino", "snow leopard"]
TEXTS = [f"{what} {animal}" for animal in ANIMALS for what in ("endangered", "what eats a", "pictures of the")]
TEXTS += ["<script>alert('frog')</script>", "صور ضفدع القصب", "🐸 frog emoji 🐸", "=1+1", 'quote " and, comma']


def write_run(folder, texts=TEXTS):
    """A run of texts in ``folder``, named after a made-up rule; returns its tree."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    X = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)).fit_transform(texts).toarray()
    tree = agglo.scc(agglo.neighbor_graph(X, min(6, len(texts) - 1)))
    folder.mkdir(exist_ok=True)
    tree.save(folder / runfolder.TREE)
    (folder / runfolder.RECORD).write_text(json.dumps({"agglo": "0.1.0", "labels": {"round": 2}}))
    table = pa.table(
        {
            "text": pa.array(texts, pa.large_string()),
            "count": pa.array(range(1, len(texts) + 1), pa.int64()),
            "source": pa.array([("web", "book", None)[i % 3] for i in range(len(texts))]),
            "score": pa.array([float("nan") if i == 4 else i / 2 for i in range(len(texts))]),
        }
    )
    write_arrow(table, folder / runfolder.ITEMS)
    inner = range(tree.n_leaves, tree.n_nodes)
    names = pa.table(
        {
            "name": [f"cluster of {texts[tree.leaves(node)[0]]}" for node in inner],
            "terms": [texts[tree.leaves(node)[0]].split()[:3] for node in inner],
            "examples": pa.array([tree.leaves(node)[:5].tolist() for node in inner], pa.list_(pa.int32())),
        }
    )
    write_arrow(names, folder / runfolder.NAMES)
    return tree


def opened(folder):
    write_run(folder)
    return open_run(folder)


def assert_has_type(value, hint):
    """Assert that parsed JSON has the type of an annotation: dataclasses, lists, optional and plain types."""
    inside = get_args(hint)
    if get_origin(hint) is list:
        assert isinstance(value, list)
        for entry in value:
            assert_has_type(entry, inside[0])
    elif get_origin(hint) is UnionType:
        if value is not None:
            assert_has_type(value, inside[0])
    elif dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        assert value.keys() == hints.keys()
        for name, field in hints.items():
            assert_has_type(value[name], field)
    else:
        assert type(value) in ((int, float) if hint is float else (hint,))
