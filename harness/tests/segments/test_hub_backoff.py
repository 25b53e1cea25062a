# SPDX-License-Identifier: Apache-2.0
"""How long a port on a hub waits after a collision, as far as its capture shows it."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.segments.hub.verify import _backing_off
from sundial.verify.frames import COLLISION, OUTBOUND
from sundial.verify.segment import contention_of_port
from sundial.verify.wires import _COLUMNS as COLUMNS
from tests import fates
from tests.segments.test_line_laws import segment
from tests.segments.wires import OUT, Frame, Tape

SLOT_NS = 51_200


def spans(*events: tuple[int, str], port: str = "a:eth0") -> list[list[int]]:
    """`events`: when, and whether the port `a:eth0` sent or collided."""
    rows = [
        {
            "time_ns": at,
            "fate": COLLISION if what == "collided" else None,
            "fate_adapter": "a:eth0" if what == "collided" else None,
            "direction": OUTBOUND,
            "interface": "a:eth0" if what == "sent" else "lan:fate",
        }
        for at, what in events
    ]
    return [list(span) for span in _backing_off(pl.DataFrame(rows, infer_schema_length=None), port, SLOT_NS).tolist()]


@pytest.mark.parametrize(("attempts", "slots"), [(1, 2), (2, 4), (10, 1024), (13, 1024)])
def test_the_range_doubles_with_each_collision_of_a_frame(attempts: int, slots: int) -> None:
    collided = [(at * 1000, "collided") for at in range(attempts)]
    last = (attempts - 1) * 1000
    assert spans(*collided)[-1] == [last, last + slots * SLOT_NS]


def test_it_ends_with_the_next_attempt_and_begins_again_with_the_next_frame() -> None:
    found = spans((0, "collided"), (5, "collided"), (90, "sent"), (100, "collided"))
    assert found == [[0, 5], [5, 90], [100, 100 + 2 * SLOT_NS]]


def test_other_ports_do_not_wait() -> None:
    assert spans((0, "collided"), (9, "sent"), port="b:eth0") == []


def test_a_port_behind_a_machine_backs_off_by_what_its_wire_says() -> None:
    """A wire has few columns of fates."""
    tape, frame = Tape(["a:eth0", "b:eth0"]), Frame(1000, 0, 100, 7)
    tape.fate(1000, fates.collision("a:eth0", 1, 96), frame)
    tape.add(90_000, 0, OUT, frame)
    wire = tape.wire()
    frames = wire.frames.select(name for name in wire.frames.columns if name in COLUMNS)
    written = segment("hub", wire.ports, rate="10 Mbit/s")
    own, other = (contention_of_port(written, port, frames) for port in wire.ports)
    assert own is not None
    assert other is not None
    assert own.busy_ns(1000, 90_000) == 89_000
    assert other.busy_ns(1000, 90_000) < 89_000
