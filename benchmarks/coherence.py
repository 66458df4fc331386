"""Compare SCC with Affinity by the coherence of their clusters of web queries, instead of human raters.

    python benchmarks/coherence.py queries.npz [--neighbors 25] [--pairs 1200]

The file contains ``texts`` (UTF-8 bytes, one query per line) and their sentence embeddings ``X``. Both algorithms
cluster the queries by lexical features, on the same graph. The embeddings, which neither uses, rate pairs of
points of random clusters, and of random points. Each round of Affinity is compared with the round of SCC with the
closest number of clusters. If the file contains classes ``y``, the embeddings are clustered and the classes rate.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import agglo
from agglo.text.vectors import lexical_features

MIN_CLUSTERS = 100  # of a round that is compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--neighbors", type=int, default=25)
    parser.add_argument("--pairs", type=int, default=1200)
    options = parser.parse_args()
    with np.load(options.queries) as file:
        texts = bytes(file["texts"]).decode().split("\n")
        X, y = file["X"], file.get("y")
    start = time.process_time()
    features = lexical_features(texts) if y is None else X.astype(np.float32)
    graph = agglo.neighbor_graph(features, options.neighbors)
    searched = time.process_time()
    scc, affinity = agglo.scc(graph), agglo.affinity(graph)
    print(
        f"{len(texts):,} texts; CPU seconds: features and neighbours {searched - start:.0f}, "
        f"both trees {time.process_time() - searched:.1f}\n"
    )
    print("| pairs of random | algorithm | clusters | of one text | coherent | neutral | incoherent |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rating: dict[str, Any] = {"X": X} if y is None else {"y": y}
    for sample in ("clusters", "points"):
        for round, number in enumerate(affinity.rounds.after.tolist(), start=1):
            if number < MIN_CLUSTERS:
                break
            for name, labels in (("SCC", scc.cut(n_clusters=number)), ("Affinity", affinity.labels(round))):
                found = agglo.metrics.coherence(labels, **rating, sample=sample, n_pairs=options.pairs)
                shares = " | ".join(f"{100 * share:.1f} %" for share in found[:3])
                sizes = np.bincount(labels)
                print(f"| {sample} | {name} | {len(sizes):,} | {np.count_nonzero(sizes == 1):,} | {shares} |")


if __name__ == "__main__":
    main()
