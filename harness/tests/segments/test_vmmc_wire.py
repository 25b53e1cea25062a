# SPDX-License-Identifier: Apache-2.0
"""The tables that wiregen.py wrote: up to date, and against packets packed by hand."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

from sundial.segments.vmmc import wire
from tests.verify import vmmc_bed

WIREGEN = Path(__file__).parents[3] / "guest-apps" / "sss-core" / "wiregen.py"
VALUES = (1, 0x12, 0x13, 0x14, 0x1516, 0x1718, *(0x20212223 + 0x01010101 * place for place in range(6)))


def read(data: bytes, fields: dict[str, wire.Field]) -> tuple[int, ...]:
    return tuple(int.from_bytes(data[field.bytes], "little") for field in fields.values())


def test_generated_files_are_what_the_tables_say() -> None:
    done = subprocess.run([sys.executable, str(WIREGEN), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_fields_are_where_a_header_packed_by_hand_has_them() -> None:
    packed = vmmc_bed.HEADER.pack(*VALUES)
    assert len(packed) == wire.HEADER
    assert read(packed, dict(wire.FIELDS)) == VALUES


def test_fields_are_where_a_message_packed_by_hand_has_them() -> None:
    packed = vmmc_bed.control(1, 2, "n", 3, 4, 5, 6, 7, 8)
    assert len(packed) == wire.MESSAGE_BYTES == struct.calcsize(wire.MESSAGE_FORMAT)
    assert read(packed, dict(wire.MESSAGE_FIELDS)) == (1, 2, 3, ord("n"), 4, 5, 6, 7, 8)


def test_numbers_are_those_of_the_bed() -> None:
    names = [*wire.MESSAGES.values(), "AU", "DU", "CONTROL", "NACK", "GAP", "PAGE_END", "FULL", "TIMER", "UNCOMBINED"]
    assert [getattr(wire, name) for name in names] == [getattr(vmmc_bed, name) for name in names]
