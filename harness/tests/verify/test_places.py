# SPDX-License-Identifier: Apache-2.0
"""What else is on the wires: other stations, a guest between two segments, bindings, iperf3, ARP."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from sundial.model.scenario import Scenario
from sundial.model.topology import Topology
from sundial.verify import verify_run
from tests.verify.bed import (
    CLIENT,
    IN,
    MAC,
    OUT,
    PROGRAM,
    RPC_PORT,
    SERVER,
    Bed,
    Record,
    capture,
    counters,
    rpc_call,
    rpc_reply,
)
from tests.verify.seal import seal


def change_run(path: Path, **changes: object) -> None:
    file = path / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def sound(directory: Path, size: int = 2000) -> Bed:
    bed = Bed(directory / "run")
    bed.batch("echo-client", "udp", size, RPC_PORT, 700)
    for xid in (1, 2):
        bed.udp_call(size, xid)
    return bed


def mac(address: str, place: int) -> str:
    return MAC.get(address.removesuffix("/24"), bytes.fromhex("0253440000f0")[:5] + bytes([0xF0 + place])).hex(":")


def node(segments: dict[str, str]) -> dict[str, object]:
    items = [
        {"device": f"eth{place}", "mac": mac(address, place), "address": address, "segment": segment, "mtu": 1500}
        for place, (segment, address) in enumerate(segments.items())
    ]
    return {"zero_ns": 0, "interfaces": items}


def test_another_station_of_a_hub_sees_everything(tmp_path: Path) -> None:
    bed = sound(tmp_path)
    run = bed.write()
    names = ["client:eth0", "server:eth0", "lan:fate", "third:eth0"]
    more = [Record(record.at + 1, 3, IN, record.frame) for record in bed.records if record.direction == OUT]
    (run / "wire" / "lan.pcapng").write_bytes(capture(names, bed.records + more))
    ports = ["client:eth0", "server:eth0", "lan:none", "third:eth0"]
    (run / "wire" / "counters.json").write_text(counters({"lan": (ports, bed.records + more)}))
    nodes = json.loads((run / "run.json").read_text())["nodes"]
    change_run(run, nodes={**nodes, "third": node({"lan": "10.0.0.3/24"})})
    result = verify_run(seal(run))
    assert result.problems == []
    assert result.classified == {"call": 16, "passing": 8}


PROPAGATION_NS = 25
FORWARDED_NS = 1_000


def arrival(at: int, frame: bytes) -> int:
    """When the last bit of a frame, with preamble and FCS, is at the other end of a link of 100 Gbit/s."""
    bits = 8 * (8 + max(60, len(frame)) + 4)
    return at + -(-bits // 100) + PROPAGATION_NS


def joined_by_a_bridge(netem: str) -> dict[str, object]:
    """The topology as a run writes it: everything resolved."""
    ends = {"client": ("near", f"{CLIENT}/24"), "server": ("far", f"{SERVER}/24")}
    hosts = {
        name: {"interfaces": {"eth0": {"address": address, "static_arp": True}}} for name, (_, address) in ends.items()
    }
    sides = {f"eth{place}": {"mac": mac("", place), "netem": netem} for place in (0, 1)}
    segments = {
        "near": {"kind": "link", "rate": "100 Gbit/s", "ports": ["client:eth0", "between:eth0"]},
        "far": {"kind": "link", "rate": "100 Gbit/s", "ports": ["server:eth0", "between:eth1"]},
    }
    for segment in segments.values():
        segment["propagation"] = f"{PROPAGATION_NS} ns"
    machines = {**hosts, "between": {"role": "bridge", "interfaces": sides}}
    written = {"name": "joined", "description": "two links and a bridge", "machines": machines, "segments": segments}
    topology = Topology.model_validate(written)
    return {**topology.model_dump(mode="json", exclude_none=True), "clock": "virtual"}


def resolved_scenario() -> dict[str, object]:
    """A scenario as a run writes it: next to a topology, verify asks for a whole one."""
    echo = {"app": "sunrpc", "transports": ["udp"], "procedures": ["echo"], "sizes": [16], "calls": 2}
    scenario = Scenario.model_validate(
        {"name": "test", "description": "echo over a bridge", "topology": "joined", "workloads": [echo]}
    )
    return scenario.model_dump(mode="json", exclude_none=True, exclude={"seed", "scale", "vary", "default_scale"})


def flipped(frame: bytes, bits: tuple[int, ...]) -> bytes:
    number = int.from_bytes(frame, "little")
    for bit in bits:
        number ^= 1 << bit
    return number.to_bytes(len(frame), "little")


def two_segments(
    bed: Bed,
    swallow: int | None = None,
    twice: int | None = None,
    flip: tuple[int, ...] = (),
    netem: str = "loss 1% duplicate 1%",
) -> Path:
    """The same run with a guest that joins `near` and `far`; it swallows or doubles the n-th frame that is sent.
    `flip`: that frame's number, and bits that the guest flips in it."""
    run = bed.write()
    near, far, sent = [], [], 0
    for record in bed.records:
        if record.direction == OUT:
            here, there = (near, far) if record.interface == 0 else (far, near)
            copies = {swallow: 0, twice: 2}.get(sent, 1)
            here += [
                Record(record.at, 0, OUT, record.frame),
                Record(arrival(record.at, record.frame), 1, IN, record.frame),
            ]
            for copy in range(copies):
                at = record.at + FORWARDED_NS + 200 * copy
                frame = flipped(record.frame, flip[1:]) if flip[:1] == (sent,) else record.frame
                there += [Record(at, 1, OUT, frame), Record(arrival(at, frame), 0, IN, frame)]
            sent += 1
    (run / "wire" / "lan.pcapng").unlink()
    (run / "wire" / "near.pcapng").write_bytes(capture(["client:eth0", "between:eth0", "near:fate"], near))
    (run / "wire" / "far.pcapng").write_bytes(capture(["server:eth0", "between:eth1", "far:fate"], far))
    ends = {"near": (["client:eth0", "between:eth0"], near), "far": (["server:eth0", "between:eth1"], far)}
    (run / "wire" / "counters.json").write_text(counters(ends))
    change_run(
        run,
        captures={"wire/near.pcapng": "", "wire/far.pcapng": ""},
        nodes={
            "client": node({"near": f"{CLIENT}/24"}),
            "server": node({"far": f"{SERVER}/24"}),
            "between": node({"near": "", "far": ""}),
        },
        topology=joined_by_a_bridge(netem),
        scenario=resolved_scenario(),
    )
    return seal(run)


def test_a_guest_may_stand_between_two_segments(tmp_path: Path) -> None:
    result = verify_run(two_segments(sound(tmp_path)))
    assert result.problems == []
    assert result.classified == {"call": 16, "passing": 16}


def test_what_the_guest_between_swallows_or_doubles_is_explained(tmp_path: Path) -> None:
    assert verify_run(two_segments(repeated(tmp_path / "a"), swallow=4)).problems == []
    doubled = verify_run(two_segments(sound(tmp_path / "b", size=16), twice=3))
    assert doubled.problems == []


def repeated(directory: Path) -> Bed:
    """Two calls, and a third whose request, frame 4, goes twice."""
    bed = sound(directory, size=16)
    start = bed.now
    for _ in range(2):
        bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(9, 16, number=bed.calls)))
    bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, 700), rpc_reply(9, 16, number=bed.calls)))
    bed.sample(start, 9, retransmits=1)
    return bed


TARGET_MAC, IP_SOURCE, UDP_TARGET_PORT, XID, CONTENT = 1, 27, 36, 42, 90


@pytest.mark.parametrize("octet", [TARGET_MAC, IP_SOURCE, UDP_TARGET_PORT, XID, CONTENT])
def test_no_receiver_takes_what_the_guest_between_corrupted(tmp_path: Path, octet: int) -> None:
    result = verify_run(two_segments(repeated(tmp_path), flip=(4, 8 * octet + 3), netem="corrupt 1%"))
    assert result.problems == []
    assert result.classified["corrupted"] == 2


def test_the_guest_between_corrupts_one_bit_where_its_netem_says_so(tmp_path: Path) -> None:
    bit = 8 * CONTENT + 3
    two = verify_run(two_segments(repeated(tmp_path / "a"), flip=(4, bit, bit + 1), netem="corrupt 1%"))
    never = verify_run(two_segments(repeated(tmp_path / "b"), flip=(4, bit), netem="loss 1%"))
    assert "frame sent by between" in {each["field"] for each in two.problems}
    assert "frame sent by between" in {each["field"] for each in never.problems}


def test_a_request_that_the_guest_between_corrupted_has_no_answer(tmp_path: Path) -> None:
    result = verify_run(two_segments(sound(tmp_path, size=16), flip=(2, 8 * CONTENT), netem="corrupt 1%"))
    assert {(p["field"], p["call"]["xid"]) for p in result.problems} == {("reply.count", 2), ("request.received", 2)}


def test_a_reply_that_the_guest_between_swallowed_fails_the_call(tmp_path: Path) -> None:
    result = verify_run(two_segments(sound(tmp_path, size=16), swallow=3))
    assert [(p["field"], p["call"]["xid"]) for p in result.problems] == [("reply.received", 2)]


def getport(bed: Bed, xid: int, words: int = 4) -> None:
    """A port mapper call (RFC 1833 section 3) and its reply, with the line of the binding."""
    start = bed.now - 1
    call = struct.pack(">10I", xid, 0, 2, 100000, 2, 3, 0, 0, 0, 0)
    call += struct.pack(">5I", PROGRAM, 1, 17, 0, 0)[: 4 * words]
    reply = struct.pack(">7I", xid, 1, 0, 0, 0, 0, RPC_PORT)
    bed.send(CLIENT, bed.datagram(CLIENT, (650, 111), call))
    bed.send(SERVER, bed.datagram(SERVER, (111, 650), reply))
    line = {"type": "binding", "step": 0, "transport": "udp", "start": start, "end": bed.now - 1, "ok": True}
    bed.lines.append(json.dumps({**line, "attempts": 1, "sent": 1, "port": RPC_PORT}))


def test_a_binding_ends_when_its_reply_has_come(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    getport(bed, 50)
    bed.lines[0] = json.dumps({**json.loads(bed.lines[0]), "end": 10**9})
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    bed.udp_call(16, 1)
    assert {problem["field"] for problem in verify_run(bed.write()).problems} == {"binding.end"}


def test_a_binding_begins_after_the_calls_before(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    bed.udp_call(16, 1)
    begun = json.loads(bed.lines[-1])[1]
    getport(bed, 50)
    bed.lines[-1] = json.dumps({**json.loads(bed.lines[-1]), "step": 1, "start": begun + 1})
    assert "binding.start" in {problem["field"] for problem in verify_run(bed.write()).problems}


def test_a_binding_explains_its_exchange(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    getport(bed, 50)
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    bed.udp_call(16, 1)
    result = verify_run(bed.write())
    assert result.problems == []
    assert result.classified["binding"] == 4


@pytest.mark.parametrize("answered", [False, True])
def test_a_question_may_come_after_its_binding_but_is_not_asked_after_it(tmp_path: Path, answered: bool) -> None:
    bed = Bed(tmp_path / "run")
    getport(bed, 50)
    question = next(record for record in bed.records if record.direction == OUT)
    (frame,) = bed.datagram(CLIENT, (650, 111), question.frame[42:])
    again, came = (
        Record(bed.now if answered else question.at + 1_000, 0, OUT, frame),
        Record(bed.now + 2_000, 1, IN, frame),
    )
    if not answered:
        bed.lines[0] = json.dumps({**json.loads(bed.lines[0]), "sent": 2})
    bed.records += [again, came]
    bed.now += 10_000
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    bed.udp_call(16, 1)
    fields = [problem["field"] for problem in verify_run(bed.write()).problems]
    assert fields == (["frame without a call"] if answered else [])


@pytest.mark.parametrize("drop", ["line", "frames", "words"])
def test_bindings_and_exchanges_belong_together(tmp_path: Path, drop: str) -> None:
    bed = Bed(tmp_path / "run")
    getport(bed, 50, words=5 if drop == "words" else 4)
    if drop == "line":
        bed.lines.clear()
    if drop == "frames":
        bed.records.clear()
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    bed.udp_call(16, 1)
    fields = {problem["field"] for problem in verify_run(bed.write()).problems}
    expected = {
        "line": {"frame without a call"},
        "frames": {"binding.exchange", "binding.attempts", "binding.sent"},
        "words": {"binding.request.length", "binding.request.content"},
    }
    assert fields == expected[drop]


def test_under_the_real_clock_a_binding_keeps_its_frames_from_the_next_one(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    getport(bed, 50)
    bed.now += 20_000_000  # the clocks may be this far apart, but the second binding begins later than that
    getport(bed, 51)
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    bed.udp_call(16, 1)
    run = bed.write()
    change_run(run, clock="real")
    result = verify_run(seal(run))
    assert result.problems == []
    assert result.classified["binding"] == 8


def arp() -> bytes:
    """The client asks for the server."""
    head = b"\xff" * 6 + MAC[CLIENT] + b"\x08\x06" + struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1)
    return head + MAC[CLIENT] + bytes(map(int, CLIENT.split("."))) + bytes(6) + bytes(map(int, SERVER.split(".")))


def test_arp_is_counted_and_anything_else_is_a_mismatch(tmp_path: Path) -> None:
    bed = sound(tmp_path)
    bed.send(CLIENT, [arp()])
    bed.send(CLIENT, [b"\xff" * 6 + MAC[CLIENT] + b"\x88\xcc" + bytes(46)])
    result = verify_run(bed.write())
    assert result.classified["arp"] == 2
    assert [problem["field"] for problem in result.problems] == ["eth.type", *["frame without a call"] * 2]


def test_iperf3_traffic_needs_a_test_that_a_client_tells_of(tmp_path: Path) -> None:
    bed = sound(tmp_path)
    bed.send(CLIENT, bed.datagram(CLIENT, (40_000, 5201), bytes(1000)))
    run = bed.write()
    assert verify_run(seal(run)).mismatches == 2
    job = {"steps": [{"app": "iperf3-client", "options": {}}]}
    (run / "nodes" / "client" / "job.json").write_text(json.dumps(job))
    fields = [problem["field"] for problem in verify_run(seal(run)).problems]
    assert fields == ["iperf3 client steps", *["frame without a call"] * 2]
