# SPDX-License-Identifier: Apache-2.0
"""Conservation: what was sent at one end arrives at the other, but for what the wire is known to have done to it.

For each packet of a call (and each kind of TCP frame of a connection):

    received = sent + passed - lost + duplicated

where `passed` is what a guest between two segments sent less what it received. `dropped` frames may have been refused
before they were seen at the sender's port, and `corrupted` ones may arrive as something else: they leave room below.
Since the bit that was flipped may be one of the key, a corrupted frame counts by what it was before.
"""

from __future__ import annotations

import polars as pl

from sundial.verify.findings import findings
from sundial.verify.frames import DROPPED, DUPLICATED, INBOUND, LOST, OUTBOUND, machine


def transit_ends(frames: pl.DataFrame) -> pl.Series:
    """The ends of machines that are seen in more than one capture: they join segments."""
    ends = frames.filter(pl.col("fate").is_null()).select("end", "capture", machine=machine()).unique()
    joined = ends.filter(pl.col("capture").n_unique().over("machine") > 1)
    return joined["end"].sort()


def check_balance(frames: pl.DataFrame, key: list[str], what: pl.Expr, transit: pl.Series) -> pl.DataFrame:
    """Findings for each `key` whose frames do not balance; `what` says in words which packet a key is.

    `frames` need row, call (null for none), reply, view, fate, direction, end, corrupted (see `with_corrupted`).
    """
    if transit.is_empty():
        passed = pl.lit(0, pl.Int64)
    else:
        passing = (pl.col("view") == "passing") & pl.col("end").is_in(transit.implode())
        passed = _number(passing & (pl.col("direction") == OUTBOUND)) - _number(
            passing & (pl.col("direction") == INBOUND)
        )
    fate = pl.col("fate")
    table = frames.group_by(key).agg(
        sent=_number(pl.col("view") == "sent"),
        received=_number(pl.col("view") == "received"),
        passed=passed,
        lost=_number(fate == LOST),
        duplicated=_number(fate == DUPLICATED),
        dropped=_number(fate == DROPPED),
        corrupted=pl.col("corrupted").sum().cast(pl.Int64),
    )
    most = pl.col("sent") + pl.col("passed") - pl.col("lost") + pl.col("duplicated")
    least = most - pl.col("dropped") - pl.col("corrupted")
    wrong = table.filter((pl.col("received") > most) | (pl.col("received") < least))
    ends = frames.filter(pl.col("view").is_in(["sent", "received"])).join(wrong, on=key, how="semi", nulls_equal=True)
    rows = ends.group_by(key).agg(
        rows=pl.col("row"), **({} if "call" in key else {"call": pl.col("call").max()}), what=what.first()
    )
    return findings(
        wrong.join(rows, on=key, how="inner", nulls_equal=True).sort(pl.col("rows").list.min()),
        pl.lit(True),
        "received",
        pl.format("{} times {}", most, "what"),
        pl.format("{} times", "received"),
    )


def _number(where: pl.Expr) -> pl.Expr:
    return where.fill_null(False).sum().cast(pl.Int64)
