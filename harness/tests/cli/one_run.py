# SPDX-License-Identifier: Apache-2.0
"""A paper whose reproduction is one run, for tests of the command: the papers themselves take twenty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import polars as pl

from sundial.reproduce.page import Page
from sundial.reproduce.paper import Paper, Reproduction, reproduction
from sundial.reproduce.runs import Bench, Spec

RUN = "raw-udp"


class OneRunOutcome:
    """Nothing is measured."""

    def facts(self) -> Sequence[tuple[str, str]]:
        return [("machine", "125 mips")]

    def index(self) -> Mapping[str, str]:
        return {"mips": "125"}

    def tables(self) -> Mapping[str, pl.DataFrame]:
        return {}

    def page(self, figures: Path) -> Page:
        return Page(name="one-run", reference="", key_figures=[], sections=[], drawings={}, files=())


@dataclass(frozen=True)
class OneRun:
    """A paper's data and scales."""

    of: Reproduction

    def paper(self) -> Paper:
        return self.of.paper()

    def perform(self, bench: Bench, *, scale: str) -> OneRunOutcome:
        workload = {"app": "raw", "transports": ["udp"], "sizes": [16], "calls": 1}
        bench.expect(1)
        bench.make(Spec(RUN, "one call", "two-hosts-10base-t", [workload]), Decimal(125))
        return OneRunOutcome()


def one_run(name: str) -> Reproduction:
    """As `sundial.reproduce.paper.reproduction`. Raises BadInput."""
    return OneRun(reproduction(name))
