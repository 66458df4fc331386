"""What comes in from outside is checked here, once; the stages behind trust it."""

from __future__ import annotations

import os


def threads(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` asks for, as scikit-learn counts: None is all cores, -1 too."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} is not a number of threads: pass a positive integer, None or -1")
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)
