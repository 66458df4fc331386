"""From texts to a tree with names: the stages in order for the command line."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.cli import pipeline
from agglo.estimators import run_folder as runfolder
from agglo.io.arrow_file import write_arrow
from agglo.io.points import read_points
from agglo.io.tables import ReadError
from agglo.progress import Progress
from agglo.text.features import lexical_features
from agglo.text.names import Names, name_nodes
from agglo.text.reader import Texts

_BLOCK = 1024  # texts that a model is given at a time


@dataclass(frozen=True, eq=False)
class TextRun:
    """What came out."""

    run: pipeline.Run
    texts: Texts
    names: Names

    def files(self) -> dict[str, Callable[[Path], None]]:
        """What a run of texts has in its folder beside the tree: a function each that writes it."""
        return {
            runfolder.ITEMS: partial(write_arrow, self.texts.table()),
            runfolder.NAMES: partial(write_arrow, self.names.to_table()),
        }


def embeddings_of(path: Path, texts: Texts) -> npt.NDArray[Any]:
    """Vectors out of a file with a row for each row of the file of texts, of those rows that texts are from."""
    try:
        X = read_points(path).X
    except ReadError as error:
        raise ReadError(error.cause, "pass the vectors alone, as one array in a .npy file") from error
    if X.ndim != 2 or len(X) != texts.n_rows:
        raise ValueError(
            f"{path} has an array of shape {X.shape}, but there are {texts.n_rows} rows of texts: pass one row of "
            "numbers for each, those without a text and those that repeat one among them"
        )
    chosen = np.asarray(X[texts.row])
    if chosen.dtype.kind not in "fiu":
        raise ValueError(f"{path} holds {chosen.dtype}, and embeddings are numbers: pass an array of float32, say")
    wrong = ~np.isfinite(chosen).all(axis=1)
    wrong |= ~chosen.any(axis=1)
    if wrong.any():
        at = int(texts.row[wrong.argmax()])
        raise ValueError(
            f"{path} has no embedding in row {at} ({np.count_nonzero(wrong)} such rows: NaN, infinite or all 0): "
            "embed these texts too, or drop their rows in both files"
        )
    return chosen.astype(np.float32)


def model_vectors(path: Path, texts: Sequence[str], progress: Progress | None = None) -> npt.NDArray[np.float32]:
    """Vectors by a sentence-transformers model in a folder on this machine; nothing is downloaded."""
    if not path.is_dir():
        raise ValueError(f"--model {path} is no folder: pass that of a model on this machine; none is downloaded")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            f"--model needs sentence-transformers, which cannot be imported ({error}): "
            "pip install sentence-transformers, or leave out --model"
        ) from None
    model = SentenceTransformer(str(path), local_files_only=True)
    blocks = []
    for first in range(0, len(texts), _BLOCK):
        if progress is not None:
            progress("model", first, len(texts))
        blocks.append(np.asarray(model.encode(list(texts[first : first + _BLOCK])), np.float32))
    return np.concatenate(blocks)


def vectors(
    texts: Texts, embeddings: Path | None, model: Path | None, progress: Progress | None = None
) -> tuple[Any, dict[str, Any]]:
    """What texts are compared by, and a record of it: embeddings, those of a model, or what they are made of."""
    if embeddings is not None:
        return embeddings_of(embeddings, texts), {"features_from": str(embeddings)}
    if model is not None:
        return model_vectors(model, texts.texts, progress), {"features_from": str(model)}
    return lexical_features(texts.texts, progress=progress), {"features_from": "words and letters"}


def run_texts(
    plan: pipeline.Plan, texts: Texts, X: Any, about: dict[str, Any], progress: Progress | None = None
) -> TextRun:
    """Search, merge, cut and name."""
    made = pipeline.run(plan, pipeline.Data(X, None, about), progress)
    start = time.perf_counter()
    names = name_nodes(made.tree, texts.texts, X if isinstance(X, np.ndarray) else None, progress=progress)
    record = made.record
    record["data"] |= {"rows": texts.n_rows, "rows_without_text": texts.n_empty}
    record["seconds"]["names"] = round(time.perf_counter() - start, 3)
    return TextRun(replace(made, record=record), texts, names)
