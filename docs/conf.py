"""Configuration of the site: Sphinx, MyST and the PyData theme. `.ci/site` builds the site."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import agglo

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "agglo"
author = "The agglo developers"
copyright = "The agglo developers"
version = release = agglo.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "site_pages",
    "public_members",
    "markdown_pages",
    "check_links",
]
exclude_patterns = ["_*"]
templates_path = ["_templates"]

# Pages are plain Markdown, which repositories show too.
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
nb_execution_mode = "off"  # notebooks are committed with their output; a test executes them

autosummary_generate = True
suppress_warnings = ["autosummary.import_cycle"]  # the tables have full names
autosummary_filename_map = {  # names of files must differ by more than upper and lower case
    f"agglo.{name}": f"agglo.{name}-function"
    for name in ("scc", "affinity", "hac", "metrics.coherence", "contents.spread")
}
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False

# The environment variable SITE_URL is the address at which the site will be published.
html_baseurl = os.environ.get("SITE_URL", "")

html_theme = "pydata_sphinx_theme"
html_title = "agglo"
html_static_path = ["_static"]
html_css_files = ["agglo.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "agglo"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {
    name: [] for name in ("index", "get_started", "comparison", "faq", "changelog", "contributing", "404")
}


def set_head(app, pagename, templatename, context, doctree):
    """Link the Markdown of a page. Make the links of the page 404 absolute, because any address may show it."""
    if pagename in app.env.found_docs:
        name = pagename.rpartition("/")[2]
        context["metatags"] += f'<link rel="alternate" type="text/markdown" href="{name}.md">'
    if pagename == "404" and html_baseurl:
        context["metatags"] += f'<base href="{urlsplit(html_baseurl).path.rstrip("/")}/">'


def setup(app):
    """Register the function."""
    app.connect("html-page-context", set_head)
