"""The slides: lectures that take their figures, equations and numbers from the published chapters (`make slides`)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the modules in docs/

import published

project = "K-Score: nine lectures"
author = copyright = "The K-Score notebook collection contributors"
language = "en"

extensions = ["myst_parser", "sphinx_revealjs", "sphinx-mathjax-offline"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
mathjax3_config = {"chtml": {"matchFontHeight": False}}  # slides that are not shown yet have no height to match

html_favicon = "../_static/icon.svg"
revealjs_static_path = ["_static"]
revealjs_css_files = ["slides.css"]
revealjs_style_theme = "white"
revealjs_script_files = ["revealjs/plugin/notes/notes.js"]
revealjs_script_plugins = [{"name": "RevealNotes", "src": "revealjs/plugin/notes/notes.js"}]
revealjs_script_conf = {"width": 1280, "height": 720, "margin": 0.03, "hash": True, "slideNumber": "c/t",
                        "transition": "none", "center": False, "controls": True, "controlsTutorial": False}


def setup(app):
    """Fill in what slides take from the chapters while they are read."""
    app.connect("source-read", published.render)
