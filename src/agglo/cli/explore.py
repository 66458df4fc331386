"""The verb that shows a run in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agglo.cli.app import app
from agglo.cli.ends import BAD_INPUT, CANNOT_WRITE, EPILOG, USAGE, complain, failing, tell, verb
from agglo.cli.options import INPUT, OUTPUT, AsJson, Quiet, RunPath


@app.command(epilog=EPILOG)
@verb
def explore(
    run: RunPath,
    items: Annotated[
        Path | None,
        typer.Option(help="File with a row a point: .parquet, .csv, .tsv or .arrow.", rich_help_panel=INPUT),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="Column of that file that is the text of a point.", rich_help_panel=INPUT)
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; by default one that is free.", rich_help_panel=OUTPUT)
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser", "-b", help="Open the link in a browser.", rich_help_panel=OUTPUT)
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write one file with the top of the tree instead, and end.", rich_help_panel=OUTPUT),
    ] = None,
    html_size: Annotated[
        float, typer.Option(min=0.1, help="For --html: its size in MB, at most.", rich_help_panel=OUTPUT)
    ] = 3.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Look into a tree in the browser: serve a page on this machine until Ctrl-C.

    The link is for this machine alone, and the token in it lets you in.
    """
    with failing(USAGE):
        from agglo.explore import open_run
        from agglo.explore.page import save_page
        from agglo.io import atomic as outputs

        if column is not None and items is None:
            raise ValueError("--column names a column of --items: pass that, too")
    if html is not None:
        with failing(CANNOT_WRITE):
            outputs.check_writable_file(html)
        with failing(BAD_INPUT):
            opened = open_run(run, items, column)
        with failing(CANNOT_WRITE):
            save_page(opened, html, int(html_size * 1e6))
        tell({"run": str(run), "written": str(html)}, [("written", str(html))], as_json, quiet)
        return
    serve(run, items, column, port=port, browser=browser, as_json=as_json)


def serve(
    run: Path,
    items: Path | None = None,
    column: str | None = None,
    *,
    port: int = 0,
    browser: bool = False,
    as_json: bool = False,
) -> None:
    """Serve a run until Ctrl-C."""
    from agglo.explore import Explorer, open_run

    with failing(BAD_INPUT):
        opened = open_run(run, items, column)
    with failing(USAGE, f"the page cannot be served on port {port}: "):
        explorer = Explorer(opened, port)
    try:
        explorer.start()
        tell({"run": str(run), "url": explorer.url}, [("open", explorer.url), ("end", "Ctrl-C")], as_json, False)
        if browser:
            import webbrowser

            if not webbrowser.open(explorer.url):
                complain("note", "no browser could be opened: open the link yourself")
        explorer.wait()
    except KeyboardInterrupt:
        return  # the way to end it
    finally:
        explorer.close()
