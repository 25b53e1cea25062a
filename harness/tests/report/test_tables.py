# SPDX-License-Identifier: Apache-2.0
"""Numbers of the report stand under the headings that say what they are."""

from __future__ import annotations

import polars as pl

from sundial.report.tables import DASH, bounds, key_numbers, problems, rules_of
from sundial.report.tables_run import exchanges, figures
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


def test_bounds_are_lines_and_unmet_ones_are_marked() -> None:
    met = {"bound": "count() > 1", "words": "5", "rows": 5, "met": True}
    table = bounds({"bounds": [met, {**met, "words": "1", "met": False}]})
    assert table is not None
    assert table.rows == (("count() > 1", "met", "5", "5"), ("count() > 1", "NOT MET", "1", "5"))
    assert table.alarms == {1}
    assert bounds({}) is None
    assert bounds(None) is None


def test_mismatches_name_their_rules_which_are_explained() -> None:
    found = {"field": "ip.id", "rule": "ip.id", "expected": 1, "seen": 2, "call": None, "capture": None, "frames": []}
    older = {**found, "rule": None}  # of an earlier version
    shown = problems({"problems": [found, found, older]}, "r")
    assert shown[0].words == "ip.id: expected 1, seen 2 [ip.id]"
    ((name, severity, parts),) = rules_of(shown)
    assert (name, severity, [title for title, _ in parts]) == (
        "ip.id", "error", ["Checked", "Source", "Causes", "In Wireshark"]
    )  # fmt: skip


def test_round_trips_of_decoders_and_figures_of_programs_have_tables() -> None:
    alike = {"decoder": "dns", "transport": "udp", "client": "c", "server": "s", "port": 53, "procedure": "A"}
    counts = {"exchanges": 2, "answered": 0, "retransmissions": 1}
    spread = {"rtt_ns_min": 1500.0, "rtt_ns_median": None, "rtt_ns_max": 2500.0}
    table = exchanges({"exchanges": [{**alike, **counts, **spread}]})
    assert table is not None
    assert table.rows == (("dns", "udp", "c", "s", "53", "A", "2", "0", "1", "1.5", DASH, "2.5"),)
    figure = {"program": "p", "machine": "m", "figure": "f", "values": 1}
    table = figures({"figures": [{**figure, "value_min": 1.0, "value_median": 1.0, "value_max": 1.0}]})
    assert table is not None
    assert table.rows == (("p", "m", "f", "1", "1.000", "1.000", "1.000"),)
    assert exchanges({}) is None is figures(None)
