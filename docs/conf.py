"""The book: chapters and the pages in docs/, as published (`make book`, from the project's root) or just executed.

`kscore run` lays the same tree out below its folder, with executed chapters in it, or with a few of them alone.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for the module beside this file

import reading

project = "K-Score"
author = copyright = "The K-Score notebook collection contributors"
html_title = "K-Score: how returns are normalized"
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_design",
              "sphinx-mathjax-offline", "sphinxcontrib.bibtex"]
root_doc = "docs/index"
include_patterns = ["run.md", "docs/*.md", "data/*.md", "notebooks/[0-9][0-9]_*.ipynb"]
exclude_patterns = [".*", "build", "**/.ipynb_checkpoints"]

nb_execution_mode = "off"  # the outputs are published
nb_render_markdown_format = "myst"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 3
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature has them
default_role = "code"  # docstrings put names between single backticks

html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_favicon = "_static/icon.svg"
html_extra_path = ["front"]  # an index.html that leads to docs/index.html
html_js_files = ["zoom.js"]
templates_path = ["_templates"]
html_theme_options = {"navbar_persistent": [], "use_fullscreen_button": False}
html_context = {"default_mode": "light"}


def without_fields(app, what, name, thing, skip, options):
    """Leave out what Python says of the fields of a named tuple, "Alias for field number 0"; its signature has them."""
    return True if str(getattr(thing, "__doc__", "")).startswith("Alias for field number") else None


def setup(app):
    """Prepare every chapter while it is read."""
    app.add_config_value("contents", [], "env", list)
    app.connect("config-inited", reading.look_round)
    app.connect("source-read", reading.prepare)
    app.connect("autodoc-skip-member", without_fields)
