# SPDX-License-Identifier: Apache-2.0
"""Captures of real traffic, sound and damaged."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.verify import Verification, verify_pcap, verify_run
from tests.verify.real import GOLDEN, write_run
from tests.verify.seal import seal

PORT = 20049


def problems(result: Verification) -> list[dict[str, Any]]:
    """Without contents: these programs are not the workload's; their RPC number and their payloads are others."""
    return [problem for problem in result.problems if "content" not in problem["field"].split(".")]


def test_a_real_run_passes(tmp_path: Path) -> None:
    result = verify_run(write_run(tmp_path / "run"))
    assert problems(result) == []
    assert (result.calls, result.classified["binding"]) == (18, 8)
    # 11 calls over UDP were sent (8757 bytes was refused), 7 over TCP; the sizes were chosen at the edges.
    assert {group["size"] for group in result.groups} >= {1428, 1429, 1400, 1401, 3952, 3953, 8757}


def test_a_guests_clock_need_not_begin_with_the_captures(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    document = json.loads((run / "run.json").read_text())
    for node in document["nodes"].values():
        node["zero_ns"] += 900_000_000
    (run / "run.json").write_text(json.dumps(document))
    result = verify_run(seal(run))
    assert problems(result) == []
    assert result.classified["binding"] == 8


@pytest.mark.parametrize(
    ("file", "protocol", "mtu", "calls", "fragments"),
    [
        ("run.client.pcapng", "sunrpc-udp", 1500, 10, 6),
        ("run.server.pcapng", "sunrpc-udp", 1500, 10, 6),
        ("run.client.pcapng", "sunrpc-tcp", 1500, 7, 0),
        ("small.client.pcapng", "sunrpc-udp", 576, 3, 8),
        ("small.client.pcapng", "sunrpc-tcp", 576, 4, 0),
    ],
)
def test_real_captures_pass(file: str, protocol: str, mtu: int, calls: int, fragments: int) -> None:
    result = verify_pcap(GOLDEN / file, protocol=protocol, mtu=mtu, port=PORT)
    assert result.problems == []
    assert (result.verdict, result.calls, result.fragments) == ("pass", calls, fragments)
    assert verify_pcap(GOLDEN / file, protocol=protocol, mtu=mtu) == result, "the port is found by itself"
    learned = verify_pcap(GOLDEN / file, protocol=protocol)
    assert replace(learned, remarks=result.remarks) == result, "and so is the MTU"


def test_another_mtu_does_not_fit() -> None:
    wrong = verify_pcap(GOLDEN / "small.client.pcapng", protocol="sunrpc-udp", mtu=1500, port=PORT)
    assert {problem["field"] for problem in wrong.problems} == {"request.fragments", "reply.fragments"}


def blocks(data: bytes) -> list[bytes]:
    offset, found = 0, []
    while offset < len(data):
        (total,) = struct.unpack_from("<I", data, offset + 4)
        found.append(data[offset : offset + total])
        offset += total
    return found


def frame_places(parts: list[bytes]) -> list[int]:
    return [place for place, part in enumerate(parts) if part[:4] == b"\x06\x00\x00\x00"]


def removed(parts: list[bytes], place: int) -> list[bytes]:
    return parts[:place] + parts[place + 1 :]


def doubled(parts: list[bytes], place: int) -> list[bytes]:
    return parts[: place + 1] + parts[place:]


def shortened(parts: list[bytes], place: int) -> list[bytes]:
    """The frame ends eight bytes early, as if it had been cut on the wire."""
    part = bytearray(parts[place])
    captured, original = struct.unpack_from("<II", part, 20)
    struct.pack_into("<II", part, 20, captured - 8, original - 8)
    return [*parts[:place], bytes(part), *parts[place + 1 :]]


def flipped(parts: list[bytes], place: int) -> list[bytes]:
    """One bit of the IP length."""
    part = bytearray(parts[place])
    part[28 + 14 + 3] ^= 8
    return [*parts[:place], bytes(part), *parts[place + 1 :]]


Damage = Callable[[list[bytes], int], list[bytes]]


@pytest.mark.parametrize("damage", [removed, shortened, flipped])
@pytest.mark.parametrize("file", ["small.client.pcapng"])
def test_damage_to_each_frame_of_a_call_is_caught(tmp_path: Path, damage: Damage, file: str) -> None:
    parts = blocks((GOLDEN / file).read_bytes())
    places = frame_places(parts)
    sound = verify_pcap(GOLDEN / file, protocol="sunrpc-udp", mtu=576, port=PORT)
    udp = [number for number, place in enumerate(places, 1) if parts[place][28 + 23] == 17]
    assert sound.packets == len(udp)
    for number in udp:
        target = tmp_path / f"{damage.__name__}-{number}.pcapng"
        target.write_bytes(b"".join(damage(parts, places[number - 1])))
        result = verify_pcap(target, protocol="sunrpc-udp", mtu=576, port=PORT)
        assert result.verdict == "fail", number
        if damage is not removed:
            assert any(number in problem["frames"] for problem in result.problems), number


@pytest.mark.parametrize("damage", [removed, shortened])
def test_damage_to_tcp_is_caught(tmp_path: Path, damage: Damage) -> None:
    parts = blocks((GOLDEN / "small.client.pcapng").read_bytes())
    places = frame_places(parts)
    data = [place for place in places if parts[place][28 + 23] == 6 and len(parts[place]) > 200]
    for place in (data[0], data[len(data) // 2], data[-1]):
        target = tmp_path / f"{place}.pcapng"
        target.write_bytes(b"".join(damage(parts, place)))
        assert verify_pcap(target, protocol="sunrpc-tcp", mtu=576, port=PORT).verdict == "fail"


def test_a_doubled_frame_in_a_run_is_caught(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    capture = run / "wire" / "lan.pcapng"
    parts = blocks(capture.read_bytes())
    places = frame_places(parts)
    for number in (20, 60, 110):
        capture.write_bytes(b"".join(doubled(parts, places[number - 1])))
        assert problems(verify_run(seal(run))), number


def test_a_cut_file_is_refused_with_its_offset(tmp_path: Path) -> None:
    target = tmp_path / "cut.pcapng"
    target.write_bytes((GOLDEN / "small.client.pcapng").read_bytes()[:-3])
    with pytest.raises(BadInput, match=r"cut\.pcapng: truncated block at byte \d+"):
        verify_pcap(target, protocol="sunrpc-udp")


def test_what_holds_no_such_calls_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "copy.pcapng"
    shutil.copy(GOLDEN / "small.client.pcapng", target)
    with pytest.raises(BadInput, match="port 7"):
        verify_pcap(target, protocol="sunrpc-udp", port=7)
    with pytest.raises(BadInput, match="holds no raw over udp"):
        verify_pcap(target, protocol="raw-udp")
    with pytest.raises(BadInput, match="sunrpc-sctp"):
        verify_pcap(target, protocol="sunrpc-sctp")
