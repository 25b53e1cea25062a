# SPDX-License-Identifier: Apache-2.0
"""What several tests of machines need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sundial.machines.switchboard import Switchboard


@pytest.fixture
def switchboard() -> Iterator[Switchboard]:
    made = Switchboard()
    yield made
    made.close()
