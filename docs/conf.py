"""Configuration of the site: Sphinx, MyST and the PyData theme. `.ci/site` builds the site."""

import sys
from pathlib import Path

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
    "index_pages",
]
exclude_patterns = ["_*"]
templates_path = ["_templates"]

# Pages are plain Markdown, which repositories show too.
myst_heading_anchors = 4
nb_execution_mode = "off"  # notebooks are committed with their output; a test executes them

autosummary_generate = True
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False

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
html_sidebars = {name: [] for name in ("index", "get_started", "comparison", "faq", "changelog")}
