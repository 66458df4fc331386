"""Turn Markdown that reads well in a repository into the pages of the site.

- An index page, `index.md`, lists links to the pages of its folder. The order of these links is the order in the
  sidebar. Their texts are the titles there, and the headings above them are the captions.
- Some pages have their text in a file outside `docs`. The page itself only links this file.
"""

import os
import re
from pathlib import Path, PurePosixPath

from docutils import nodes

ROOT = Path(__file__).parents[2]
DOCS = PurePosixPath("docs")
FILES = {  # page: the file outside docs that has its text
    "index": "README.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "how_it_works/benchmarks": "benchmarks/README.md",
}
PAGES = {file: f"docs/{page}.md" for page, file in FILES.items()}

HEADING = re.compile(r"^## (.+)$")
LINK = re.compile(r"\[([^\[\]]+)\]\(([\w/]+\.(?:md|rst|ipynb))\)")
ITEM = re.compile(r"^[-|].*?" + LINK.pattern + "(.*)$")
RELATIVE = re.compile(r"""(\]\(|<img src=")(?!\w+:)([^#()"\s]+)""")


def is_child(page):
    """Return whether a link leads to a page of the same folder, or to the index page of a folder in it."""
    path = PurePosixPath(page)
    return len(path.parts) == 1 or (len(path.parts) == 2 and path.stem == "index")


def toctrees(text):
    """Return the navigation of an index page as MyST directives, one per heading with links.

    Pages in lists and tables come first, with the titles there. Pages that only sentences link follow.
    """
    pages, in_sentences = {}, {}
    caption = ""
    for line in text.splitlines():
        if heading := HEADING.match(line):
            caption = heading[1]
        for title, page in LINK.findall(line):
            if is_child(page) and line.startswith(("- ", "|")):
                pages.setdefault(
                    page, (caption, f"{title.replace('`', '')} <{PurePosixPath(page).with_suffix('')}>")
                )
            elif is_child(page):
                in_sentences.setdefault(page, ("", str(PurePosixPath(page).with_suffix(""))))
    pages |= {page: entry for page, entry in in_sentences.items() if page not in pages}
    directives = []
    for caption in dict.fromkeys(caption for caption, _ in pages.values()):
        options = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
        entries = [entry for own, entry in pages.values() if own == caption]
        directives.append("\n".join(["```{toctree}", *options, "", *entries, "```"]))
    return "\n\n".join(directives)


def move_links(text, file, page):
    """Adapt the relative links in the text of ``file`` to ``page``; both are paths in the repository."""

    def move(match):
        target = os.path.normpath(PurePosixPath(file).parent / match[2])
        return match[1] + os.path.relpath(PAGES.get(target, target), PurePosixPath(page).parent)

    return RELATIVE.sub(move, text)


def page_text(name, text):
    """Return the Markdown of a page of the site, given its name and the text of its file in docs."""
    page = f"docs/{name}.md"
    if name not in FILES:
        return move_links(text, page, page)
    moved = move_links((ROOT / FILES[name]).read_text("utf-8"), FILES[name], page)
    if name == "index":  # the list of sections stands above the first heading of the README
        moved = moved.replace("\n## ", "\n" + text.partition("\n\n")[2].partition("\n\n")[2] + "\n## ", 1)
    return moved


def read_page(app, name, source):
    """Replace the source of a page."""
    if app.env.doc2path(name).suffix == ".md":
        navigation = "\n" + toctrees(source[0]) + "\n" if PurePosixPath(name).name == "index" else ""
        source[0] = page_text(name, source[0]) + navigation
        if name in FILES:
            app.env.note_dependency(str(ROOT / FILES[name]))


def mark_cards(app, doctree):
    """Let lists of pages look like cards."""
    if PurePosixPath(app.env.docname).name == "index":
        for items in doctree.findall(nodes.bullet_list):
            if all(isinstance(item[0][0], nodes.Element) and "refexplicit" in item[0][0] for item in items):
                items["classes"].append("cards")


def setup(app):
    """Register the extension."""
    app.connect("source-read", read_page)
    app.connect("doctree-read", mark_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
