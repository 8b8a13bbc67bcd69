# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Sphinx's configuration of the site that scripts/docs builds. The sources are a copy, in build/docs/source, of docs/ and of the pages of
the top folder, README.md as index.md; files that pages link to are downloads."""
import pathlib
import re

from docutils import nodes

project = "attune"
author = "The attune authors"
copyright = "2026, The attune authors"
html_title = "attune"

extensions = ["myst_parser"]
root_doc = "index"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = ["docs/site"]
myst_heading_anchors = 6  # GitHub's anchors
suppress_warnings = ["myst.header"]  # README begins its levels as GitHub shows them

html_theme = "furo"
html_static_path = [str(pathlib.Path(__file__).parent / "static")]
html_css_files = ["attune.css"]
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
html_permalinks_icon = "#"
pygments_style = "friendly"
pygments_dark_style = "monokai"

# The order of the sections. Pages of a section are sorted by their titles, those that are listed here first.
SECTIONS = [
    ("", "docs", ["index"]),
    ("Tutorial", "docs/tutorial", ["first_operator", "own_variant", "from_a_paper", "train", "judge_a_kernel"]),
    ("How to", "docs/howto", []),
    ("Reference", "docs/reference", []),
    ("Explanation", "docs/explanation", []),
    ("Lab", "docs/lab", []),
    ("Contributing", "docs/contributing", []),
]


def toctrees(source):
    """The navigation, as MyST."""
    for caption, folder, first in SECTIONS:
        by_title = sorted((page.read_text(encoding="utf-8").split("\n", 1)[0].lower(), page.stem) for page in (source / folder).glob("*.md"))
        found = [name for title, name in by_title]
        pages = [f"{folder}/{name}" for name in [*(n for n in first if n in found), *(n for n in found if n not in first)]]
        pages += {"Reference": ["api"], "Contributing": ["CONTRIBUTING", "CHANGELOG"]}.get(caption, [])
        if pages:
            yield "\n".join(["```{toctree}", *([f":caption: {caption}"] if caption else []), ":hidden:", "", *pages, "```", ""])


def source_read(app, docname, content):
    """README is the index; the index has the navigation."""
    text = re.sub(r"(\]\((?:\.\./)*)README\.md\b", r"\1index.md", content[0])
    if docname == root_doc:
        text += "\n" + "\n".join(toctrees(pathlib.Path(app.srcdir)))
    content[0] = text


def doctree_read(app, doctree):
    """Anchors that a page writes as <a id="..."> are places to link to, as they are on GitHub."""
    known = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for node in doctree.findall(nodes.raw):
        for anchor in re.findall(r'<a\s[^>]*(?:id|name)="([^"]+)"', node.astext()):
            known.setdefault(anchor, (node.line, anchor, anchor))


def setup(app):
    app.connect("source-read", source_read)
    app.connect("doctree-read", doctree_read)
