# SPDX-License-Identifier: Apache-2.0
"""SSS-CORE: MBCF beside UDP, instructions of its paths, the wire's use of a stream, and what a node weighs.

All but boot and memory are virtual times of one run, which every repeat would give again: measured once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import sundial
from benchmarks.context import Cannot, Context
from benchmarks.figure import Figure, Outcome, Peer, Target, Unmeasured, at_least, below, number
from benchmarks.guests import weigh
from benchmarks.quickstart import guests_of
from benchmarks.sss_boot import first_call_s
from sundial.machines.images import Images
from sundial.model.catalog import ROOT
from sundial.reproduce.measure import Measured

SUBJECT = "SSS-CORE"
MIPS = "62.5"
"""What `sundial reproduce kamesawa98` finds."""
CALLS = 50
PAPER_RATIOS = {"10base-t": 457 / 778, "100base-tx": 338 / 695}
"""Null RPC over MBCF by SunOS UDP, kamesawa98 tables 3 and 4."""
DEADLINE_S = 300.0
BARE_WIRE = ("segments.lan.rate=100 Gbit/s", "segments.lan.propagation=0 ns", "segments.lan.impairments={}")
"""On which nothing an end computes is hidden behind a frame."""

RATIO, BELOW_UDP = below(0.5), below(1.0)
NULL_RPC, REMOTE_WRITE = below(4000), below(1000)
STREAM = at_least(97.0)
KERNEL, BOOT, MEMORY = below(256 * 1024), below(0.3), below(35.0)


def measure(context: Context) -> Iterator[Outcome]:
    """All of it."""
    yield from _attempt("kernel", _kernel)
    yield from _attempt("MBCF beside UDP", lambda: _ratios(context))
    yield from _attempt("instructions", lambda: _instructions(context))
    yield from _attempt("streaming WRITE", lambda: _stream(context))
    yield from _boot(context)


def _attempt(name: str, measured: Any) -> Iterator[Outcome]:
    try:
        yield from list(measured())
    except Cannot as error:
        yield Unmeasured(SUBJECT, name, str(error))


def _kernel() -> Iterator[Outcome]:
    image = Images(ROOT).ensure("ssscore", lambda line: None)
    yield Figure(SUBJECT, "kernel with lwIP", "B", (float(image.kernel.stat().st_size),), KERNEL, anywhere=True)


def _ratios(context: Context) -> Iterator[Outcome]:
    for wire, printed in PAPER_RATIOS.items():
        linux = _run(context, f"two-hosts-{wire}", [_rpc(["udp"], [0, 1024])])
        ours = _run(context, f"sss-two-{wire}", [_rpc(["udp", "mbcf3", "mbcf3b"], [0, 64, 256, 512, 1024])])
        null = _median(ours, "mbcf3", 0)
        target: Target | Peer = RATIO if wire == "100base-tx" else Peer("the paper", printed)
        note = f"the paper {number(printed)}"
        yield Figure(
            SUBJECT,
            f"string RPC of 0 B, MBCF by Linux UDP, {wire}",
            "",
            (null / _median(linux, "udp", 0),),
            target,
            note,
            anywhere=True,
        )
        worst = max(_median(ours, "mbcf3", size) / _median(ours, "udp", size) for size in (0, 64, 256, 512, 1024))
        name = f"MBCF by UDP of the same kernel, the worst size, {wire}"
        yield Figure(SUBJECT, name, "", (worst,), BELOW_UDP, anywhere=True)
        beside = Peer("mbcf3", null)
        name, value = f"string RPC of 0 B, mbcf3b, {wire}", _median(ours, "mbcf3b", 0)
        yield Figure(SUBJECT, name, "virtual us", (value,), beside, anywhere=True)


def _instructions(context: Context) -> Iterator[Outcome]:
    """Of both ends together."""
    null = _rpc(["mbcf3", "mbcf3b", "udp", "tcp"], [0], ack=True, procedures=["null"])
    calls = [null, _writes("round_trip", [4], CALLS)]
    run = _run(context, "sss-two-lossy", calls, BARE_WIRE)
    targets = {"mbcf3": NULL_RPC, "mbcf3b": NULL_RPC, "udp": None, "tcp": None}
    for transport, target in targets.items():
        value = float(_trip(run, transport=transport, size=0).instructions)
        yield Figure(SUBJECT, f"null RPC over {transport}, both ends", "instructions", (value,), target, anywhere=True)
    value = float(_trip(run, procedure="write", size=4).instructions)
    yield Figure(SUBJECT, "remote WRITE with its ACK, both ends", "instructions", (value,), REMOTE_WRITE, anywhere=True)


def _stream(context: Context) -> Iterator[Outcome]:
    run = _run(context, "sss-two-100base-tx", [_writes("stream", [1408], 500)])
    found = run.stream(1408)
    if found is None:
        raise Cannot("the stream has failed")
    share = 100 * found.megabytes_per_s / found.most_megabytes_per_s
    note = f"{found.megabytes_per_s:.2f} MB/s, the paper 11.24"
    name = "streaming WRITE, 1408 B, of what 100Base-TX carries"
    yield Figure(SUBJECT, name, "%", (share,), STREAM, note, anywhere=True)


def _boot(context: Context) -> Iterator[Outcome]:
    """To the end of the first call, cold, under the real clock; and what the machines weigh meanwhile."""
    count = itertools.count()
    weights: list[float] = []

    def once() -> float:
        folder = context.folder / f"s{next(count)}"
        folder.mkdir()
        return _first_call(folder, weights)

    def plain() -> float:
        folder = context.folder / f"p{next(count)}"
        folder.mkdir()
        image = Images(ROOT).ensure("ssscore", lambda line: None)
        one_call = [{**_rpc(["mbcf3"], [64], 1), "warmup": 0}]
        return first_call_s(folder, image, _scenario(folder, "sss-two-100base-tx", one_call))

    under_harness = "boot to the first call, under libvirt and the fabric"
    turns = context.in_turns({"boot to the first call, two nodes, plain QEMU": plain, under_harness: once})
    for name, seconds in turns.found.items():
        yield Figure(SUBJECT, name, "s", tuple(seconds), None if name == under_harness else BOOT)
    if weights:
        yield Figure(SUBJECT, "memory of the largest node, Pss", "MB", tuple(weights), MEMORY, anywhere=True)
    yield from turns.unmeasured(SUBJECT)


def _first_call(folder: Path, weights: list[float]) -> float:
    # One call to be timed, then some that keep the machines there for as long as it takes to weigh them.
    workloads = [{**_rpc(["mbcf3"], [64], calls), "warmup": 0} for calls in (1, 2000)]
    scenario = _scenario(folder, "sss-two-100base-tx", workloads)
    out = folder / "run"
    partial = folder / ".run.partial" / "nodes" / "client"
    seen: list[float] = []
    pss: dict[int, float] = {}

    def look() -> None:
        if not seen and "\n[" in _text(partial / "samples.jsonl"):
            seen.append(time.time() - (partial / "domain.xml").stat().st_mtime)
        for pid in guests_of(out) if seen else ():
            with contextlib.suppress(OSError):
                pss[pid] = max(pss.get(pid, 0.0), weigh(pid)[0] / 1e6)

    options = ["--clock", "real", "--out", str(out)]
    sundial(["run", str(scenario), *options], deadline_s=DEADLINE_S, log=folder / "log", look=look, accept=(0, 1))
    if pss:
        weights.append(max(pss.values()))
    if not seen:
        raise Cannot("the first call was not seen")
    return seen[0]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _rpc(transports: Sequence[str], sizes: Sequence[int], calls: int = CALLS, **more: Any) -> dict[str, Any]:
    common = {"app": "sunrpc", "procedures": ["echo_string"], "warmup": 3}
    return {**common, "transports": list(transports), "sizes": list(sizes), "calls": calls, **more}


def _writes(mode: str, sizes: Sequence[int], calls: int) -> dict[str, Any]:
    return {"app": "mbcf", "operations": ["write"], "modes": [mode], "sizes": list(sizes), "calls": calls}


def _scenario(folder: Path, topology: str, workloads: Sequence[Mapping[str, Any]]) -> Path:
    path = folder / "bench-sss.yaml"
    document = {"description": "A benchmark", "topology": topology, "linger": "20 ms", "workloads": list(workloads)}
    # JSON is YAML too.
    path.write_text(json.dumps(document) + "\n")
    return path


def _run(
    context: Context, topology: str, workloads: Sequence[Mapping[str, Any]], settings: Sequence[str] = ()
) -> Measured:
    folder = context.folder / f"r{sum(1 for _ in context.folder.iterdir())}"
    folder.mkdir()
    context.say(f"{SUBJECT} on {topology}")
    words = [word for setting in (f"defaults.mips={MIPS}", *settings) for word in ("--set", setting)]
    arguments = ["run", str(_scenario(folder, topology, workloads)), *words, "--out", str(folder / "run")]
    sundial(arguments, deadline_s=DEADLINE_S, log=folder / "log")
    return Measured(folder / "run")


def _trip(run: Measured, **where: Any) -> Any:
    found = run.round_trip(**where)
    if found is None:
        raise Cannot(f"no call of {where} has succeeded")
    return found


def _median(run: Measured, transport: str, size: int) -> float:
    return float(_trip(run, transport=transport, size=size).median_us)
