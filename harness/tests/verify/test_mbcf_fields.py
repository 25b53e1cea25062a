# SPDX-License-Identifier: Apache-2.0
"""Each field of each kind of MBCF frame, changed at both ports: found, whatever the frame is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from sundial.observe import RunDirectory, open_run, read_frames
from sundial.observe.octets import octets_of
from sundial.verify import verify_run
from sundial.verify.classification import UNEXPLAINED
from sundial.verify.corruption import with_corrupted
from sundial.verify.frames import with_places
from sundial.verify.samples import RunSamples, load_samples
from sundial.workloads.mbcf.observe import KIND as DISSECTION
from sundial.workloads.mbcf.observe import read_frame
from sundial.workloads.mbcf.verify import KIND
from tests.observe.mbcf_wire import (
    ACK,
    CLOSE,
    FIFO,
    OPENED,
    READ,
    RESULT,
    SIGNAL,
    SYN,
    SYNACK,
    TASKQUE,
    WRITE,
)
from tests.verify.mbcf_bed import MbcfBed

AT = 14
FIELDS = {
    "op": (0, 1), "flags": (1, 1), "version_status": (2, 1), "tag": (3, 1), "epoch": (4, 4), "target_epoch": (8, 4),
    "seq": (12, 4), "ack": (16, 4), "length": (20, 2), "op_id": (22, 2), "last": (24, 4),
}  # fmt: skip


def bed(directory: Path, *, define_always: bool = False) -> MbcfBed:
    """Calls of types 1, 2 and 3b: every kind of frame but atomic operations."""
    made = MbcfBed(directory / "run", define_always=define_always)
    made.open()
    for transport, size in (("mbcf1", 16), ("mbcf2", 16), ("mbcf3b", 2000), ("mbcf3", 16)):
        made.batch(transport, size)
        for xid in range(10 * len(made.lines), 10 * len(made.lines) + 2):
            made.call(transport, xid, size)
    return made


def test_the_sound_run_passes(tmp_path: Path) -> None:
    result = verify_run(bed(tmp_path).write())
    assert (result.problems, result.verdict) == ([], "pass")


KINDS = {
    "ACK": ACK, "SYN": SYN, "SYNACK": SYNACK, "OPENED": OPENED, "TASKQUE": TASKQUE, "WRITE": WRITE, "READ": READ,
    "FIFO": FIFO, "SIGNAL": SIGNAL, "CLOSE": CLOSE, "RESULT": RESULT,
}  # fmt: skip


@dataclass(frozen=True)
class Sound:
    """A sound run, read once: tshark shows nothing of what these tests change."""

    run: RunDirectory
    samples: RunSamples
    frames: pl.DataFrame
    capture: bytes

    def is_found(self, directory: Path, op: int, change: Callable[[bytearray], None]) -> bool:
        """Whether MBCF's verification notices a change of the last frame of a kind, made wherever it was seen."""
        data = bytearray(self.capture)
        places = self.frames.select("octets_begin", "captured_length").rows()
        seen = [data[begin : begin + length] for begin, length in places]
        last = next(frame for frame in reversed(seen) if frame[AT] == op)
        hit = [place for place, frame in enumerate(seen) if frame == last]
        assert len(hit) == 2
        changed = bytearray(last)
        change(changed)
        for place in hit:
            seen[place] = changed
            data[places[place][0] : places[place][0] + len(changed)] = changed
        (directory / "wire").mkdir()
        (directory / "wire" / "lan.pcapng").write_bytes(data)
        rows = [read_frame(bytes(frame)) for frame in seen]
        columns = [
            pl.Series(name, [row.get(name) for row in rows], dtype) for name, dtype in DISSECTION.columns.items()
        ]
        assert KIND.transport is not None
        settled = KIND.transport.settle(
            replace(self.run, path=directory), self.frames.with_columns(columns), self.samples, {}
        )
        return bool(settled.findings.height) or UNEXPLAINED in settled.classes["class"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    path = bed(tmp_path_factory.mktemp("mbcf")).write()
    run = open_run(path)
    files = [(path / name, name) for name in run.captures]
    frames = with_corrupted(with_places(read_frames(files, run.epoch_ns)), partial(octets_of, files=files))
    return Sound(run, load_samples(run), frames, files[0][0].read_bytes())


def test_a_frame_that_is_left_alone_is_not_found(tmp_path: Path, sound: Sound) -> None:
    assert not sound.is_found(tmp_path, ACK, lambda _: None)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_field_is_found(tmp_path: Path, sound: Sound, kind: str, name: str) -> None:
    offset, size = FIELDS[name]

    def change(data: bytearray) -> None:
        data[AT + offset + size - 1] ^= 0x80 if name == "flags" else 0x41

    assert sound.is_found(tmp_path, KINDS[kind], change)
