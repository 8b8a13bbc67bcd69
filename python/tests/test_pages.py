# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The code of the pages runs. A comment in front of a block says so: <!-- python: runs --> or <!-- python: runs torch -->."""

import importlib.util
import pathlib
import re

import pytest

_PAGES = pathlib.Path(__file__).parents[2] / "docs" / "howto"
_BLOCK = re.compile(r"<!-- python: runs( torch)? -->\n```python\n(.*?)```", re.S)


def test_code_of_pages():
    pages = [page for page in sorted(_PAGES.glob("python*.md")) if _BLOCK.search(page.read_text())]
    if not pages:
        pytest.skip("no pages next to these tests")
    with_torch = importlib.util.find_spec("torch") is not None
    for page in pages:
        names = {}
        for needs_torch, code in _BLOCK.findall(page.read_text()):
            if with_torch or not needs_torch:
                exec(compile(code, str(page), "exec"), names)
