"""Check the names of clusters of labelled texts.

    python benchmarks/names.py folder-of-npz-files [--sets clinc150 newsgroups20 …] [--clusters 200] [--print 10]

Each file has ``texts`` (UTF-8 bytes, one text per line), their vectors ``X``, classes ``y`` and
``label_names``. The clusters are a random sample of the default cut of SCC, as many from each file, of at least
10 texts. A name is right if a term, or a word with the same beginning, is in the name of the most frequent
class of the cluster, or among the ten most frequent content words of that class.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import agglo
from agglo.evaluation.stop_words import STOP_WORDS
from agglo.text.names import MAX_NAME, name_nodes

STOPS = STOP_WORDS["english"]
SETS = ("clinc150", "newsgroups20", "reddit_titles_60k", "stackoverflow20k")
MIN_SIZE = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--print", type=int, default=10, dest="n_printed")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    faults: Counter[str] = Counter()
    rows, total = [], 0
    for name in options.sets:
        with np.load(options.folder / f"{name}.npz", allow_pickle=True) as file:
            texts = bytes(file["texts"]).decode().split("\n")
            X, y, labels = file["X"].astype(np.float32), file["y"], file["label_names"]
        model = agglo.SCC().fit(X)
        tree = model.tree_
        start = time.process_time()
        names = name_nodes(tree, texts, X, levels=[model.labels_, *tree.layers()])  # as "agglo text" does
        seconds = time.process_time() - start
        nodes = tree.nodes(model.labels_)
        nodes = nodes[tree.size[nodes] >= MIN_SIZE]
        chosen = rng.choice(nodes, min(len(nodes), options.clusters // len(options.sets)), replace=False)
        right = 0
        content: dict[int, set[str]] = {}
        for node in chosen.tolist():
            label = Counter(y[tree.leaves(node)].tolist()).most_common(1)[0][0]
            if label not in content:
                content[label] = describe_class(str(labels[label]), [texts[i] for i in np.flatnonzero(y == label)])
            own = names.name[node - tree.n_leaves]
            parent = names.name[tree.parent[node] - tree.n_leaves]
            faults.update(find_faults(own, parent))
            right += is_right(own, content[label])
            rows.append((name, str(labels[label]), own, names.typical_text[node - tree.n_leaves]))
        total += len(chosen)
        print(f"{name}: {right / len(chosen):.3f} of {len(chosen)} names are right; CPU seconds {seconds:.1f}")
    for fault in ("holds a stop word", "repeats a word of the parent", "two inflections", "too long"):
        print(f"{fault}: {faults[fault]} of {total}")
    for row in (rows[i] for i in rng.permutation(len(rows))[: options.n_printed]):
        print(" | ".join(row))


def split_words(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower()) if len(word) > 1]


def stem(word: str) -> str:
    """Cut off common English endings, without regard to meaning."""
    for ending in ("'s", "ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            word = word[: -len(ending)]
            return word[:-1] if word[-1] == word[-2] else word
    return word


def describe_class(label: str, texts: list[str]) -> set[str]:
    """Return the stems of a class: the words of its name, and its ten most frequent content words."""
    counts = Counter(word for text in texts for word in set(split_words(text)) - STOPS)
    words = [word for word, _ in counts.most_common(10) if not word.isdigit()]
    return {stem(word) for word in [*words, *split_words(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label))]}


def is_right(name: str, content: set[str]) -> bool:
    return any(stem(word) in content for word in split_words(name) if word not in STOPS)


def find_faults(name: str, parent: str) -> dict[str, Any]:
    words = split_words(name)
    stems = [stem(word) for word in words]
    return {
        "holds a stop word": int(bool(STOPS & set(words))),
        "repeats a word of the parent": int(bool(set(stems) & set(map(stem, split_words(parent))))),
        "two inflections": int(len(set(stems)) < len(stems)),
        "too long": int(len(name) > MAX_NAME),
    }


if __name__ == "__main__":
    main()
