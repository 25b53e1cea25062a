# SPDX-License-Identifier: Apache-2.0
"""What guests write of their loopback as captures: the kernel's blocks, packed by the layout of linux/if_packet.h."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from sundial import EPOCH_NS
from sundial.errors import GuestFault
from sundial.observe import open_capture
from sundial.observe.pcapng import Statistics, interface_statistics
from sundial.observe.stamps import options, stamps
from sundial.run.loopback import LOOPBACK, clocks_of, collect_loopbacks

SENT, RECEIVED = 4, 0
ZERO_NS = 5_000_000
BOOTED_NS = 1_700_000_000_000_000_000
"""What the kernel's clock shows when the TSC shows 0."""


def frame(at_ns: int, kind: int, octets: bytes) -> bytes:
    """A tpacket3_hdr, a sockaddr_ll and the frame, as long as the next one has to begin aligned to 8."""
    begin = 82
    step = begin + len(octets) + -(begin + len(octets)) % 8
    head = struct.pack("<6IHH", step, *divmod(BOOTED_NS + at_ns, 10**9), len(octets), len(octets), 8, begin, begin + 14)
    where = struct.pack("<HHiHBB8s", 17, 8, 1, 772, kind, 6, b"")
    return (head.ljust(48, b"\0") + where).ljust(begin, b"\0") + octets.ljust(step - begin, b"\0")


def block(number: int, frames: list[bytes], read_ns: int, dropped: int = 0, drift: int = 0) -> bytes:
    body = b"".join(frames)
    head = struct.pack("<6IQ", 3, 48, 1, len(frames), 48, 48 + len(body), number).ljust(48, b"\0")
    counted = (len(frames) + dropped, dropped, 48 + len(body))
    clocks = (read_ns + drift - 40, BOOTED_NS + read_ns, read_ns + drift + 40)
    return struct.pack("<8s6Q", b"SDLLOOP1", *clocks, *counted) + head + body


def directory(folder: Path, stream: bytes) -> Path:
    (folder / "wire").mkdir()
    (folder / "nodes" / "server").mkdir(parents=True)
    (folder / "nodes" / "server" / LOOPBACK).write_bytes(stream)
    interfaces = [{"device": "eth0", "segment": "spare"}, {"device": "lo", "segment": "loopback-server"}]
    document = {"nodes": {"server": {"zero_ns": ZERO_NS, "interfaces": interfaces}}}
    (folder / "run.json").write_text(json.dumps(document))
    return folder


def captured(folder: Path) -> list[tuple[str, int, int, bytes]]:
    """Interface, direction, time on the run's axis and octets of each frame, in the order of the file."""
    capture = open_capture(folder / "wire" / "loopback-server.pcapng")
    rows = []
    for interface in capture.interfaces:
        direction, _, plain = options(capture, interface)
        assert plain.all()
        for each, way, at in zip(interface.each(), direction, stamps(capture, interface), strict=True):
            rows.append((each[-1], interface.name, int(way), at - EPOCH_NS, capture.packet(each)))
    return [row[1:] for row in sorted(rows)]


FRAMES = [(ZERO_NS + 100, SENT, b"a" * 60), (ZERO_NS + 250, RECEIVED, b"a" * 60), (ZERO_NS + 900, SENT, b"b" * 65549)]
AS_CAPTURED = [
    ("server:lo", 2, 100, b"a" * 60),
    ("server:lo", 1, 250, b"a" * 60),
    ("server:lo", 2, 900, b"b" * 65549),
]


def test_frames_keep_their_octets_way_and_time(tmp_path: Path) -> None:
    stream = block(7, [frame(*each) for each in FRAMES[:2]], ZERO_NS + 500) + block(
        8, [frame(*FRAMES[2])], ZERO_NS + 950
    )
    collect_loopbacks(directory(tmp_path, stream))
    assert captured(tmp_path) == AS_CAPTURED
    assert interface_statistics(tmp_path / "wire" / "loopback-server.pcapng") == Statistics(3, 0)
    assert not (tmp_path / "nodes" / "server" / LOOPBACK).exists()


def test_what_the_kernel_dropped_is_told(tmp_path: Path) -> None:
    collect_loopbacks(directory(tmp_path, block(1, [frame(*FRAMES[0])], ZERO_NS + 500, dropped=2)))
    assert interface_statistics(tmp_path / "wire" / "loopback-server.pcapng") == Statistics(3, 2)


@pytest.mark.parametrize("kept", [56, 100, 300])
def test_a_block_that_was_cut_off_is_left_out_and_counted(tmp_path: Path, kept: int) -> None:
    whole = block(1, [frame(*each) for each in FRAMES[:2]], ZERO_NS + 500)
    cut = block(2, [frame(*FRAMES[2])], ZERO_NS + 950)[:kept]
    collect_loopbacks(directory(tmp_path, whole + cut))
    assert captured(tmp_path) == AS_CAPTURED[:2]
    assert interface_statistics(tmp_path / "wire" / "loopback-server.pcapng") == Statistics(3, 0)


def test_a_guest_that_wrote_nothing_has_an_empty_capture(tmp_path: Path) -> None:
    collect_loopbacks(directory(tmp_path, b""))
    assert captured(tmp_path) == []
    assert interface_statistics(tmp_path / "wire" / "loopback-server.pcapng") == Statistics(0, 0)


ONE = block(1, [frame(*FRAMES[0])], 500)
NONE = block(1, [], 500)


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (b"x" * 200, "no block at byte 0"),
        (block(1, [], 500) + block(3, [], 600), "block 3 behind block 1"),
        (ONE.replace(struct.pack("<II", 60, 60), struct.pack("<II", 59, 60)), "not whole"),
        (NONE.replace(struct.pack("<II", 1, 0), struct.pack("<II", 1, 9)), "behind its block"),
    ],
)  # fmt: skip
def test_what_no_guest_writes_is_the_guests_fault(tmp_path: Path, stream: bytes, words: str) -> None:
    with pytest.raises(GuestFault, match=words) as caught:
        collect_loopbacks(directory(tmp_path, stream))
    assert caught.value.machine == "server"


def test_stamps_are_moved_by_how_far_the_clocks_are_apart_by_then() -> None:
    # The kernel's clock gains 1 ns in 100; the second reading was interrupted.
    clocks = clocks_of([(1000, 1040, 1080), (3000, 9000, 9900), (11_000, 11_140, 11_080)])
    assert [clocks.ahead_ns(at) for at in (0, 1040, 6090, 11_140)] == [10, 0, -50, -100]


def test_clocks_that_do_not_run_evenly_are_the_guests_fault(tmp_path: Path) -> None:
    stream = b"".join(block(n, [], 500 * n, drift=50 * (n == 2)) for n in (1, 2, 3))
    with pytest.raises(GuestFault, match="do not run evenly"):
        collect_loopbacks(directory(tmp_path, stream))
