# SPDX-License-Identifier: Apache-2.0
"""Numbers of the report stand under the headings that say what they are."""

from __future__ import annotations

import polars as pl

from sundial.report.tables import key_numbers
from sundial.report.workload import Look

CURVE = ("echo-client", "udp", "echo")
TIMES = {"min": 1.5, "median": 2.5, "mean": 3.5, "p95": 4.5, "p99": 5.5, "max": 6.5, "std. dev.": 7.5}
NAMES = {"std. dev.": "stddev"}


def test_key_numbers_stand_under_their_headings() -> None:
    row = {
        **dict(zip(("app", "transport", "procedure"), CURVE, strict=True)),
        "size": 100,
        "calls": 10,
        **{f"rtt_{NAMES.get(name, name)}_us": value for name, value in TIMES.items()},
        "throughput_kBps": 8.25,
        "throughput_stddev_pct": 9.75,
    }
    words = dict.fromkeys(("app", "transport", "procedure", "direction"), pl.String)
    cells = pl.DataFrame(schema={**words, "size": pl.Int64, "cells": pl.Int64})
    table = key_numbers(pl.DataFrame([row]), [100], {CURVE: Look("Sun RPC", "", "", "")}, {}, cells)
    shown = dict(zip([column.title for column in table.columns], table.rows[0], strict=True))
    assert {name: shown[name] for name in TIMES} == {name: f"{value:.1f}" for name, value in TIMES.items()}
    assert (shown["size (B)"], shown["calls"], shown["kB/s"], shown["series sd (%)"]) == ("100", "10", "8.25", "9.75")
