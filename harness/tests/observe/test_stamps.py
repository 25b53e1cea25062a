# SPDX-License-Identifier: Apache-2.0
"""Times, directions and comments of frames, against what tshark reads in the same file."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.observe import open_capture
from sundial.observe.stamps import options, stamps
from sundial.observe.tshark import dissect

FRAME = bytes(range(15))
SECONDS = 946_684_800
FIELDS = ("frame.time_epoch", "frame.packet_flags_direction", "frame.comment")


def capture(order: str, resolution: bytes | None, offset: int, first: int, frames: list[bytes]) -> bytes:
    """A section with one interface; `frames` are the options of each frame, whose ticks go on from `first`."""

    def option(code: int, value: bytes) -> bytes:
        return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)

    def block(kind: int, body: bytes) -> bytes:
        length = struct.pack(f"{order}I", 12 + len(body))
        return struct.pack(f"{order}I", kind) + length + body + length

    of_interface = option(9, resolution) if resolution else b""
    of_interface += option(14, struct.pack(f"{order}q", offset)) if offset else b""
    parts = [
        block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack(f"{order}HHI", 1, 0, 0) + of_interface + bytes(4)),
    ]
    for place, own in enumerate(frames):
        at = first + place
        head = struct.pack(f"{order}IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(FRAME), len(FRAME))
        parts.append(block(6, head + FRAME + b"\0" + own))
    return b"".join(parts)


def said(order: str, *comments: str, flags: int | None = None) -> bytes:
    parts = [struct.pack(f"{order}HH", 1, len(text)) + text.encode() + bytes(-len(text) % 4) for text in comments] + (
        [] if flags is None else [struct.pack(f"{order}HHI", 2, 4, flags)]
    )
    return b"".join(parts) + (bytes(4) if parts else b"")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("resolution", "per_second", "offset"),
    [
        (b"\x09", 10**9, 0), (None, 10**6, 0), (b"\x06", 10**6, 3600), (b"\x03", 10**3, 0), (b"\x0a", 10**10, 0),
        (b"\x9e", 2**30, 0), (b"\xa0", 2**32, -7),
    ],
)  # fmt: skip
def test_they_are_what_tshark_reads(
    tmp_path: Path, order: str, resolution: bytes | None, per_second: int, offset: int
) -> None:
    frames = [
        b"", said(order), said(order, flags=2), said(order, "lost: a to b", flags=1), said(order, "one", "two"),
        said(order, flags=0xFFFFFFFE),
    ]  # fmt: skip
    file = tmp_path / "stamped.pcapng"
    file.write_bytes(capture(order, resolution, offset, SECONDS * per_second + per_second * 5 // 7, frames))
    (shown,) = dissect([file.read_bytes()], FIELDS, name=file)
    opened = open_capture(file)
    (interface,) = opened.interfaces
    direction, comment, _ = options(opened, interface)
    times = stamps(opened, interface).to_list()
    opened.close()
    assert [f"{at // 10**9}.{at % 10**9:09d}" for at in times] == [
        text.partition(".")[0] + "." + text.partition(".")[2].ljust(9, "0")[:9] for text in shown[FIELDS[0]]
    ]
    assert direction.tolist() == [int(text or "0", 0) for text in shown[FIELDS[1]]]
    assert comment.to_list() == shown[FIELDS[2]].to_list()


def test_blocks_without_time_have_none(tmp_path: Path) -> None:
    simple = struct.pack("<III", 3, 32, len(FRAME)) + FRAME + b"\0" + struct.pack("<I", 32)
    file = tmp_path / "simple.pcapng"
    file.write_bytes(capture("<", b"\x09", 0, SECONDS * 10**9, [b""]) + simple)
    opened = open_capture(file)
    (interface,) = opened.interfaces
    assert stamps(opened, interface).to_list() == [SECONDS * 10**9, None]
    assert options(opened, interface)[0].tolist() == [0, 0]
    octets = opened.octets(interface)
    assert [octets.frame(0), octets.frame(1)] == [FRAME, FRAME]
    opened.close()


def test_an_option_beyond_its_block_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "long.pcapng"
    file.write_bytes(capture("<", b"\x09", 0, SECONDS * 10**9, [struct.pack("<HHI", 1, 40, 0)]))
    opened = open_capture(file)
    with pytest.raises(BadInput, match="block with an option that does not end in it at byte"):
        options(opened, opened.interfaces[0])
    opened.close()
