"""One file with the top of a tree in it, to be looked into without a server."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from typing import Any

import numpy as np

from agglo.explore import api
from agglo.explore.run import Opened
from agglo.explore.schema import plain
from agglo.explore.view import boxes
from agglo.io.atomic import replacing

MAX_BYTES = 3_000_000
_MOST_BOXES = 20_000
_LONGEST = 300  # characters of a text
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_SCRIPT = '<script type="module" crossorigin src="./app.js"></script>'
_STYLE = '<link rel="stylesheet" crossorigin href="./app.css">'


def page(opened: Opened, max_bytes: int = MAX_BYTES) -> str:
    """A page that needs nothing else: as much of the tree as ``max_bytes`` hold, the largest clusters first.

    Raises
    ------
    ValueError
        If not even a small part would fit.
    """
    static = files("agglo.explore").joinpath("static")
    text = static.joinpath("index.html").read_text("utf-8")
    script = static.joinpath("app.js").read_text("utf-8").replace("</script", "<\\/script")
    style = static.joinpath("app.css").read_text("utf-8")
    limit = _MOST_BOXES
    while limit >= 2:
        # No text can end the element that it is in: there is no < left in it.
        data = json.dumps(embedded(opened, limit), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        made = _put(
            text, _STYLE, f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><style>{style}</style>'
        )
        holder = f'<script type="application/json" id="agglo-data">{data}</script>'
        made = _put(made, _SCRIPT, f'{holder}<script type="module">{script}</script>')
        if len(made.encode("utf-8", "replace")) <= max_bytes:
            return made
        limit //= 2
    raise ValueError(f"a page of {max_bytes} bytes is too small for anything: allow {MAX_BYTES}, say")


def save_page(opened: Opened, path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> None:
    """Write :func:`page` to ``path``, whole or not at all."""
    text = page(opened, max_bytes)
    with replacing(path) as partial:
        partial.write_text(text, "utf-8", "replace")


def embedded(opened: Opened, limit: int) -> dict[str, Any]:
    """What such a page holds, see Embedded in explorer/src/embedded.ts."""
    tree = opened.tree
    found = boxes(tree, tree.n_nodes - 1, 0, limit=limit, depth=1000, share=0.0)
    nodes = [box.node for box in found]
    examples = [opened.examples(node).tolist() if node >= 0 else [] for node in nodes]
    points = np.unique(np.array([point for shown in examples for point in shown], np.int64))
    run = plain(api.run(opened)) | {"columns": []}
    similar = tree.about.get("kind") == "similarity"
    return {
        "run": run,
        "boxes": [
            {
                **box._asdict(),
                "name": opened.name(box.node) if box.node >= 0 else f"+ {box.number:,} more",
                "round": int(tree.round[box.node]) if box.node >= 0 else 0,
                "value": None,
                "share": None,
            }
            for box in found
        ],
        "heights": [float(tree.height[node]) if node >= 0 else 0.0 for node in nodes],
        "terms": [opened.terms(node) if node >= 0 else [] for node in nodes],
        "examples": examples,
        "items": [_short(plain(item)) for item in api.items_of(opened, points)],
        "origin": float(tree.about["origin"]) if similar else None,
    }


def _short(item: dict[str, Any]) -> dict[str, Any]:
    text = item["text"]
    return item | {"text": text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…", "values": []}


def _put(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise RuntimeError(f"the page has no {old}: build explorer/ again")
    return text.replace(old, new)
