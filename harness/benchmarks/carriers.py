# SPDX-License-Identifier: Apache-2.0
"""What carries frames between two stations in real time: sundial-fabric, and its peers. Each is up inside `with`.

All of them speak the same: one frame a datagram between unix sockets, so the generator pays the same for each. The
fabric also captures every frame at both ports; its peers do not.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.context import Cannot
from sundial.run.places import Places

UP_S, END_S = 10.0, 5.0

Stations = tuple[str, str]
"""Sender and receiver, as the generator wants them."""

FASTEST_BPS = 10**12
"""What the fabric calls a wire that is as good as infinitely fast."""


@contextmanager
def fabric(folder: Path, segment: dict[str, Any]) -> Iterator[Stations]:
    """sundial-fabric on the real clock with one segment of two ports, its captures in `folder`."""
    own, far = [folder / f"f{end}" for end in (0, 1)], [folder / f"q{end}" for end in (0, 1)]
    ports = [
        {"machine": f"m{end}", "nic": 0, "interface": "eth0", "local": str(own[end]), "remote": str(far[end])}
        for end in (0, 1)
    ]
    common = {"name": "wire", "max_frame_bytes": 1514, "adapter": {"ring_frames": 64, "when_full": "stop"}}
    config = {
        "version": 1,
        "clock": "real",
        "seed": 1,
        "capture_dir": str(folder),
        "control": str(folder / "control"),
        "linger_ns": 0,
        "done_machines": [],
        "machines": [{"name": f"m{end}", "nics": 1} for end in (0, 1)],
        "segments": [{**common, **segment, "ports": ports}],
    }
    program = Places().fabric
    if not program.is_file():
        raise Cannot("sundial-fabric is not built: make setup")
    (folder / "fabric.json").write_text(json.dumps(config))
    command = [str(program), "run", str(folder / "fabric.json")]
    with _process(command, ready=lambda: all(path.exists() for path in own)):
        yield (f"dgram:{far[0]}:{own[0]}", f"dgram:{far[1]}:{own[1]}")
    (folder / "wire.pcapng").unlink(missing_ok=True)


def fabric_switch(folder: Path) -> Any:
    """As fast as it goes, with nothing in the way."""
    own = {"forwarding_latency_ns": 0, "queue_frames": 4096, "mac_table_entries": 64, "ageing_ns": 300 * 10**9}
    return fabric(folder, {"kind": "switch", "rate_bps": FASTEST_BPS, "propagation_ns": 0, **own})


def fabric_link(folder: Path, *, rate_bps: int = FASTEST_BPS, delay_ns: int = 0) -> Any:
    """A link of a rate, with a delay in both directions."""
    shaped = {"delay_ns": delay_ns, "limit_frames": 100_000}
    impairments = {"0": shaped, "1": shaped} if delay_ns else {}
    return fabric(folder, {"kind": "link", "rate_bps": rate_bps, "propagation_ns": 0, "impairments": impairments})


@contextmanager
def vde_switch(folder: Path) -> Iterator[Stations]:
    """Both stations on one vde_switch."""
    with _vde_switch(folder / "v"):
        yield (f"vde:{folder / 'v'}:{folder / 'a'}", f"vde:{folder / 'v'}:{folder / 'b'}")


@contextmanager
def wirefilter(folder: Path, *, delay_ms: int = 0) -> Iterator[Stations]:
    """vde_switch - wirefilter - vde_switch, a station at each end: the way VDE delays frames."""
    left, right = folder / "v", folder / "w"
    delay = ["-d", str(delay_ms)] if delay_ms else []
    with ExitStack() as stack:
        for switch in (left, right):
            stack.enter_context(_vde_switch(switch))
        # It makes no file of its own to wait for; a moment later both its plugs are in.
        command = [_program("wirefilter"), "-v", f"{left}:{right}", *delay]
        began = time.monotonic()
        stack.enter_context(_process(command, ready=lambda: time.monotonic() - began > 0.5))
        yield (f"vde:{left}:{folder / 'a'}", f"vde:{right}:{folder / 'b'}")


@contextmanager
def _vde_switch(path: Path) -> Iterator[None]:
    with _process([_program("vde_switch"), "-s", str(path)], ready=(path / "ctl").exists):
        yield


@contextmanager
def _process(command: list[str], *, ready: Callable[[], bool]) -> Iterator[None]:
    """A process that is up and is ended at the end; its standard input stays open, which VDE lives by."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        end = time.monotonic() + UP_S
        while not ready():
            if process.poll() is not None:
                raise Cannot(f"{Path(command[0]).name}: {process.stderr.read().decode(errors='replace').strip()}")
            if time.monotonic() > end:
                raise Cannot(f"{Path(command[0]).name} does not serve within {UP_S:g} s")
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stderr):
            if pipe is not None:
                pipe.close()


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Cannot(f"{name} is not installed (package vde2)")
    return found
