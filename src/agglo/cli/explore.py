"""The command ``agglo explore``: browse a run on a local web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agglo.cli.app import (
    BAD_INPUT,
    CANNOT_WRITE,
    EPILOG,
    USAGE,
    app,
    exit_with,
    print_message,
    print_result,
    report_errors,
)
from agglo.cli.options import INPUT, OUTPUT, AsJson, Quiet, RunPath


@app.command(epilog=EPILOG)
@report_errors
def explore(
    run: RunPath,
    items: Annotated[
        Path | None,
        typer.Option(help="File with one row per point: .parquet, .csv, .tsv or .arrow.", rich_help_panel=INPUT),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="Text column of the file --items.", rich_help_panel=INPUT)
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; by default a free one.", rich_help_panel=OUTPUT)
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser", "-b", help="Open the link in a browser.", rich_help_panel=OUTPUT)
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write a single HTML page with the largest clusters to this file, and exit.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    html_size: Annotated[
        float, typer.Option(min=0.1, help="For --html: maximum size in MB.", rich_help_panel=OUTPUT)
    ] = 3.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Browse a tree: serve a web page on this machine until Ctrl-C.

    Only this machine can open the link, which contains a secret token.

    Example: agglo explore out --browser
    """
    with exit_with(USAGE):
        from agglo.explore import open_run
        from agglo.explore.page import save_page
        from agglo.io.atomic import check_writable_file

        if column is not None and items is None:
            raise ValueError("--column names a column of --items: pass that, too")
    if html is not None:
        with exit_with(CANNOT_WRITE):
            check_writable_file(html)
        with exit_with(BAD_INPUT):
            opened = open_run(run, items, column)
        with exit_with(CANNOT_WRITE):
            save_page(opened, html, int(html_size * 1e6))
        print_result({"run": str(run), "written": str(html)}, [("written", str(html))], as_json, quiet)
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
    """Serve the explorer's web page for a run until Ctrl-C."""
    from agglo.explore import Explorer, open_run

    with exit_with(BAD_INPUT):
        opened = open_run(run, items, column)
    with exit_with(USAGE, f"the page cannot be served on port {port}: "):
        explorer = Explorer(opened, port)
    try:
        explorer.start()
        print_result(
            {"run": str(run), "url": explorer.url}, [("open", explorer.url), ("end", "Ctrl-C")], as_json, False
        )
        if browser:
            import webbrowser

            if not webbrowser.open(explorer.url):
                print_message("note", "no browser could be opened: open the link yourself")
        explorer.wait()
    except KeyboardInterrupt:
        return  # Ctrl-C is the normal end of the command
    finally:
        explorer.close()
