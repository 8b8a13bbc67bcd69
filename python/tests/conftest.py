# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
import os
import random

import numpy as np
import pytest

SEED = int(os.environ.get("ATTUNE_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
MANY = os.environ.get("ATTUNE_PYTHON_FULL", "") not in ("", "0")


def pytest_report_header():
    return f"attune: fresh seed {SEED} (ATTUNE_SEED); {'full' if MANY else 'quick'} (ATTUNE_PYTHON_FULL)"


@pytest.fixture(params=[20261126, SEED], ids=["fixed", f"fresh-{SEED}"])
def rng(request):
    return np.random.default_rng(request.param)


@pytest.fixture
def many():
    """Whether the full tier runs."""
    return MANY
