# SPDX-License-Identifier: Apache-2.0
"""Batch lines of the twelve functions: the number that goes with the name."""

from __future__ import annotations

from typing import Any

import polars as pl

from sundial.verify.findings import FINDING
from sundial.verify.samples import RunSamples
from sundial.workloads.functions import BY_NAME


def check_function_lines(samples: RunSamples, client_app: str) -> pl.DataFrame:
    """A finding for each line of a client's that has another number, or one without a function."""
    rows: list[tuple[Any, ...]] = []
    for (client, batch), line in samples.batches.items():
        if line.get("app") != client_app:
            continue
        function = BY_NAME.get(str(line.get("procedure")))
        expected, seen = None if function is None else function.number, line.get("function")
        if seen != expected:
            rows.append((None, "sample.function", str(expected), f"{seen} in nodes/{client} batch {batch}", []))
    return pl.DataFrame(rows, schema=FINDING, orient="row")
