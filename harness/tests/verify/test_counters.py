# SPDX-License-Identifier: Apache-2.0
"""The capture against the fabric's counters and the kernel's count of TCP segments sent again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.verify import Verification, verify_run
from sundial.verify.counters import _cut
from sundial.verify.law import Counted, Law
from tests.verify.bed import CLIENT, IN, OUT, RPC_PORT, SERVER, SYN, Bed, Stream, rpc_call
from tests.verify.seal import seal


def run(directory: Path) -> Bed:
    """Two calls, one of them sent twice since the wire lost its first request."""
    bed = Bed(directory / "run")
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    bed.udp_call(16, 1)
    start = bed.now
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(2, 16, number=bed.calls)), lose=(0,))
    bed.udp_call(16, 2)
    bed.lines.pop()
    bed.calls -= 1
    bed.sample(start, 2, retransmits=1)
    return bed


def counters(folder: Path) -> tuple[Path, dict[str, Any]]:
    path = folder / "wire" / "counters.json"
    return path, json.loads(path.read_text())


@pytest.mark.parametrize(
    ("port", "name", "value", "problem"),
    [
        ("client:eth0", "dropped", {}, ("lan dropped frames", "0 by wire/counters.json", "1 in the capture")),
        ("server:eth0", "corrupted", 2, ("lan corrupted frames", "2 by wire/counters.json", "0 in the capture")),
        ("server:eth0", "collisions", 1, ("lan collision frames", "1 by wire/counters.json", "0 in the capture")),
    ],
)
def test_a_counter_that_differs_is_named(
    tmp_path: Path, port: str, name: str, value: object, problem: tuple[str, str, str]
) -> None:
    """Where no law of a wire counts port by port; recorded runs have laws."""
    folder = run(tmp_path).write()
    path, document = counters(folder)
    document["segments"]["lan"]["ports"][port][name] = value
    path.write_text(json.dumps(document))
    (only,) = verify_run(seal(folder)).problems
    assert (only["field"], only["expected"], only["seen"]) == problem


def test_sound_counters_pass_and_a_frame_lost_by_the_capture_is_noticed(tmp_path: Path) -> None:
    """An acknowledgement gone at both ends balances, and is not a call's: the fabric's count alone tells."""
    bed = Bed(tmp_path / "run")
    stream = Stream(bed, 800, RPC_PORT, {CLIENT: 1, SERVER: 2})
    stream.open()
    bed.batch("echo-client", "tcp", 16, RPC_PORT, 800)
    stream.call(16, 1, [64], [48])
    bed.send(CLIENT, [stream.frame(CLIENT, 0x10, 64)])
    folder = bed.write()
    assert verify_run(seal(folder)).problems == []
    document = counters(folder)[1]
    for direction in (OUT, IN):
        place = max(place for place, record in enumerate(bed.records) if record.direction == direction)
        del bed.records[place]
    bed.directory = tmp_path / "damaged"
    path = bed.write() / "wire" / "counters.json"
    path.write_text(json.dumps(document))
    fields = [problem["field"] for problem in verify_run(seal(tmp_path / "damaged")).problems]
    assert fields == [f"lan {name}" for name in (
        "client:eth0 tx_frames", "client:eth0 tx_bytes", "server:eth0 rx_frames", "server:eth0 rx_bytes"
    )]  # fmt: skip


@pytest.mark.parametrize(("sent", "room"), [(5, 1), (6, 2), (9, 4)])
def test_a_port_may_have_received_what_another_sent_behind_the_end(sent: int, room: int) -> None:
    """One frame was on its way to it; others were sent so late that the capture has neither end of them."""
    laws = {"lan": Law(cut={"a:eth0": (3, 0), "b:eth0": (3, 1)})}
    captured = {"lan a:eth0 tx_frames": 5, "lan b:eth0 rx_frames": 4}
    numbers = {"lan a:eth0 tx_frames": sent, "lan b:eth0 rx_frames": 9}
    assert _cut(Counted(laws), numbers, captured)["lan b:eth0 rx_frames"] == room


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"segments": {"lan": 5}}', '{"segments": {"lan": {"ports": {"a": {}}}}}']
)
def test_counters_that_cannot_be_read_are_named(tmp_path: Path, text: str) -> None:
    folder = run(tmp_path).write()
    counters(folder)[0].write_text(text)
    with pytest.raises(BadInput, match=r"wire/counters\.json") as error:
        verify_run(seal(folder))
    assert "\n" not in str(error.value)


def tcp(directory: Path, counted: int, again: int, ok: bool = True, lost_syns: int = 0) -> Verification:
    """Two calls over TCP of which `again` segments were lost and repeated, and a kernel that counted `counted`."""
    bed = Bed(directory / "run")
    stream = Stream(bed, 800, RPC_PORT, {CLIENT: 1, SERVER: 2})
    for _ in range(lost_syns):
        bed.send(CLIENT, [stream.frame(CLIENT, SYN, -1, syn=True)], lose=(0,))
    stream.open()
    bed.batch("echo-client", "tcp", 4000, RPC_PORT, 800)
    bed.lines[-1] = json.dumps({**json.loads(bed.lines[-1]), "tcp_retransmits": counted})
    stream.call(4000, 1, [1448, 1448, 1152], [1448, 1448, 1136], request=tuple(range(again)), reply=(1,))
    stream.call(4000, 2, [1448, 1448, 1152], [1448, 1448, 1136])
    if not ok:
        bed.lines[-1] = bed.lines[-1].replace(", 1, 0, 2, null]", ', 0, 0, 2, "timed out"]')
    stream.close()
    return verify_run(bed.write())


@pytest.mark.parametrize("again", [0, 1, 3])
def test_tcp_segments_sent_again_are_those_the_kernel_counted(tmp_path: Path, again: int) -> None:
    assert tcp(tmp_path, again, again).problems == []


@pytest.mark.parametrize(("counted", "found"), [(0, 1), (1, 0), (2, 0), (3, 1)])
def test_a_kernel_may_count_a_syn_that_is_sent_again_in_a_batch(tmp_path: Path, counted: int, found: int) -> None:
    fields = [problem["field"] for problem in tcp(tmp_path, counted, again=1, lost_syns=1).problems]
    assert fields == ["batch.tcp_retransmits"] * found


def test_a_batch_that_may_have_taken_several_connections_is_not_compared(tmp_path: Path) -> None:
    assert tcp(tmp_path, 0, 1, ok=False).problems == []
