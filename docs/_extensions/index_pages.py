"""Make the navigation of the site from its index pages.

An index page, `index.md`, is plain Markdown with links to the pages of its folder. The order of these links is the
order of the pages in the sidebar, and the headings above them are the captions there.
"""

import re
from pathlib import PurePosixPath

HEADING = re.compile(r"^## (.+)$")
ITEM = re.compile(r"^[-|].*?\[(?P<title>[^\]]+)\]\((?P<page>[\w/]+\.(?:md|rst|ipynb))\)(?P<text>.*)$")
LINK = re.compile(r"\]\(([\w/]+\.(?:md|rst|ipynb))\)")


def is_child(page):
    """Return whether a link leads to a page of the same folder, or to the index page of a folder in it."""
    path = PurePosixPath(page)
    return len(path.parts) == 1 or (len(path.parts) == 2 and path.stem == "index")


def toctrees(text):
    """Return the navigation of an index page as MyST directives, one per heading with links."""
    pages = {}
    caption = ""
    for line in text.splitlines():
        if heading := HEADING.match(line):
            caption = heading[1]
        for page in filter(is_child, LINK.findall(line)):
            pages.setdefault(page, caption)
    directives = []
    for caption in dict.fromkeys(pages.values()):
        options = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
        names = [str(PurePosixPath(page).with_suffix("")) for page in pages if pages[page] == caption]
        directives.append("\n".join(["```{toctree}", *options, "", *names, "```"]))
    return "\n\n".join(directives)


def add_toctrees(app, docname, source):
    """Append the navigation to the text of an index page."""
    if PurePosixPath(docname).name == "index" and app.env.doc2path(docname).suffix == ".md":
        source[0] += "\n" + toctrees(source[0]) + "\n"


def setup(app):
    """Register the extension."""
    app.connect("source-read", add_toctrees)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
