"""Render a self-contained HTML page that shows the coarsest clusters of a tree without a server."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np

from agglo.explore import api
from agglo.explore.run import ExplorableRun
from agglo.explore.values import truncate
from agglo.explore.view import expand_coarsest
from agglo.io.atomic import replace_file

MAX_BYTES = 3_000_000
FRAME_BYTES = 1_000_000  # maximum number of bytes of the page in a cell of a notebook
_MAX_BOXES = 20_000
_MIN_BOX = 200  # typical number of bytes that a box without texts takes in the page
_MAX_TEXT = 300  # maximum number of characters of an item's text
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_SCRIPT = '<script type="module" crossorigin src="./app.js"></script>'
_STYLE = '<link rel="stylesheet" crossorigin href="./app.css">'


def render_page(run: ExplorableRun, max_bytes: int = MAX_BYTES) -> str:
    """Render an HTML page with the coarsest clusters of a tree, at least two, in at most ``max_bytes`` bytes."""
    static = files("agglo.explore").joinpath("static")
    template = static.joinpath("index.html").read_text("utf-8")
    script = static.joinpath("app.js").read_text("utf-8").replace("</script", "<\\/script")
    style = static.joinpath("app.css").read_text("utf-8")
    template = _replace_once(
        template,
        _STYLE,
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><style>{style}</style>',
    )
    limit = min(_MAX_BOXES, max_bytes // _MIN_BOX)
    while limit >= 2:
        # Escape <, so that no text can close the script element that contains the data.
        data = api.to_json(page_data(run, limit)).replace("<", "\\u003c")
        element = f'<script type="application/json" id="agglo-data">{data}</script>'
        html = _replace_once(template, _SCRIPT, f'{element}<script type="module">{script}</script>')
        excess = len(html.encode("utf-8", "replace")) - max_bytes
        if excess <= 0:
            return html
        # Boxes have about equal sizes, so the excess shows the number of boxes that fit.
        limit = int(limit * min(0.95 * (1 - excess / len(data)), 0.9))
    raise ValueError(f"max_bytes={max_bytes} is too small for a page: pass more, for example {MAX_BYTES}")


def render_frame(run: ExplorableRun) -> str:
    """Render the page of :func:`render_page` inside an HTML frame, for a cell of a notebook.

    The frame has an origin of its own, so its script cannot access the notebook. The page is part of the frame's
    element. Therefore the page needs no server, also after the notebook was closed or exported to HTML.
    """
    page = render_page(run, FRAME_BYTES).encode("utf-8", "replace").decode()
    page = page.replace("&", "&amp;").replace("'", "&#39;")
    return (
        f'<iframe srcdoc=\'{page}\' title="agglo explore" sandbox="allow-scripts allow-downloads" '
        'width="100%" height="640" style="border:0"></iframe>'
    )


def save_page(run: ExplorableRun, path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> None:
    """Write the page of :func:`render_page` to ``path`` atomically."""
    text = render_page(run, max_bytes)
    with replace_file(path) as partial:
        partial.write_text(text, "utf-8", "replace")


def page_data(run: ExplorableRun, limit: int) -> dict[str, Any]:
    """Return the data of a page with ``limit`` boxes; explorer/src/embedded.ts declares its type, Embedded."""
    tree = run.tree
    boxes = expand_coarsest(run.outline, limit)
    nodes = [box.node for box in boxes]
    examples = [run.examples(node).tolist() if node >= 0 else [] for node in nodes]
    points = np.unique(np.array([point for shown in examples for point in shown], np.int64))
    items = api.describe_items(run, points)
    return {
        "run": replace(api.describe_run(run), columns=[]),
        "boxes": [api.describe_box(run, box) for box in boxes],
        "limits": [float(run.outline.split_limit[node]) if node >= 0 else 0.0 for node in nodes],
        "kept": [bool(run.outline.is_kept[node]) if node >= 0 else False for node in nodes],
        "heights": [float(tree.height[node]) if node >= 0 else 0.0 for node in nodes],
        "terms": [run.terms(node) if node >= 0 else [] for node in nodes],
        "examples": examples,
        "items": [replace(item, text=truncate(item.text, _MAX_TEXT), values=[]) for item in items],
        "origin": float(tree.about["origin"]) if tree.about.get("kind") == "similarity" else None,
    }


def _replace_once(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise RuntimeError(f"index.html does not contain {old}: build explorer/ again")
    return text.replace(old, new)
