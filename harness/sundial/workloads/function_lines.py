# SPDX-License-Identifier: Apache-2.0
"""Batch lines of the twelve functions: the number and the bytes that go with the name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sundial.verify.findings import Finding, as_table
from sundial.verify.samples import RunSamples
from sundial.workloads.functions import BY_NAME


def check_function_line(where: str, line: Mapping[str, Any]) -> Iterator[Finding]:
    """The number of a function, which only batches of functions have, and the bytes of its values."""
    function = BY_NAME.get(str(line.get("procedure")))
    right = {"function": None} if function is None else {"function": function.number, "size": function.size}
    for name, expected in right.items():
        if line.get(name) != expected:
            yield Finding(None, f"{where} {name}", str(expected), str(line.get(name)))


def check_function_lines(samples: RunSamples, client_app: str) -> pl.DataFrame:
    """Findings in all lines of a client's program."""
    rows = [
        finding
        for (client, batch), line in samples.batches.items()
        if line.get("app") == client_app
        for finding in check_function_line(f"nodes/{client} batch {batch}", line)
    ]
    return as_table(rows)
