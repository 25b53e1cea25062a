# SPDX-License-Identifier: Apache-2.0
"""The gate: every damage to a run done to a copy of its own, verified, and what passes."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random

from mutation import (
    agreed,
    atm,
    backplane,
    documents,
    events,
    files,
    headers,
    samples,
    stamps,
    stores,
    streams,
    traces,
    traffic,
)
from mutation.damage import Copy, Damage
from sundial.errors import SundialError
from sundial.verify import verify_run

PROCESSES = 2
KINDS = (headers, stamps, traffic, events, streams, atm, backplane, stores, documents, samples, files, traces, agreed)

CAUGHT, PASSED, CRASHED, NOTHING = "caught", "passed", "crashed", "nothing"


@dataclass(frozen=True)
class Outcome:
    """What verification said of a damage: `nothing` where it changed nothing at all."""

    damage: str
    result: str
    words: str


def all_damages(run: Path) -> list[Damage]:
    """Every damage that can be done to a run."""
    with tempfile.TemporaryDirectory(prefix="mutation-", dir=run.parent) as folder:
        copy = Copy(run, Path(folder) / "run")
        found = list(chain.from_iterable(kind.damages(copy) for kind in KINDS))
    names = [damage.name for damage in found]
    assert len(set(names)) == len(names), "two damages of one name"
    return found


def sample(found: Sequence[Damage], number: int, seed: int) -> list[Damage]:
    """Some of them, of each kind its share."""
    chosen = Random(seed).sample(range(len(found)), min(number, len(found)))
    return [found[place] for place in sorted(chosen)]


def judge(run: Path, damage: Damage, seed: int, work: Path) -> Outcome:
    """Do a damage to a copy of the run and verify that."""
    copy, idle = damaged(run, [damage], seed, work)
    if idle:
        return Outcome(damage.name, NOTHING, "")
    try:
        problems = verify_run(copy.path).problems
    except SundialError as error:
        return Outcome(damage.name, CAUGHT, str(error))
    except Exception:
        return Outcome(damage.name, CRASHED, traceback.format_exc(limit=-3))
    if not problems:
        return Outcome(damage.name, PASSED, "")
    first = problems[0]
    return Outcome(damage.name, CAUGHT, f"{first['field']}: expected {first['expected']}, seen {first['seen']}")


def damaged(run: Path, damages: Sequence[Damage], seed: int, work: Path) -> tuple[Copy, list[str]]:
    """A copy of the run with these damages, and the names of those that changed nothing.

    Streams of samples come first, since the table follows from them, and damages with wrong digests last.
    """
    place = work / "run"
    shutil.rmtree(place, ignore_errors=True)
    copy = Copy(run, place)
    idle = []
    for of_streams, sealed in ((True, True), (False, True), (False, False)):
        some = [damage for damage in damages if (damage.samples, damage.sealed) == (of_streams, sealed)]
        for damage in some:
            before = _content(copy)
            damage.apply(copy, Random(f"{seed} {run.name} {damage.name}"))
            idle += [damage.name] if _content(copy) == before else []
        if some and sealed:
            copy.seal(samples=of_streams)
    return copy, idle


def _content(copy: Copy) -> dict[str, bytes]:
    return {name: copy.read(name) for name in copy.names}


_mine: dict[str, Damage] = {}
"""Of a worker: its run's damages by name, since functions do not travel between processes."""


def _begin(run: Path) -> None:
    _mine.update({damage.name: damage for damage in all_damages(run)})


def _judge(run: Path, name: str, seed: int) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="mutation-", dir=run.parent) as work:
        return judge(run, _mine[name], seed, Path(work))


def judge_all(run: Path, damages: Sequence[Damage], seed: int) -> Iterator[Outcome]:
    """In order, on two cores."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, context, _begin, (run,)) as pool:
        names = [damage.name for damage in damages]
        yield from pool.map(_judge, [run] * len(names), names, [seed] * len(names), chunksize=4)
