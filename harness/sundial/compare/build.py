# SPDX-License-Identifier: Apache-2.0
"""Compares run directories: reads them, and asks the pure modules what differs."""

from __future__ import annotations

import hashlib
import json
import shlex
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial import EPOCH_NS
from sundial.compare import bounds, figures, frames, inputs
from sundial.compare.fields import differing_field
from sundial.errors import BadInput
from sundial.model.catalog import COMMAND
from sundial.observe import Capture, open_capture
from sundial.report.load import RunData, load
from sundial.seams.compare import CapturePair, ComparedFrame, ComparedGroup, ComparedRun, Comparison, Difference

MOST_RUNS = 26
LABELS = string.ascii_uppercase
_OF_THE_PLACE = "/domain.xml"
"""A file that names the folders of its run."""
_SHOWN = 60
"""Characters of a value."""


@dataclass(frozen=True)
class Compared:
    """A run to compare: its directory, and its name as a command takes it."""

    path: Path
    name: str


@dataclass(frozen=True)
class Read:
    """The same, read; `label` is its letter."""

    label: str
    name: str
    data: RunData

    @property
    def clock(self) -> str | None:
        return self.data.run.get("clock")

    @property
    def by_hand(self) -> bool:
        return self.data.run.get("scenario") is None

    @property
    def complete(self) -> bool:
        return self.data.run.get("status") == "complete"

    @property
    def epoch_ns(self) -> int:
        return int(self.data.run.get("epoch_ns") or EPOCH_NS)


def compare(
    runs: Sequence[Compared], by: Sequence[str] = figures.BY, limits: Sequence[bounds.Bound] = ()
) -> tuple[Comparison, list[Read]]:
    """What differs between the first run and each other one, and the runs as they were read.

    Raises BadInput for fewer than two runs or more than MOST_RUNS, for one that is named twice, for an unknown column,
    and if the runs have nothing in common.
    """
    _check(runs, by)
    read = [Read(LABELS[place], run.name, load(run.path)) for place, run in enumerate(runs)]
    first, others = read[0], read[1:]
    real = any(run.clock == "real" for run in read)
    differing = inputs.differing([run.data.run for run in read])
    pairs = [pair for other in others for pair in _captures(first, other, exact=not real)]
    groups = figures.compare([run.data.samples for run in read], by, intervals=real)
    _check_common(read, groups, by, bool(pairs))
    same = {run.label: _same_inputs(first, run) for run in others}
    return (
        Comparison(
            version=1,
            runs=tuple(map(_run, read)),
            inputs=tuple(differing),
            captures=tuple(pairs),
            files={run.label: tuple(_other_files(first, run)) for run in others},
            by=tuple(by),
            groups=tuple(groups),
            method=figures.METHOD if real else None,
            alarms=() if real else tuple(_alarms(first, others, pairs, same)),
            exceeded=tuple(_exceeded(groups, read, limits)),
            remarks=tuple(_remarks(read, pairs)),
        ),
        read,
    )


def _check(runs: Sequence[Compared], by: Sequence[str]) -> None:
    if len(runs) < 2:
        raise BadInput("one run is not a comparison", field="RUN", allowed="two runs or more")
    if len(runs) > MOST_RUNS:
        raise BadInput(f"{len(runs)} runs are too many", field="RUN", allowed=f"up to {MOST_RUNS}")
    places = [run.path.resolve() for run in runs]
    for place, path in enumerate(places):
        if path in places[:place]:
            raise BadInput(f"{runs[place].name} is named twice", field="RUN", allowed="different runs")
    for column in by:
        if column not in figures.COLUMNS:
            raise BadInput(f"{column!r} is not a column", field="--by", allowed=", ".join(figures.COLUMNS))


def _check_common(read: Sequence[Read], groups: Sequence[ComparedGroup], by: Sequence[str], captured: bool) -> None:
    called = [run.data.samples.height > 0 for run in read]
    if all(called):
        common = any(sum(each is not None for each in group.runs) > 1 for group in groups)
        if not common:
            raise BadInput(
                f"the runs have nothing in common: no calls with the same {', '.join(by)}",
                field="RUN",
                allowed="runs of one workload, or other columns: --by transport,size",
            )
    elif not captured:
        raise BadInput("the runs have nothing in common: neither calls nor captures", field="RUN", allowed="other runs")


def _run(run: Read) -> ComparedRun:
    document = run.data.run
    verdict = (run.data.verify or {}).get("verdict")
    seed = document.get("seed")
    return ComparedRun(
        label=run.label,
        run=run.name,
        status=document.get("status"),
        verdict=verdict if isinstance(verdict, str) else None,
        clock=run.clock,
        seed=seed if isinstance(seed, int) else None,
    )


def _same_inputs(first: Read, other: Read) -> bool:
    return not any(each.wire for each in inputs.differing([first.data.run, other.data.run]))


def _alarms(
    first: Read, others: Sequence[Read], pairs: Sequence[CapturePair], same: Mapping[str, bool]
) -> Iterator[str]:
    """Equal inputs give equal bytes: where they do not, Sundial or its host is wrong."""
    for other in others:
        if not same[other.label] or not (first.complete and other.complete) or first.by_hand:
            continue
        unequal = [pair.capture for pair in pairs if pair.label == other.label and not pair.equal]
        if unequal:
            yield f"{first.name} and {other.name} have the same inputs and other bytes: {', '.join(unequal)}"


def _exceeded(groups: Sequence[ComparedGroup], read: Sequence[Read], limits: Sequence[bounds.Bound]) -> Iterator[str]:
    for group in groups:
        base = group.runs[0]
        for run, found in zip(read[1:], group.runs[1:], strict=True):
            for limit in limits:
                words = None if base is None or found is None else limit.exceeded(base, found)
                if words is not None:
                    yield f"{' '.join(map(str, group.key.values()))} of {run.name}: {words}"


def _remarks(read: Sequence[Read], pairs: Sequence[CapturePair]) -> Iterator[str]:
    for run in read:
        if not run.complete:
            yield f"{run.label} is {run.data.run.get('status')}: its figures and captures are those until then"
        if run.by_hand:
            yield f"{run.label} was used by hand, so equal inputs need not give equal bytes"
        for remark in run.data.remarks:
            if not remark.startswith(("observed.parquet", "verify.json")):
                yield f"{run.label}: {remark}"
    if len({run.clock for run in read}) > 1:
        yield "the runs have different clocks"
    compared = {(pair.label, pair.capture) for pair in pairs}
    for run in read[1:]:
        for name in sorted({*capture_files(read[0].data.directory)} ^ {*capture_files(run.data.directory)}):
            assert (run.label, name) not in compared
            has = read[0] if name in capture_files(read[0].data.directory) else run
            yield f"capture {name} is only in {has.label}"


def _other_files(first: Read, other: Read) -> Iterator[str]:
    """Files beside the captures whose recorded digests differ."""
    ours, theirs = (run.data.run.get("files") or {} for run in (first, other))
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name] != theirs[name] and not name.endswith(_OF_THE_PLACE):
            yield name


def capture_files(folder: Path) -> dict[str, Path]:
    """All captures of a run directory by name: `elan`, `elan.cells`."""
    wire = folder / "wire"
    return {path.stem: path for path in (*sorted(wire.glob("*.pcapng")), *sorted(wire.glob("*/*.pcapng")))}


def _captures(first: Read, other: Read, *, exact: bool) -> Iterator[CapturePair]:
    theirs = capture_files(other.data.directory)
    for name, path in capture_files(first.data.directory).items():
        if name in theirs:
            yield _pair(name, first, path, other, theirs[name], exact)


def _pair(name: str, first: Read, ours: Path, other: Read, theirs: Path, exact: bool) -> CapturePair:
    if _sha256(ours) == _sha256(theirs):
        return CapturePair(capture=name, label=other.label, equal=True, frames=(None, None), difference=None)
    opened: list[Capture] = []
    try:
        for path in (ours, theirs):
            opened.append(open_capture(path))
        difference = _difference(name, first, opened[0], other, opened[1], exact)
        counts: tuple[int | None, int | None] = (opened[0].frames, opened[1].frames)
    except BadInput as error:
        difference, counts = Difference(field="file", first=None, other=None, words=error.message), (None, None)
    finally:
        for capture in opened:
            capture.close()
    return CapturePair(capture=name, label=other.label, equal=False, frames=counts, difference=difference)


def _difference(name: str, first: Read, ours: Capture, other: Read, theirs: Capture, exact: bool) -> Difference | None:
    ports = frames.ports_of(ours), frames.ports_of(theirs)
    if ports[0] != ports[1]:
        words = f"ports {', '.join(ports[0])} | {', '.join(ports[1])}"
        return Difference(field="ports", first=None, other=None, words=words)
    pair = frames.first_difference(ours, theirs, times=exact)
    if pair is None:
        if not exact:
            return None
        words = "all frames are equal; other blocks of the file differ"
        return Difference(field="file", first=None, other=None, words=words)
    before, after = pair
    if before is None or after is None:
        has = first if after is None else other
        return Difference(
            field="frame",
            first=_frame(first, name, before, None),
            other=_frame(other, name, after, None),
            words=f"only {has.label} has more frames",
        )
    field, was, now = differing_field(before, after)
    if field == "time":
        words = f"the frame is {abs(_time(other, after) - _time(first, before))} ns " + (
            "later" if _time(other, after) > _time(first, before) else "earlier"
        )
    else:
        words = f"{field}: {_short(was)} | {_short(now)}"
    return Difference(
        field=field, first=_frame(first, name, before, was), other=_frame(other, name, after, now), words=words
    )


def _time(run: Read, frame: frames.Frame) -> int:
    return frame.time_ns - run.epoch_ns


def _frame(run: Read, capture: str, frame: frames.Frame | None, value: str | None) -> ComparedFrame | None:
    if frame is None:
        return None
    shown = ["--all", "--filter", f"frame.number == {frame.number}"]
    return ComparedFrame(
        number=frame.number,
        port=frame.port,
        t_ns=_time(run, frame),
        value=None if value is None else _short(value),
        open=shlex.join([COMMAND, "open", run.name, capture, *shown]),
    )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _sha256(path: Path) -> bytes:
    """Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
