# SPDX-License-Identifier: Apache-2.0
"""Machines stand at the very nanosecond, answer there, and go on as if they never had."""

from __future__ import annotations

import random
import re
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from sundial.plan.request import Silence, Standing
from sundial.replay.debugger import serve
from sundial.replay.recorded import Recorded, read_recorded
from sundial.replay.stand import look, replay
from sundial.run.places import Places
from sundial.sweep.store import Store
from tests.run.live import END_S, HARNESS, VARIABLES, night, require_guests, start, sundial

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

SCENARIO = """\
description: calls of one packet and of several, over UDP and TCP
topology: {topology}
seed: 5
linger: 50 ms
workloads:
  - app: sunrpc
    transports: [udp, {other}]
    sizes: [64, 4016]
    calls: 5
"""
INSTRUCTION_NS = 16
_PACKET = re.compile(rb"\$([^#]*)#..", re.DOTALL)


def _made(folder: Path, topology: str, other: str) -> Recorded:
    scenario = folder / "calls.yaml"
    scenario.write_text(SCENARIO.format(topology=topology, other=other))
    made = folder / "run"
    done = sundial("run", str(scenario), "--no-report", "--out", str(made))
    assert done.returncode == 0, done.stderr
    return read_recorded(made)


def _instants(recorded: Recorded, count: int) -> list[int]:
    """Random ones, half of them near frames: there machines execute."""
    drawn = random.Random(count)
    frames = [int(at_ns) for found in recorded.segments.values() for at_ns in found.at_ns]
    near = {min(drawn.choice(frames) + drawn.randrange(20_000), recorded.end_ns - 1) for _ in range(count // 2)}
    return sorted(near | {drawn.randrange(recorded.end_ns) for _ in range(count - len(near))})


@pytest.mark.parametrize(
    ("topology", "image", "other", "count"),
    [
        ("two-hosts-10base-t", "linux", "tcp", 2),
        night("two-hosts-lossy", "linux", "tcp", 20),
        night("sss-two-100base-tx", "ssscore", "mbcf3", 20),
    ],
)
def test_a_run_stands_at_random_instants_and_no_byte_changes(
    tmp_path: Path, topology: str, image: str, other: str, count: int
) -> None:
    require_guests(image)
    recorded = _made(tmp_path, topology, other)
    instants = _instants(recorded, count)
    # libvirt's embedded driver opens once in a process, and other tests of this one may have opened it.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(_stand, recorded.folder, instants).result() == (instants, [])
    assert list((Store(Places().store).folder / "making").iterdir()) == []


def _stand(folder: Path, instants: list[int]) -> tuple[list[int], list[str]]:
    """Where the machines stood, and which files of the end differ from those of the run."""
    recorded = read_recorded(folder)
    stood: list[int] = []

    def ask(standing: Standing) -> int | None:
        seen = look(recorded, standing)
        stood.append(seen.at_ns)
        for machine in seen.machines.values():
            late_ns = machine.clock_ns - seen.at_ns
            assert 0 <= late_ns < INSTRUCTION_NS
            assert late_ns == 0 or not machine.cpu.halted
        # Debuggers attach to one of them, which has QEMU stop it, and let it go.
        if len(stood) == 1:
            _attach(recorded, standing)
        later = [at_ns for at_ns in instants if at_ns > seen.at_ns]
        return later[0] if later else None

    def ended(made: Path) -> list[str]:
        names = ["wire/lan.pcapng", "wire/counters.json", *(f"nodes/{name}/samples.jsonl" for name in _names(recorded))]
        return [name for name in names if (made / name).read_bytes() != (recorded.folder / name).read_bytes()]

    return stood, replay(recorded, instants[0], ask, ended, Silence())


def _names(recorded: Recorded) -> list[str]:
    return [node.name for node in recorded.experiment.network.nodes]


def _attach(recorded: Recorded, standing: Standing) -> None:
    commands = serve(recorded, standing, _names(recorded)[0])
    assert commands[0].startswith("target remote /")
    assert commands[2].endswith("symbols-kernel")
    assert all(Path(command.split()[1]).read_bytes().startswith(b"\x7fELF") for command in commands[2:])
    with socket.socket(socket.AF_UNIX) as debugger:
        debugger.settimeout(60)
        debugger.connect(commands[0].split()[-1])
        assert _answer(debugger, b"?").startswith(b"T")
        assert len(_answer(debugger, b"g")) > 16 * 2 * 8  # registers
        assert _answer(debugger, b"D") == b"OK"


def _answer(debugger: socket.socket, command: bytes) -> bytes:
    """The answer to a packet of GDB's remote serial protocol; that QEMU has stopped may be said before it."""
    debugger.sendall(b"$%s#%02x" % (command, sum(command) % 256))
    received = b""
    while not (found := [each for each in _PACKET.findall(received) if command == b"?" or each[:1] != b"T"]):
        received += debugger.recv(4096)
    debugger.sendall(b"+")
    return bytes(found[0])


def test_a_run_that_is_ended_where_it_stands_leaves_nothing(tmp_path: Path) -> None:
    require_guests("linux")
    recorded = _made(tmp_path, "two-hosts-10base-t", "tcp")
    done = sundial("replay", str(recorded.folder), "--until", "lan:20")
    assert done.returncode == 0, done.stderr
    assert "lan      20 of " in done.stdout
    assert list((Store(Places().store).folder / "making").iterdir()) == []
    # A byte of the recorded run that is not what the run writes.
    console = recorded.folder / "nodes" / "client" / "samples.jsonl"
    console.write_bytes(b"x" + console.read_bytes()[1:])
    done = sundial("replay", str(recorded.folder), "--until", "lan:20")
    assert done.returncode == 1
    assert "differs up to" in done.stderr


@pytest.mark.night
@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_gdb_leads_a_run_and_no_byte_changes_unless_it_writes(tmp_path: Path) -> None:
    require_guests("linux")
    folder = _made(tmp_path, "two-hosts-10base-t", "tcp").folder
    assert _debugged(folder)[1:] == (0, True), "looking"
    busy = [f"break {name}" for name in ("do_syscall_64", "asm_common_interrupt", "handle_edge_irq")]
    watch = ("hbreak udp_recvmsg", "continue", "watch -location *(long *)$sp", "continue", "continue")
    said, status, led = _debugged(folder, *busy, *["continue"] * 60, "delete", *watch, "delete", *["stepi"] * 100)
    assert (status, led) == (0, True), "stops"
    for stop in ("Breakpoint 2, 0x", "Breakpoint 3, 0x", "Breakpoint 4, 0x", "watchpoint 5"):
        assert stop in said, said
    assert said.count("\nBreakpoint ") >= 60
    said, status, _ = _debugged(folder, "hbreak udp_recvmsg", "continue", "set $rdx = 4", "delete")
    assert re.search(r"Breakpoint 1, 0x\w+ in udp_recvmsg", said)
    assert status != 0, "the receiver's buffer has 4 bytes"


def _debugged(folder: Path, *commands: str) -> tuple[str, int, bool]:
    """What gdb says; the status of the command, and whether it went on without a line of its standard input."""
    words = [sys.executable, "-m", "sundial.cli", "replay", str(folder), "--until", "lan:8", "--gdb", "server"]
    replayed = start(words, cwd=HARNESS, env=VARIABLES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert replayed.stdout is not None
    found: list[str] = []
    for line in iter(replayed.stdout.readline, ""):
        found += [line.removeprefix("gdb").strip()] * line.startswith("gdb ")
        if line.startswith("next"):
            break
    asked = [word for each in ("set confirm off", *found, *commands, "detach") for word in ("-ex", each)]
    said = subprocess.run(["gdb", "-nx", "-batch", *asked], capture_output=True, text=True, timeout=300, check=False)
    rest = replayed.stdout.read()
    return said.stdout, replayed.wait(END_S), "gdb lets the machine run" in rest
