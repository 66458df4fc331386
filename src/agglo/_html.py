"""Render small HTML summaries of objects, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

_TABLE = "border-collapse:collapse;margin:0.3em 0"
_CELL = "text-align:left;vertical-align:top;padding:1px 14px 1px 0;border:0;background:none"
_HEADER = f"{_CELL};font-weight:normal;white-space:nowrap;opacity:0.7"


def render_facts(title: str, facts: Mapping[str, str]) -> str:
    """Render a title and a table with one row per fact; colours and fonts are those of the notebook."""
    rows = "".join(
        f'<tr style="background:none"><th style="{_HEADER}">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f'<div><strong>{escape(title)}</strong><table style="{_TABLE}">{rows}</table></div>'
