# SPDX-License-Identifier: Apache-2.0
"""What bilas97 takes of its runs where some of them failed, and where one does not match."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import cast

from sundial.papers.bilas97.experiments import perform
from sundial.papers.bilas97.results import Compared, Results
from sundial.papers.bilas97.statements import STATEMENTS
from sundial.reproduce.measure import Measured
from sundial.reproduce.runs import Bench, Made, Spec
from sundial.reproduce.verdicts import MET, NOT_MET, UNDECIDABLE, judge
from tests.papers.bilas97.made import PAPER
from tests.papers.bilas97.test_packets import ADDRESS, finished
from tests.verify.vmmc_bed import VmmcBed

LARGE = 65536
EXTENT = PAPER.scales["smoke"].model_copy(update={"stream_sizes": (LARGE,), "transfers": 1})


class Recorded:
    """A bench whose runs are there; all others fail."""

    def __init__(self, runs: Mapping[str, tuple[Path, int]]) -> None:
        """`runs`: folder and mismatches, by name."""
        self.runs = runs
        self.made: list[Made] = []

    def expect(self, more: int) -> None:
        return

    def make_all(self, asked: Iterable[tuple[Spec, Decimal]]) -> Iterator[Measured | None]:
        for spec, _ in asked:
            folder, mismatches = self.runs.get(spec.name, (None, 0))
            verdict = "failed" if folder is None else "fail" if mismatches else "pass"
            self.made.append(Made(spec.name, spec.about, verdict, 3, mismatches))
            yield None if folder is None else Measured(folder)


def performed(runs: Mapping[str, tuple[Path, int]]) -> Results:
    return perform(PAPER, cast(Bench, Recorded(runs)), EXTENT, "smoke")


def run(folder: Path, transport: str, procedure: str, size: int, took_ns: int) -> Path:
    """One call of a kind, beside those of `finished`."""
    bed = VmmcBed(folder, now=1_000_000)
    bed.store(ADDRESS, 0, bytes(8))
    bed.batch("vmmc-client", transport, procedure, size)
    bed.sample(bed.now - took_ns)
    finished(bed)
    return folder


def outcomes(results: Results) -> dict[str, str]:
    return {each.statement.id: each.outcome for each in judge(STATEMENTS, results)}


def test_bandwidth_is_judged_without_the_null_calls(tmp_path: Path) -> None:
    stream = run(tmp_path / "run", "du", "stream", LARGE, LARGE * 1000 // 22)
    results = performed({"streams": (stream, 0)})
    assert results.dma_rate_bps == 184_000_000
    found = outcomes(results)
    assert found.pop("B7") == MET
    assert set(found.values()) == {UNDECIDABLE}


def test_messages_that_are_others_are_not_compatible(tmp_path: Path) -> None:
    sizes = run(tmp_path / "run", "vrpc", "echo", 64, 40_000)
    assert json.loads((sizes / "run.json").read_text())["topology"]
    for mismatches, outcome in ((0, MET), (2, NOT_MET)):
        results = performed({"sizes": (sizes, mismatches)})
        # The call of `finished` beside it is not a Sun RPC.
        assert results.compared == {"sizes": Compared(1, mismatches)}
        assert outcomes(results)["B6"] == outcome
