# SPDX-License-Identifier: Apache-2.0
"""Kinds import stages, and stages find kinds: neither has to come first."""

import subprocess
import sys
from pathlib import Path

import pytest

from sundial import kinds

SUNDIAL = Path(kinds.__file__).parent


@pytest.mark.night
def test_any_module_of_a_kind_can_be_imported_first() -> None:
    script = """
import sys
from importlib import import_module
from sundial import kinds

stages = ("model", "plan", "report")
for name in [f"sundial.workloads.{kind}.{stage}" for stage in stages for kind in kinds.having("workloads", stage)]:
    for known in [known for known in sys.modules if known.partition(".")[0] == "sundial"]:
        del sys.modules[known]
    import_module(name)
"""
    subprocess.run([sys.executable, "-c", script], cwd=SUNDIAL.parent, check=True)
