# SPDX-License-Identifier: Apache-2.0
"""Columns of what the fabric did to frames."""

from __future__ import annotations

import polars as pl

from sundial.observe.fates import FATE_COLUMNS, fate_columns
from sundial.verify.frames import with_places
from tests.fates import cells, corrupted, lost


def test_each_field_of_a_record_has_its_column() -> None:
    table = fate_columns(
        pl.Series([corrupted(3, 41, "a:eth0", "b:eth0"), None, cells(2, 32, "policed", "from", "a:eth0")])
    )
    assert table.schema == pl.Schema(FATE_COLUMNS)
    assert [{name: value for name, value in row.items() if value is not None} for row in table.to_dicts()] == [
        {"record": "Corrupted", "fate": "corrupted", "fate_bit": 3, "fate_byte": 41, "fate_from": "a:eth0",
         "fate_to": "b:eth0"},
        {},
        {"record": "Cells", "fate": "dropped", "fate_rule": "policed", "fate_lost_cells": 2, "fate_cells": 32,
         "fate_from": "a:eth0"},
    ]  # fmt: skip


def test_comments_without_a_record_have_none() -> None:
    table = fate_columns(pl.Series(["lost: a:eth0 to b:eth0", "", lost("a:eth0", "b:eth0")]))
    assert table["fate"].to_list() == [None, None, "lost"]
    assert fate_columns(pl.Series([], dtype=pl.String)).is_empty()


def test_only_the_fate_interface_says_what_became_of_frames() -> None:
    said = lost("a:eth0", "b:eth0")
    frames = pl.DataFrame(
        {"capture": ["lan"] * 3, "interface": ["a:eth0", "lan:fate", "lan:fate"], "comment": [said, said, "lost"]}
    )
    table = with_places(frames)
    assert table["fate"].to_list() == [None, "lost", "unnamed"]
    assert table["fate_to"].to_list() == [None, "b:eth0", None]
