# SPDX-License-Identifier: Apache-2.0
"""A capture from one port's point of view."""

import io
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.errors import BadInput
from sundial.observe import open_capture
from sundial.observe.follow import ports, stream_view
from sundial.observe.view import PortView
from tests.fates import collision, corrupted, duplicated, given_up, lost
from tests.verify.bed import IN, OUT, Record, capture

A, B, FATE = range(3)
NAMES = ["client:eth0", "server:eth0", "lan:fate"]
UNKNOWN = 0
LOST = lost("client:eth0", "server:eth0")
DUPLICATED = duplicated("client:eth0", "server:eth0")
CORRUPTED = corrupted(3, 20, "client:eth0", "server:eth0")
FRAME = bytes(range(60))
FLIPPED = bytes([*range(20), 20 ^ 8, *range(21, 60)])


def seen(data: bytes, path: Path) -> list[tuple[str, str, str]]:
    """What tshark shows of a view: number in the whole capture, interface, comments."""
    path.write_bytes(data)
    fields = ["frame.packet_id", "frame.interface_name", "frame.comment"]
    words = [word for name in fields for word in ("-e", name)]
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "aggregator=;", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]  # type: ignore[misc]


def view(port: str, records: list[Record], names: list[str] = NAMES) -> bytes:
    return b"".join(PortView(port).take(capture(names, records))[0])


records = st.lists(
    st.builds(
        lambda at, interface, frame: Record(at, interface, OUT if interface != FATE else UNKNOWN, frame),
        st.integers(0, 10**9),
        st.sampled_from((A, B, FATE)),
        st.binary(max_size=70),
    ),
    max_size=12,
)


@given(records=records, port=st.sampled_from(NAMES[:2]))
def test_a_view_has_the_frames_of_its_port_with_their_times(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], port: str
) -> None:
    folder = tmp_path_factory.mktemp("view")
    (folder / "whole").write_bytes(capture(NAMES, records))
    (folder / "view").write_bytes(view(port, records))
    whole, alone = open_capture(folder / "whole"), open_capture(folder / "view")
    (shown,) = alone.interfaces
    there = whole.interfaces[NAMES.index(port)]
    assert (shown.name, shown.description) == (port, there.description)
    assert [alone.packet(each) for each in shown.each()] == [whole.packet(each) for each in there.each()]
    times = (alone.ticks(shown), whole.ticks(there))
    assert all(time is not None for time in times)
    assert times[0].tolist() == times[1].tolist()  # type: ignore[union-attr]


CASES = {
    "a frame that was lost": (
        [Record(0, A, OUT, FRAME), Record(5, FATE, UNKNOWN, FRAME, LOST)],
        [("1", "client:eth0", LOST)],
        [],
    ),
    "the latest of two equal frames was lost": (
        [
            Record(0, A, OUT, FRAME),
            Record(3, B, IN, FRAME),
            Record(5, A, OUT, FRAME),
            Record(5, FATE, UNKNOWN, FRAME, LOST),
        ],
        [("1", "client:eth0", ""), ("3", "client:eth0", LOST)],
        [("2", "server:eth0", "")],
    ),
    "a corrupted frame, at both ends": (
        [
            Record(0, A, OUT, FRAME),
            Record(5, FATE, UNKNOWN, FLIPPED, CORRUPTED),
            Record(9, B, IN, FLIPPED),
        ],
        [("1", "client:eth0", CORRUPTED)],
        [("3", "server:eth0", CORRUPTED)],
    ),
    "a duplicate is the second that arrives": (
        [
            Record(0, A, OUT, FRAME),
            Record(5, FATE, UNKNOWN, FRAME, DUPLICATED),
            Record(8, B, IN, FRAME),
            Record(9, B, IN, FRAME),
        ],
        [("1", "client:eth0", DUPLICATED)],
        [("3", "server:eth0", ""), ("4", "server:eth0", DUPLICATED)],
    ),
    "collisions come before the frame": (
        [
            Record(0, FATE, UNKNOWN, FRAME, collision("client:eth0", 1, 96)),
            Record(9, A, OUT, FRAME),
            Record(9, B, IN, FRAME),
        ],
        [("2", "client:eth0", collision("client:eth0", 1, 96))],
        [("3", "server:eth0", "")],
    ),
    "a frame that was given up leaves the next one alone": (
        [
            Record(0, FATE, UNKNOWN, FRAME, collision("client:eth0", 16, 96)),
            Record(1, FATE, UNKNOWN, FRAME, given_up("client:eth0")),
            Record(9, A, OUT, FRAME),
        ],
        [("3", "client:eth0", "")],
        [],
    ),
}


@pytest.mark.parametrize(("given", "at_client", "at_server"), CASES.values(), ids=CASES)
def test_comments_are_on_frames_of_the_port(
    tmp_path: Path, given: list[Record], at_client: list[tuple[str, ...]], at_server: list[tuple[str, ...]]
) -> None:
    assert seen(view("client:eth0", given), tmp_path / "client") == at_client
    assert seen(view("server:eth0", given), tmp_path / "server") == at_server


def test_a_pdu_is_known_without_its_header(tmp_path: Path) -> None:
    """The header of ERF differs: the lost one has a loss counter."""
    sent, lost = (bytes([mark]) * 16 + FRAME for mark in (1, 2))
    data = bytearray(capture(NAMES, [Record(0, A, OUT, sent), Record(1, FATE, UNKNOWN, lost, "dropped: 1 of 2 cells")]))
    for at in (28, 28 + 48):
        assert data[at] == 1
        data[at + 8 : at + 10] = (197).to_bytes(2, "little")
    found = b"".join(PortView("client:eth0").take(bytes(data))[0])
    assert b"dropped: 1 of 2 cells" in found


def test_a_loopback_is_seen_as_it_was_sent() -> None:
    names = ["client:lo", "client:lo"]
    given = [Record(0, 0, OUT, FRAME), Record(1, 1, IN, FRAME)]
    assert view("client:lo", given, names).count(FRAME) == 1


def test_a_capture_that_grows_is_followed_to_its_end(tmp_path: Path) -> None:
    path, data = tmp_path / "lan.pcapng", capture(NAMES, [Record(at, A, OUT, FRAME) for at in range(4)])
    path.write_bytes(data[:-100])
    with subprocess.Popen(["sleep", "60"]) as keeper:
        to = io.BytesIO()
        thread = threading.Thread(target=stream_view, args=(path, "client:eth0", to, keeper.pid))
        thread.start()
        with path.open("ab") as file:
            file.write(data[-100:])
        keeper.kill()
    thread.join()
    whole = io.BytesIO()
    stream_view(path, "client:eth0", whole, None)
    assert to.getvalue() == whole.getvalue()


def test_a_truncated_capture_is_refused(tmp_path: Path) -> None:
    path, data = tmp_path / "lan.pcapng", capture(NAMES, [Record(0, A, OUT, FRAME)])
    path.write_bytes(data[:-1])
    assert ports(path) == NAMES[:2]
    with pytest.raises(BadInput) as refused:
        stream_view(path, "client:eth0", io.BytesIO(), None)
    assert "truncated block at byte" in str(refused.value)
