# SPDX-License-Identifier: Apache-2.0
"""The Linux image by each of its recipes that is built: what it takes to boot, to call and to keep.

Instructions are virtual time at 8 ns each, in plain QEMU: a repeat gives them again, so they are measured once.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.context import Cannot, Context
from benchmarks.figure import Figure, Outcome, Peer, Target, Unmeasured
from benchmarks.quickstart import once
from sundial.machines.images import Image, Images
from sundial.machines.recipes import Choice
from sundial.model.catalog import ROOT
from sundial.run.places import Places

IMAGE = "linux"
SUBJECT = "recipes of the Linux image"
DEADLINE_S = 600.0
NS_PER_INSTRUCTION = 8

TARGETS = {
    ("buildroot", "ready from power-on"): Target("below", 95.0),
    ("buildroot", "call over loopback, udp 0 B"): Target("below", 23_100.0),
}
_Measured = tuple[str, str, float]
"""A figure's name, unit and value."""


def measure(context: Context) -> Iterator[Outcome]:
    """All of it; a recipe that is not built is said to be so."""
    usual: dict[str, float] = {}
    first = None
    for status in Images(ROOT, Choice()).list():
        if status.name != IMAGE:
            continue
        first = first or status.recipe
        if status.state != "built":
            why = f"it is {status.state}: ./sundial images build {IMAGE} --recipe {status.recipe}"
            yield Unmeasured(SUBJECT, status.recipe, why)
            continue
        context.say(f"recipe {status.recipe}")
        try:
            for name, unit, value in _of(context, status.recipe):
                if status.recipe == first:
                    usual[name] = value
                yield _figure(status.recipe, name, unit, value, None if status.recipe == first else usual.get(name))
        except Cannot as error:
            yield Unmeasured(SUBJECT, status.recipe, str(error))


def _figure(recipe: str, name: str, unit: str, value: float, usual: float | None) -> Figure:
    against: Target | Peer | None = TARGETS.get((recipe, name))
    if against is None and usual is not None:
        against = Peer("the first recipe", usual)
    return Figure(SUBJECT, f"{name}, {recipe}", unit, (value,), against)


def _of(context: Context, recipe: str) -> Iterator[_Measured]:
    image = Images(ROOT, Choice(recipe)).ensure(IMAGE, context.say)
    yield "kernel", "MB", image.kernel.stat().st_size / 1e6
    yield "initrd", "MB", image.initrd.stat().st_size / 1e6
    yield (
        "ready from power-on",
        "million instructions",
        ready_s(_said("measure-boot", recipe)) * 1e3 / NS_PER_INSTRUCTION,
    )
    for what, instructions in calls(_said("measure-calls", recipe)).items():
        yield f"call over loopback, {what}", "instructions", instructions
    run = once(context, "--recipe", recipe)
    yield "memory of the largest guest in quickstart, Pss", "MB", max(run.pss.values()) / 1e6
    yield "files of its snapshot", "MB", snapshot_bytes(Places(ROOT).snapshots, image) / 1e6


def _said(program: str, recipe: str) -> str:
    """What a program of the image prints of its recipe. Raises Cannot."""
    command = [str(ROOT / "images" / IMAGE / program), "--recipe", recipe]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise Cannot(f"{program} did not end within {DEADLINE_S:g} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise Cannot(f"{program}: {lines[-1] if lines else f'status {done.returncode}'}")
    return done.stdout


def ready_s(said: str) -> float:
    """Virtual seconds until the guest is ready, as measure-boot prints them."""
    found = re.match(r"virtual (\d+\.\d+) s\b", said)
    if found is None:
        raise Cannot(f"measure-boot says {said[:80]!r}")
    return float(found[1])


def calls(said: str) -> dict[str, float]:
    """Instructions by transport and size, as measure-calls prints them."""
    found = dict(re.findall(r"^(\w+ \d+ B): (\d+) instructions$", said, re.MULTILINE))
    if not found:
        raise Cannot(f"measure-calls says {said[:80]!r}")
    return {what: float(value) for what, value in found.items()}


def snapshot_bytes(snapshots: Path, image: Image) -> int:
    """Bytes on disk of the image's largest snapshot. Raises Cannot where it has none."""
    sizes = []
    for meta in snapshots.glob("*/meta.json"):
        try:
            key = json.loads(meta.read_text())["key"]
            if (key["kernel_sha256"], key["initrd_sha256"]) == (image.kernel_sha256, image.initrd_sha256):
                sizes.append(sum(file.stat().st_blocks * 512 for file in meta.parent.iterdir() if file != meta))
        except (OSError, ValueError, LookupError, TypeError):  # it is being made, or removed
            continue
    if not sizes:
        raise Cannot("the run has left no snapshot")
    return max(sizes)
