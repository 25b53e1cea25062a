# SPDX-License-Identifier: Apache-2.0
"""Exchanges of both sides in streams of the library, and in streams that are not RPyC's."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sundial.observe import open_run, read_frames
from sundial.papers.santos18.exchanges import Files, exchanges
from sundial.verify.samples import load_samples
from sundial.workloads.functions import NAMES
from tests.workloads.rpyc.spoken import CALLS
from tests.workloads.rpyc.test_verify import Spoken


def given(spoken: Spoken) -> tuple[pl.DataFrame, pl.DataFrame, Files]:
    """Samples, frames where they were sent, and captures."""
    spoken.settle()
    run = open_run(spoken.folder / "run")
    files = [(run.path / name, name) for name in sorted(run.captures)]
    sent = read_frames(files, run.epoch_ns).filter(direction=2)
    return load_samples(run).table, sent, files


def counted(spoken: Spoken) -> dict[str, float]:
    found = exchanges(*given(spoken))
    return {name: found["client", number] / CALLS for number, name in enumerate(NAMES)}


@pytest.mark.parametrize(
    ("name", "array", "person", "distance"),
    [
        # A list comes back as a reference, which is given back; of an object its class is asked for, too.
        ("5.3.0-list-zip", 4, 5, 16),
        ("5.3.0-tuple-zip", 3, 5, 3),
        ("6.0.2-list-numpy", 4, 5, 25),
        # RPyC 4 asks for the methods of a class once, here in one of two calls.
        ("4.0.1-list-zip", 4, 4.5, 16),
    ],
)
def test_a_server_asks_too(tmp_path: Path, name: str, array: float, person: float, distance: float) -> None:
    found = counted(Spoken(tmp_path, name))
    assert {found[each] for each in NAMES[:7]} == {3}
    assert [found[each] for each in NAMES[7:]] == [array, array, array, person, distance]


def test_what_was_sent_again_counts_once(tmp_path: Path) -> None:
    assert counted(Spoken(tmp_path / "lost", lose=(9, 10, 40))) == counted(Spoken(tmp_path / "whole"))


def test_each_piece_of_a_message_is_of_it(tmp_path: Path) -> None:
    assert counted(Spoken(tmp_path / "cut", room=40)) == counted(Spoken(tmp_path / "whole"))


def test_streams_that_are_not_whole_are_not_counted(tmp_path: Path) -> None:
    samples, sent, files = given(Spoken(tmp_path))
    with_data = sent.with_row_index("place").filter(pl.col("tcp_length") > 0)["place"]
    for place in (with_data[20], 0):
        assert exchanges(samples, sent.filter(pl.int_range(pl.len()) != place), files) == {}
    spoken = Spoken(tmp_path / "other")
    spoken.order[5] = (spoken.order[5][0], spoken.order[5][1][:-1] + b"?")
    assert exchanges(*given(spoken)) == {}


def test_other_systems_are_left_out(tmp_path: Path) -> None:
    samples, sent, files = given(Spoken(tmp_path))
    assert exchanges(samples.with_columns(transport=pl.lit("grpc")), sent, files) == {}
