"""Write the Markdown of every page next to its HTML, and llms.txt, a list of all pages for language models."""

import inspect
import json
import os
import pkgutil
import re
import shutil
from pathlib import Path, PurePosixPath

from site_pages import ITEM, is_child, page_text

SOURCE = re.compile(r"(\]\([\w./]+)\.(?:rst|ipynb)([#)])")  # a link to a page that is not Markdown in docs
RELATIVE_LINK = re.compile(r"(!?)\[([^\[\]]*)\]\((?!\w+:)([^()#\s]+)(#[^()\s]*)?\)")
AUTOSUMMARY = re.compile(r"^\.\. autosummary::\n(?: +:.*\n)*\n((?: +\S+\n)+)", re.MULTILINE)


def docstring_to_markdown(text):
    """Convert a numpydoc docstring: its sections already are headings, its examples become code blocks."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    text = re.sub(r"^((?:>>>|\.\.\.) .*\n(?:.+\n)*)", r"```python\n\1```\n", text + "\n", flags=re.MULTILINE)
    # a parameter "name : type" with its description below it is an item of a list
    return re.sub(r"^([\w*, ]+) : (.+)\n((?: {4}.*\n|\n(?= {4}))+)", r"- `\1` : \2\n\3", text, flags=re.MULTILINE)


def object_to_markdown(name):
    """Return the Markdown of a public object: its signature and docstring, and those of its methods."""
    module, _, attribute = name.rpartition(".")
    found = getattr(pkgutil.resolve_name(module), attribute)  # a module may have the same name
    parts = [f"# {name}", *_describe(found, attribute)]
    if inspect.isclass(found):
        for key, member in inspect.getmembers(found):
            function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", member))
            if key.startswith("_") or not str(getattr(function, "__module__", None)).startswith("agglo."):
                continue
            if inspect.getdoc(member):
                parts += [f"## {key}", *_describe(member, f"{attribute}.{key}")]
    return "\n\n".join(parts) + "\n"


def _describe(found, name):
    if callable(found):
        try:
            signature = inspect.signature(found)
            parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
            signature = signature.replace(parameters=parameters, return_annotation=signature.empty)
            yield f"```python\n{name}{signature}\n```"
        except ValueError:  # a class without a signature
            yield f"`{name}`"
    yield docstring_to_markdown(inspect.getdoc(found) or "").strip()


def notebook_to_markdown(text):
    """Return the cells of a notebook, and the text that they print."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            lines = output.get("text") or output.get("data", {}).get("text/plain") or []
            if lines:
                parts.append(f"```\n{''.join(lines).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def reference_to_markdown(text, files):
    """Return the Markdown of a page of the reference: lists of links in the place of tables."""
    text = re.sub(r"^\.\. py:module:: .*\n\n", "", text, flags=re.MULTILINE).replace("``", "`")
    return AUTOSUMMARY.sub(
        lambda match: "".join(f"- [{name}](generated/{files.get(name, name)}.md)\n" for name in match[1].split()),
        text,
    )


def page_to_markdown(path, name, files):
    """Return the Markdown of a page, given its source file; ``files`` maps public names to the names of files."""
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        return notebook_to_markdown(text)
    if path.suffix == ".md":
        return SOURCE.sub(r"\1.md\2", page_text(name, text))
    if "/generated/" in name:
        names = {file: public for public, file in files.items()}
        return object_to_markdown(names.get(path.stem, path.stem))
    return reference_to_markdown(text, files)


def bring_files(text, page, source, site):
    """Copy the files in docs that a page links next to its Markdown; turn links to files elsewhere into text."""

    def bring(match):
        target = Path(os.path.normpath(source / page.parent / match[3]))
        if not target.is_relative_to(source):
            return match[2]
        if target.is_file() and target.suffix not in {".md", ".rst", ".ipynb"}:
            copy = site / target.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, copy)
        return match[0]

    return RELATIVE_LINK.sub(bring, text)


def list_pages(folder, page="index.md", depth=0):
    """List the pages under an index page, each with the line that describes it there."""
    lines = []
    for line in (folder / page).read_text("utf-8").splitlines():
        item = ITEM.match(line)
        if not item or not is_child(item[2]):
            continue
        title, target = item[1], PurePosixPath(page).parent / item[2]
        is_index = target.name == "index.md"
        if depth == 0 and is_index:
            lines += ["", f"## {title}", ""]
        lines.append(f"- [{title}]({target.with_suffix('.md')}){item[3]}")
        if is_index:
            lines += list_pages(folder, str(target), depth + 1)
    return lines


def write_markdown(app, exception):
    """Write the files into the finished site."""
    if exception is not None or app.builder.format != "html":
        return
    source, site = Path(app.srcdir), Path(app.outdir)
    files = app.config.autosummary_filename_map
    for name in app.env.found_docs:
        path = Path(app.env.doc2path(name))
        text = page_to_markdown(path, name, files)
        (site / f"{name}.md").write_text(bring_files(text, PurePosixPath(name), source, site), encoding="utf-8")
    summary = (source / "index.md").read_text("utf-8").split("\n\n")[1].replace("\n", " ")
    text = "\n".join([f"# {app.config.project}", "", f"> {summary}", *list_pages(source)])
    (site / "llms.txt").write_text(text + "\n", encoding="utf-8")


def setup(app):
    """Register the extension."""
    app.connect("build-finished", write_markdown)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
