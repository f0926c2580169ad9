"""How the documentation site is built: offline, with every warning an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import cast

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import hcdv

project = "hcdv"
author = "The hcdv authors"
copyright = author
version = release = hcdv.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_ext"]
html_theme = "furo"
html_title = f"hcdv {release}"
html_show_copyright = False
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures show them; a second list repeats them
napoleon_use_rtype = False

# Built offline, the site cannot link the types of other libraries.
nitpick_ignore_regex = [("py:.*", r"(?!hcdv\.).*")]


def setup(app: Sphinx) -> None:
    """Let docstrings say |S| and values_, which the markup takes for references."""
    app.connect("autodoc-process-docstring", _as_written)


def _as_written(*event: object) -> None:
    lines = cast("list[str]", event[-1])
    verbatim = -1  # the indent that a literal block goes beyond
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent <= verbatim:
            verbatim = -1
        if verbatim < 0 and not line.lstrip().startswith((">>>", "...", ".. ")):
            parts = line.split("``")  # every second one is a literal
            parts[::2] = [
                re.sub(r"(?<!\\)(\||(?<=\w)_(?!\w))", r"\\\1", p) for p in parts[::2]
            ]
            lines[number] = "``".join(parts)
            verbatim = indent if line.rstrip().endswith("::") else -1
