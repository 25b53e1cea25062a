# SPDX-License-Identifier: Apache-2.0
"""The tables of a run: names, columns with their types, and the models that describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from sundial.data.rows import Finding, Frame, Sample, Step
from sundial.described import Described
from sundial.observe import SAMPLE_COLUMNS
from sundial.verify.steps import STEP_COLUMNS

FRAME_COLUMNS: dict[str, Any] = {
    "segment": pl.String, "port": pl.String, "frame": pl.UInt32, "time_ns": pl.Int64, "direction": pl.String,
    "frame_bytes": pl.UInt32, "ethertype": pl.String, "source": pl.String, "target": pl.String, "protocol": pl.UInt32,
    "source_port": pl.UInt32, "target_port": pl.UInt32, "ip_id": pl.UInt32, "fragment_bytes": pl.UInt32,
    "more": pl.Boolean, "udp_bytes": pl.UInt32, "tcp_seq": pl.UInt32, "tcp_bytes": pl.UInt32, "tcp_flags": pl.UInt32,
    "fate": pl.String, "comment": pl.String,
}  # fmt: skip
FINDING_COLUMNS: dict[str, Any] = {
    "field": pl.String, "expected": pl.String, "seen": pl.String, "capture": pl.String, "frames": pl.List(pl.UInt32),
    "filter": pl.String, "client": pl.String, "server": pl.String, "app": pl.String, "transport": pl.String,
    "procedure": pl.String, "size": pl.Int64, "series": pl.Int32, "thread": pl.Int32, "batch": pl.Int64,
    "call": pl.Int64, "xid": pl.Int64,
}  # fmt: skip
OF_CALL = ("client", "server", "app", "transport", "procedure", "size", "series", "thread", "batch", "call", "xid")


@dataclass(frozen=True)
class Table:
    """A table: its columns in order, and the model of a row."""

    columns: Mapping[str, Any]
    row: type[Described]


TABLES: Mapping[str, Table] = {
    "samples": Table(SAMPLE_COLUMNS, Sample),
    "frames": Table(FRAME_COLUMNS, Frame),
    "findings": Table(FINDING_COLUMNS, Finding),
    "steps": Table(STEP_COLUMNS, Step),
}
