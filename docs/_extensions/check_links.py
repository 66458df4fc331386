"""Check the built site: every internal link leads to a page and an anchor, and no page loads external files."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from sphinx.errors import ExtensionError

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}
NOT_LOADED = {"canonical", "alternate", "author", "license"}
MARKDOWN_LINK = re.compile(r"\]\((?!\w+:)([^()#\s]+)")


class Page(HTMLParser):
    """The anchors and links of one HTML file."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.external = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Collect the anchors and links of an element."""
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        for name in ("href", "src"):
            link = attributes.get(name)
            if not link:
                continue
            parts = urlsplit(link)
            if not parts.scheme and not parts.netloc:
                self.links.append(link)
            elif (tag, name) in LOADED and parts.scheme != "data" and attributes.get("rel") not in NOT_LOADED:
                self.external.append(link)


def broken_links(folder):
    """Return a line per broken link, and per file of another site that a page loads."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*.html")]
    pages = {name: Page((folder / name).read_text("utf-8")) for name in names if not name.startswith("_static/")}
    lines = []
    for name, page in sorted(pages.items()):
        lines += [f"{name}: loads {link} from another site" for link in page.external]
        for link in dict.fromkeys(page.links):
            parts = urlsplit(urljoin(name, link))
            path = unquote(parts.path) or name
            fragment = unquote(parts.fragment)
            if path not in pages:
                if not (folder / path).is_file():
                    lines.append(f"{name}: {link} leads to no file")
            elif fragment and fragment not in pages[path].anchors:
                lines.append(f"{name}: {link} leads to no anchor")
    for path in [*folder.rglob("*.md"), folder / "llms.txt"]:
        links = MARKDOWN_LINK.findall(path.read_text("utf-8"))
        dead = [link for link in dict.fromkeys(links) if not (path.parent / link).exists()]
        lines += [f"{path.relative_to(folder)}: {link} leads to no file" for link in dead]
    return lines


def check_site(app, exception):
    """Raise if the finished site has broken links."""
    if exception is None and app.builder.format == "html":
        lines = broken_links(Path(app.outdir))
        if lines:
            raise ExtensionError("\n".join([f"{len(lines)} broken links:", *lines]))


def setup(app):
    """Register the extension, to run after all others."""
    app.connect("build-finished", check_site, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
