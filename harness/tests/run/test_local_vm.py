# SPDX-License-Identifier: Apache-2.0
"""A booted guest that is its own client: its capture is whole, proves every call, and repeats to the byte."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.observe.pcapng import ENHANCED, interface_statistics
from sundial.verify import verify_run
from tests.run.live import require_guests
from tests.run.served import passed
from tests.verify.seal import seal

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

SCENARIO = """\
description: every kind of workload over sockets, between two programs of one machine
topology: one-host
seed: 3
linger: 300 ms
workloads:
  - {app: sunrpc, clients: server, transports: [udp, tcp], procedures: [echo], sizes: [0, 1000, 8192], calls: 3}
  - {app: raw, clients: server, transports: [udp], sizes: [0, 16, 65507], calls: 3}
  - {app: raw, clients: server, transports: [tcp], sizes: [16, 32741, 65483, 200000], calls: 3}
  - {app: dce, clients: server, procedures: [echo], sizes: [16, 40000], calls: 3}
"""
CALLS = 4 * (2 * 3 + 3 + 4 + 2)
CAPTURE = "wire/loopback-server.pcapng"


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run's directory, and what the command said."""
    require_guests()
    return once(tmp_path_factory.mktemp("local"))


def once(folder: Path) -> tuple[Path, str]:
    scenario = folder / "calls.yaml"
    scenario.write_text(SCENARIO)
    return folder / "run", passed(scenario, folder / "run")


def test_every_call_is_proven_by_what_the_guest_captured(made: tuple[Path, str]) -> None:
    directory, output = made
    assert f"{CALLS} calls, 0 mismatches" in output
    verdict = json.loads((directory / "verify.json").read_text())
    statistics = interface_statistics(directory / CAPTURE)
    assert statistics is not None
    assert statistics.dropped == 0
    assert statistics.received == verdict["frames"] > 4 * CALLS
    assert not (directory / "nodes" / "server" / "loopback.bin").exists()
    assert any(line.startswith("loopback: checksums") for line in verdict["unproven"])


@pytest.mark.night
def test_a_run_repeats_to_the_byte(made: tuple[Path, str], tmp_path: Path) -> None:
    again, _ = once(tmp_path)
    for name in (CAPTURE, "wire/spare.pcapng", "nodes/server/samples.jsonl", "nodes/server/console.log"):
        digests = {hashlib.sha256((each / name).read_bytes()).hexdigest() for each in (made[0], again)}
        assert len(digests) == 1, name


def packets(capture: bytes) -> list[tuple[int, int]]:
    """Where the blocks of frames are, and how long."""
    at, found = 0, []
    while at < len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        found += [(at, length)] if kind == ENHANCED else []
        at += length
    return found


def longest(capture: bytes) -> tuple[int, int]:
    return max(packets(capture), key=lambda block: block[1])


def changed(capture: bytes) -> bytes:
    """With one wrong byte in the payload of a frame."""
    at, _ = longest(capture)
    place = at + 28 + 200
    return capture[:place] + bytes([capture[place] ^ 1]) + capture[place + 1 :]


def missing(capture: bytes) -> bytes:
    """Without one frame."""
    at, length = longest(capture)
    return capture[:at] + capture[at + length :]


def sooner(capture: bytes) -> bytes:
    """With a frame received before it was sent."""
    numbers = [struct.unpack_from("<I", capture, at + 8)[0] for at, _ in packets(capture)]
    at, _ = packets(capture)[numbers.index(1)]
    (low,) = struct.unpack_from("<I", capture, at + 16)
    return capture[: at + 16] + struct.pack("<I", low - 100_000) + capture[at + 20 :]


@pytest.mark.parametrize("damage", [changed, missing, sooner])
def test_damage_of_the_capture_is_a_mismatch(
    made: tuple[Path, str], tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    directory = tmp_path / "damaged"
    shutil.copytree(made[0], directory)
    (directory / CAPTURE).write_bytes(damage((directory / CAPTURE).read_bytes()))
    assert verify_run(seal(directory)).mismatches > 0


def test_a_false_sample_is_a_mismatch(made: tuple[Path, str], tmp_path: Path) -> None:
    directory = tmp_path / "damaged"
    shutil.copytree(made[0], directory)
    file = directory / "nodes" / "server" / "samples.jsonl"
    lines = file.read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("["))
    row = json.loads(lines[place])
    # Before its reply had come.
    row[2] = row[1] + 1
    lines[place] = json.dumps(row, separators=(",", ":"))
    file.write_text("\n".join([*lines, ""]))
    assert verify_run(seal(directory)).mismatches > 0
