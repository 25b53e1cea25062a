# SPDX-License-Identifier: Apache-2.0
"""When servers say what they have counted: some time after their last call, which a run may not have."""

from __future__ import annotations

from sundial.errors import SundialError
from sundial.observe.rundir import RunDirectory
from sundial.units import TIME

QUIET_NS = 250_000_000
"""200 ms without a call (guest-apps: `sundial_guest.serving`, echo-server.c), and what it takes to write the line."""
UNPROVEN = "what servers counted in a run whose scenario.linger is below 250 ms and ends before they say it"


def is_due(run: RunDirectory) -> bool:
    """Whether the run went on for so long after its last call that each server has said its counters."""
    scenario = run.document.get("scenario")
    if not isinstance(scenario, dict):
        return True
    try:
        return TIME.parse(scenario.get("linger")) >= QUIET_NS
    except SundialError:
        return True  # the plan says what is wrong with it
