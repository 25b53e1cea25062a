# SPDX-License-Identifier: Apache-2.0
"""What a pass does not cover depends on the clock, and on what took part."""

from types import SimpleNamespace
from typing import Any

import pytest

from sundial.segments.atm.verify_handed import UNPROVEN as OF_ATM
from sundial.verify.headers.arp import UNPROVEN, UNPROVEN_REAL_CLOCK
from sundial.verify.unproven import unproven


@pytest.mark.parametrize("clock", ["virtual", "real"])
@pytest.mark.parametrize("kind", ["hub", "atm"])
def test_what_only_the_virtual_clock_proves_is_unproven_under_the_real_one(clock: str, kind: str) -> None:
    run: Any = SimpleNamespace(clock=clock, document={"topology": {"segments": {"lan": {"kind": kind}}}})
    found = set(unproven(run))
    assert set(UNPROVEN) <= found
    assert (set(UNPROVEN_REAL_CLOCK) <= found) == (clock == "real")
    assert (set(OF_ATM) <= found) == (kind == "atm")
