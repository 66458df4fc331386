"""Detect damaged files by their hashes, and damaged records by a checksum entry in the record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_CHUNK = 1 << 24  # bytes read at a time


def hash_file(path: Path) -> str:
    """Return the hash of a file's content, as hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def add_checksum(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of ``record`` with a checksum of its entries; see :func:`has_valid_checksum`."""
    return {**record, "checksum": _compute_checksum(record)}


def has_valid_checksum(record: Mapping[str, Any]) -> bool:
    """Return whether a record matches its checksum.

    A record without a checksum is valid, because early versions wrote none.
    """
    rest = dict(record)
    expected = rest.pop("checksum", None)
    return expected is None or expected == _compute_checksum(rest)


def _compute_checksum(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, allow_nan=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
