# SPDX-License-Identifier: Apache-2.0
"""Beds have frames and samples, but neither a scenario nor jobs: what was to be done is not asked of them."""

from __future__ import annotations

import pytest

from sundial.verify import run
from sundial.verify.findings import none


@pytest.fixture(autouse=True)
def _without_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """`test_plan.py` and `test_documents.py` ask these checks themselves."""
    monkeypatch.setattr(run, "check_documents", lambda *_: none())
    monkeypatch.setattr(run, "check_jobs", lambda *_: none())
    monkeypatch.setattr(run, "check_plan", lambda *_: none())
