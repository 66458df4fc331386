"""The command ``agglo explore``: browse a run on a local web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from agglo.cli import options as opt
from agglo.cli.app import BAD_INPUT, CANNOT_WRITE, USAGE, command, exit_with, print_message, print_result


@command()
def explore(
    run: opt.RunPath,
    items: Annotated[
        Path | None, opt.input_option("File with one row per point: .parquet, .csv, .tsv or .arrow.")
    ] = None,
    column: Annotated[str | None, opt.input_option("Text column of the file --items.")] = None,
    port: Annotated[int, opt.output_option("Port; by default a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, opt.output_option("Open the link in a browser.", "--browser", "-b")] = False,
    html: Annotated[
        Path | None,
        opt.output_option("Write a single HTML page with the coarsest clusters to this file, and exit."),
    ] = None,
    html_size: Annotated[float, opt.output_option("For --html: maximum size in MB.", min=0.1)] = 3.0,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
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
