"""The verb for a first experience: demo."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from agglo.cli.app import app
from agglo.cli.ends import CANNOT_WRITE, EPILOG, USAGE, complain, failing, tell, verb
from agglo.cli.fit import clustered
from agglo.cli.options import AsJson, Force, Jobs, Out, Quiet


@app.command(epilog=EPILOG)
@verb
def demo(
    out: Out = Path("agglo-demo"),
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster handwritten digits, score the tree and draw a picture of it."""
    with failing(USAGE):
        from agglo import demo as digits
        from agglo import runfolder, summary

        plan = digits.plan(jobs)
    with failing(CANNOT_WRITE):
        runfolder.check_folder(out, force=force)
    data = digits.digits()
    run = clustered(plan, quiet, lambda: data)
    picture = None
    try:
        picture = digits.picture(data, run)
    except ImportError as error:
        complain("note", f"no picture, for {error}")
    with failing(CANNOT_WRITE, f"nothing was written to {out}: "):
        paths = runfolder.save_run(out, run.tree, run.labels, run.record, picture)
    rows = [*summary.of_run(run.record), ("written", ", ".join(map(str, paths)))]
    name = "agglo" if shutil.which("agglo") else sys.argv[0]  # as it can be typed again
    rows += [
        ("next", f"{name} info {out}"),
        ("", f"{name} cut {out} --n-clusters 20 -o labels.csv"),
        ("", f"{name} explore {out}"),
    ]
    tell(run.record, rows, as_json, quiet)
