# SPDX-License-Identifier: Apache-2.0
"""Conservation: what was sent at one end arrives at the other, but for what the wire is known to have done to it.

For each packet of a call (and each kind of TCP frame of a connection):

    received = sent + passed - lost + duplicated

where `passed` is what a guest between two segments sent less what it received. `dropped` frames may have been refused
before they were seen at the sender's port, and `corrupted` ones may arrive as something else: they leave room below.
"""

from __future__ import annotations

import polars as pl

from sundial.verify.findings import findings
from sundial.verify.flows import CORRUPTED, DROPPED, DUPLICATED, LOST

INBOUND, OUTBOUND = 1, 2


def transit_ends(frames: pl.DataFrame) -> pl.Series:
    """The ends of machines that are seen in more than one capture: they join segments."""
    ends = (
        frames.filter(pl.col("fate").is_null())
        .select("end", "capture", machine=pl.col("interface").str.extract(r"^([^:]*)"))
        .unique()
    )
    joined = ends.filter(pl.col("capture").n_unique().over("machine") > 1)
    return joined["end"].sort()


def check_balance(frames: pl.DataFrame, key: list[str], transit: pl.Series) -> pl.DataFrame:
    """Findings for each `key` whose frames do not balance.

    `frames` need call (null for none), reply, view, fate, direction, end and `what`, the packet in words.
    """
    passing = (pl.col("view") == "passing") & pl.col("end").is_in(transit.implode())
    fate = pl.col("fate")

    def number(where: pl.Expr) -> pl.Expr:
        return where.fill_null(False).sum().cast(pl.Int64)

    extra = {"what": pl.col("what").first(), "call": pl.col("call").max()}
    table = frames.group_by(key).agg(
        sent=number(pl.col("view") == "sent"),
        received=number(pl.col("view") == "received"),
        passed=number(passing & (pl.col("direction") == OUTBOUND)) - number(passing & (pl.col("direction") == INBOUND)),
        lost=number(fate == LOST),
        duplicated=number(fate == DUPLICATED),
        dropped=number(fate == DROPPED),
        corrupted=number(fate == CORRUPTED),
        rows=pl.col("row").filter(pl.col("view").is_in(["sent", "received"])),
        **{name: value for name, value in extra.items() if name not in key},
    )
    most = pl.col("sent") + pl.col("passed") - pl.col("lost") + pl.col("duplicated")
    least = most - pl.col("dropped") - pl.col("corrupted")
    wrong = (pl.col("received") > most) | (pl.col("received") < least)
    return findings(
        table,
        wrong,
        "received",
        pl.format("{} times {}", most, "what"),
        pl.format("{} times", "received"),
    )
