"""Small runs to explore, for tests."""

import json

import pyarrow as pa

import agglo
from agglo.explore.items import write_items
from agglo.explore.run import open_run
from agglo.io import run_folder as runfolder

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
    write_items(table, folder / runfolder.ITEMS)
    inner = range(tree.n_leaves, tree.n_nodes)
    names = pa.table(
        {
            "name": [f"cluster of {texts[tree.leaves(node)[0]]}" for node in inner],
            "terms": [texts[tree.leaves(node)[0]].split()[:3] for node in inner],
            "examples": pa.array([tree.leaves(node)[:5].tolist() for node in inner], pa.list_(pa.int32())),
        }
    )
    write_items(names, folder / runfolder.NAMES)
    return tree


def opened(folder):
    write_run(folder)
    return open_run(folder)
