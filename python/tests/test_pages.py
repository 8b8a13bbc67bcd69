# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The code of the pages runs. A comment in front of a block says so: <!-- python: runs torch compiles -->.

torch, compiles: what it needs. A block that compiles calls attune.compile, or a block before it does.
"""

import importlib.util
import pathlib
import re

import pytest

_DOCS = pathlib.Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"<!-- python: runs((?: torch| compiles)*) -->\n```python\n(.*?)```", re.S)
_PAGES = {
    str(page.relative_to(_DOCS)): _BLOCK.findall(page.read_text())
    for folder in ("howto", "tutorial")
    for page in sorted((_DOCS / folder).glob("*.md"))
}
_TORCH = importlib.util.find_spec("torch") is not None


def run(page, compiles):
    names = {}
    for needs, code in _PAGES[page]:
        if (_TORCH or "torch" not in needs) and (compiles or "compiles" not in needs):
            exec(compile(code, page, "exec"), names)


@pytest.mark.parametrize("page", [page for page, blocks in _PAGES.items() if blocks])
def test_code_of_a_page(page):
    run(page, False)


@pytest.mark.compiles
@pytest.mark.parametrize("page", [p for p, blocks in _PAGES.items() if any("compiles" in needs for needs, _ in blocks)])
def test_code_of_a_page_that_compiles(page):
    run(page, True)
