# SPDX-License-Identifier: Apache-2.0
"""What arrives is what was sent, byte for byte, unless the capture says otherwise; and frames do not overtake each
other where the wire keeps their order.

Of frames with the same bytes, for each port that hears them:

    received = sent by others - lost + duplicated - corrupted into others + corrupted into these

What a guest that joins segments sends is what it has received before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import polars as pl

from sundial.verify.corruption import Read, flipped, hashes_before
from sundial.verify.findings import findings, none
from sundial.verify.frames import (
    COLLISION,
    CORRUPTED,
    DROPPED,
    DUPLICATED,
    FATE,
    INBOUND,
    LOST,
    OUTBOUND,
    end_of,
)
from sundial.verify.groups import Groups, number_of, once
from sundial.verify.learning import GROUP_BIT
from sundial.verify.segment import Hearing

UNPROVEN = (
    "that a guest which joins segments forwards every frame: tc-netem there does not report losses",
    "that a frame is retried after a collision, if the run ends before it is sent",
)

_KEY = ["capture", "port", "octets_hash"]
OVERTAKEN_NS = 1_000_000_000
"""A frame may be overtaken by others that were sent so much later, and as much later again as one was on its way."""


_SLACK_NS = 1_000_000
"""By so much a frame may be longer on its way than any other was."""
_GIVEN_UP = "excessive collisions"

_ON_THE_WAY = (
    "row", "capture", "interface", "time_ns", "direction", "fate", "fate_to", "octets_hash", "eth_target", "corrupted",
)  # fmt: skip
"""What `under_way` needs of frames: the table is searched for each port."""


def check_carriage(
    frames: pl.DataFrame,
    ports: pl.DataFrame,
    read: Read,
    heard: Hearing,
) -> pl.DataFrame:
    """`frames` as of `with_corrupted`."""
    table = frames.select(
        "row", "capture", "interface", "end", "time_ns", "direction", *FATE, "comment", "octets_hash", "eth_target",
        "eth_type", "frame_length", "captured_length", "octets_begin", "corrupted",
    )  # fmt: skip
    return pl.concat(
        [
            _balance(_carried(table, heard), ports, read, heard),
            _fates(table, ports, heard),
            _collisions(table),
            _passed_on(table, ports, read),
        ]
    )


def check_order(frames: pl.DataFrame, keeps_order: Mapping[str, bool], pairs: Collection[str] = ()) -> pl.DataFrame:
    """A finding for each frame that overtook another one on its way between the same two ports. Frames with equal bytes
    are left out. `keeps_order`: by sending port; `pairs`: ports that keep it between the same two addresses only."""
    table = frames.filter(pl.col("fate").is_null()).select(
        "row", "capture", "interface", "end", "time_ns", "direction", "eth_source", "eth_target",
        content=number_of("capture", "octets_hash"), at_end=number_of("end", "direction", "octets_hash"),
    )  # fmt: skip
    came, went = (table.filter(pl.col("direction") == way) for way in (INBOUND, OUTBOUND))
    got = came.filter(once(came["at_end"])).sort("time_ns", "row")
    sent = went.filter(
        once(went["content"]), pl.col("interface").is_in([port for port, keeps in keeps_order.items() if keeps])
    )
    # Between two addresses, where others may overtake.
    between = [pl.when(pl.col("sender").is_in(list(pairs))).then(name) for name in ("eth_source", "eth_target")]
    journeys = got.join(
        sent.select("content", sender="interface", sent_row="row", sent_ns="time_ns"),
        on="content",
        how="inner",
        maintain_order="left",
    )
    # Nearly always each port hears the frames of another one in the order in which they were sent.
    ways = journeys.select(number_of("sender", "end")).to_series().to_numpy()
    order = np.argsort(ways, kind="stable")
    rows = journeys["sent_row"].cast(pl.Int64).to_numpy()[order]
    if ((np.diff(rows) >= 0) | (np.diff(ways[order]) != 0)).all():
        return none()
    journeys = journeys.with_columns(latest=pl.col("sent_row").cum_max().over("sender", "end", *between))
    late = journeys.filter(pl.col("latest") > pl.col("sent_row")).with_columns(
        call=pl.lit(None, pl.UInt32), rows=pl.concat_list("latest", "sent_row", "row")
    )
    return findings(
        late,
        pl.lit(True),
        pl.lit("order of arrival"),
        pl.format("as {} sent it, before the frame of {} ns", "sender", "sent_ns"),
        pl.format("at {} ns, after a later frame", "time_ns"),
    )


def _carried(table: pl.DataFrame, heard: Hearing) -> pl.DataFrame:
    """Without frames that no segment carries, since adapters answer them."""
    for capture, types in heard.own_types.items():
        if types:
            own = (pl.col("capture") == capture) & pl.col("eth_type").is_in(list(types))
            table = table.filter(~own.fill_null(False))
    return table


def _balance(
    table: pl.DataFrame,
    ports: pl.DataFrame,
    read: Read,
    heard: Hearing,
) -> pl.DataFrame:
    table = table.join(under_way(table, ports), on="row", how="left", maintain_order="left")
    of_capture = table.filter(pl.col("fate").is_null()).select("capture", port="interface").unique()
    known = ports.select(pl.col("end").str.extract(r"^([^|]*)").alias("capture"), "port", "mac", "joins")
    of_capture = known.select("capture", "port").vstack(of_capture).unique()
    fates = table.filter(pl.col("fate").is_in([LOST, DROPPED, DUPLICATED, CORRUPTED])).with_columns(
        port=pl.when(~at_own_station(heard.own_stations)).then("fate_to")
    )
    step = pl.col("fate").replace_strict({LOST: -1, DROPPED: -1, DUPLICATED: 1, CORRUPTED: 1}, return_dtype=pl.Int64)
    changed = fates.filter(pl.col("port").is_not_null()).with_columns(step=step)
    changes = pl.concat([changed.select(*_KEY, "step", "row"), _uncorrupted(changed, read)])
    changes = changes.group_by(_KEY).agg(change=pl.col("step").sum(), fate_rows=pl.col("row"))
    table = table.filter(~_plainly_carried(table, changes["octets_hash"], known, of_capture, heard))
    sent = table.filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND)
    got = table.filter(pl.col("fate").is_null(), pl.col("direction") == INBOUND)
    # What each port should hear of each sender's frames.
    expected = (
        sent.select("capture", "octets_hash", "eth_target", "row", "time_ns", "under_way", sender="interface")
        .join(of_capture, on="capture", how="left")
        .filter((pl.col("port") != pl.col("sender")) | pl.col("capture").is_in(list(heard.to_itself)))
        .group_by(*_KEY)
        .agg(
            sent=pl.len(),
            rows=pl.col("row"),
            eth_target=pl.col("eth_target").first(),
            under_way=pl.col("under_way").sum(),
        )
    )
    arrived = got.group_by("capture", "octets_hash", port="interface").agg(received=pl.len(), got_rows=pl.col("row"))
    balance = (
        expected.join(arrived, on=_KEY, how="full", coalesce=True)
        .join(changes, on=_KEY, how="full", coalesce=True)
        .join(_on_the_way(table, heard), on=["capture", "octets_hash"], how="left")
        .join(known, on=["capture", "port"], how="left")
        .with_columns(pl.col("sent", "received").fill_null(0).cast(pl.Int64), pl.col("change").fill_null(0))
        .with_columns(
            most=pl.col("sent") + pl.col("change"),
            hears=pl.col("capture").replace_strict(dict(heard.receives_all), default=False, return_dtype=pl.Boolean)
            | (pl.col("eth_target") == pl.col("mac"))
            | (pl.col("eth_target") & GROUP_BIT != 0),
            rows=pl.concat_list(pl.col("rows", "got_rows", "fate_rows").fill_null([])),
        )
    )
    excused = pl.col("astray").fill_null(0) + pl.col("under_way").fill_null(0)
    missing = pl.col("hears") & (pl.col("received") < pl.col("most") - excused)
    wrong = balance.filter((pl.col("received") > pl.col("most")) | missing).sort(pl.col("rows").list.min(), "port")
    return findings(
        wrong.with_columns(call=pl.lit(None, pl.UInt32)),
        pl.lit(True),
        pl.format("frames received by {}", "port"),
        pl.format("{} with these bytes", "most"),
        pl.format("{}", "received"),
    )


def _plainly_carried(
    table: pl.DataFrame, changed: pl.Series, known: pl.DataFrame, of_capture: pl.DataFrame, heard: Hearing
) -> pl.Series:
    """Frames whose bytes were sent once and came once, where they had to, and nowhere else, while nothing else happened
    to such bytes: nearly all. `changed`: the hashes of others."""
    if table.is_empty():
        return pl.Series([], dtype=pl.Boolean)
    ends = table["end"].unique(maintain_order=True)
    columns = table.select(
        number=number_of("capture", "octets_hash"),
        end=pl.col("end").replace_strict(ends, pl.int_range(len(ends), eager=True), return_dtype=pl.Int64),
        out=(pl.col("direction") == OUTBOUND).cast(pl.Int64),
        to=pl.col("eth_target").fill_null(GROUP_BIT),
        plain=pl.col("fate").is_null()
        & pl.col("under_way").is_null()
        & pl.col("direction").is_in([INBOUND, OUTBOUND])
        & ~pl.col("octets_hash").is_in(changed.implode()),
    )
    groups = Groups(columns["number"])
    plain, out = groups.sums(columns["plain"]), groups.sums(columns["out"])
    right = (groups.sizes == 2) & (plain == 2) & (out == 1)
    # Few are the ways that frames go: from one end to another for an address.
    sender = groups.sums(columns["end"] * columns["out"])
    receiver = groups.sums(columns["end"] * (1 - columns["out"]))
    ways = np.stack([sender, receiver, groups.sums(columns["to"] * columns["out"])])
    different, which = np.unique(ways[:, right], axis=1, return_inverse=True)
    reaches = [
        _reaches_all((ends[one], ends[other], to), known, of_capture, heard) for one, other, to in different.T.tolist()
    ]
    right[right] = np.array(reaches, np.bool_)[which.reshape(-1)]
    return pl.Series(groups.each(right))


def _reaches_all(way: tuple[str, str, int], known: pl.DataFrame, of_capture: pl.DataFrame, heard: Hearing) -> bool:
    """Whether what goes from one end of a capture to another one, for an address, comes to all that must hear it."""
    sender, receiver, to = way
    capture, _, port = receiver.partition("|")
    if to & GROUP_BIT or sender == receiver or capture in heard.to_itself:
        return False
    if heard.receives_all.get(capture, False):
        return of_capture.filter(capture=capture).height == 2
    return set(known.filter(capture=capture, mac=to)["port"]) <= {port}


def under_way(frames: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """row, under_way: of frames that were on their way when the run ended how many copies were.

    Where the law of a wire is known (`ports.timed`), these are all that may have been: it says of each whether it was
    due. Elsewhere they are as many as the fabric counts of each port, the last ones; with those that it counts as
    received and that the capture, which ended before, does not show. `frames` as of `with_corrupted`, `ports` as of
    `ports_of`.
    """
    nothing = pl.DataFrame(schema={"row": frames.schema["row"], "under_way": pl.Int64})
    found = [nothing]
    came = frames.select("end", "fate", "direction").filter(pl.col("fate").is_null(), pl.col("direction") == INBOUND)
    shown = dict(came.group_by("end").len().iter_rows())
    for end, *port, number, arrived, timed in ports.select(
        "end", "port", "mac", "joins", "undelivered", "arrived", "timed"
    ).iter_rows():
        cut = max(0, arrived - shown.get(end, 0))
        if not timed and number + cut == 0:
            continue
        capture = end.partition("|")[0]
        there = frames.select(_ON_THE_WAY).filter(pl.col("capture") == capture)
        missing = _missing(there, *port)
        # What the capture cuts off arrives behind its last record.
        behind = pl.col("sent_ns") + pl.col("longest_ns") + _SLACK_NS >= pl.lit(there["time_ns"].max())
        counted = missing.head(number + cut).filter(behind | (pl.int_range(pl.len()) < number))
        last = missing.filter(pl.col("sent_ns") >= pl.col("since_ns")) if timed else counted
        found.append(last.group_by("row").agg(under_way=pl.len().cast(pl.Int64)))
    return pl.concat(found).group_by("row").agg(pl.col("under_way").max())


def _missing(frames: pl.DataFrame, port: str, mac: int, joins: bool) -> pl.DataFrame:
    """Copies of frames that never came to a port, the last first: row, sent_ns, `longest_ns` that others were on their
    way, and `since_ns`, from when what was sent may still have been on its way, as what did arrive shows."""
    hears = pl.lit(joins) | (pl.col("eth_target") == mac) | (pl.col("eth_target") & GROUP_BIT != 0)
    seen = pl.col("fate").is_null()
    sent = frames.filter(seen, hears, pl.col("direction") == OUTBOUND, pl.col("interface") != port)
    came = frames.filter(seen, hears, pl.col("direction") == INBOUND, pl.col("interface") == port)
    fates = frames.filter(pl.col("fate_to") == port)
    step = pl.col("fate").replace_strict({LOST: -1, DROPPED: -1, DUPLICATED: 1}, default=0, return_dtype=pl.Int64)
    # What was corrupted has come, too, with other bytes.
    if sent.height + fates.select(step.sum()).item() <= came.height:
        names = ("sent_ns", "longest_ns", "since_ns")
        return pl.DataFrame(schema={**dict.fromkeys(names, pl.Int64()), "row": frames.schema["row"]})
    changed = fates.group_by("octets_hash").agg(change=step.sum())
    table = (
        sent.sort("time_ns")
        .group_by("octets_hash", maintain_order=True)
        .agg(rows=pl.col("row").reverse(), sent_ns=pl.col("time_ns").max(), corrupted=pl.col("corrupted").sum())
        .join(changed, on="octets_hash", how="left")
        .join(
            came.group_by("octets_hash").agg(came=pl.len().cast(pl.Int64), came_ns=pl.col("time_ns").max()),
            on="octets_hash",
            how="left",
        )
        .with_columns(longest_ns=(pl.col("came_ns") - pl.col("sent_ns")).max().fill_null(0))
        .with_columns(
            since_ns=pl.col("sent_ns").filter(pl.col("came") > 0).max().fill_null(0)
            - pl.col("longest_ns")
            - OVERTAKEN_NS,
            missing=pl.col("rows").list.len().cast(pl.Int64)
            - pl.col("corrupted").cast(pl.Int64)
            + pl.col("change").fill_null(0)
            - pl.col("came").fill_null(0),
        )
    )
    return (
        table.filter(pl.col("missing") > 0)
        .sort("sent_ns", descending=True)
        .with_columns(copy=pl.int_ranges(pl.col("missing")))
        .explode("copy")
        .select(
            "sent_ns",
            "longest_ns",
            "since_ns",
            row=pl.col("rows").list.get(pl.min_horizontal("copy", pl.col("rows").list.len().cast(pl.Int64) - 1)),
        )
    )


def _on_the_way(table: pl.DataFrame, heard: Hearing) -> pl.DataFrame:
    """How many frames with the same bytes were lost in front of a switch, or at a station of the segment itself: to
    whom each went, the law of their kind of segment knows."""
    lost = table.filter(pl.col("fate").is_in([DROPPED, LOST]), _before_switch() | at_own_station(heard.own_stations))
    return lost.group_by("capture", "octets_hash").agg(astray=pl.len().cast(pl.Int64))


def _before_switch() -> pl.Expr:
    """Whether the line in front of a switch lost a part of a frame."""
    return pl.col("fate_from").is_not_null() & pl.col("fate_to").is_null()


def at_own_station(own_stations: Mapping[str, Collection[str]]) -> pl.Expr:
    """Whether a frame was dropped on its way to a station of the segment itself (`Hearing.own_stations`)."""
    return pl.any_horizontal(
        pl.lit(False),
        *(
            (pl.col("capture") == capture) & pl.col("fate_to").is_in(list(names))
            for capture, names in own_stations.items()
        ),
    ).fill_null(False)


def _uncorrupted(changes: pl.DataFrame, read: Read) -> pl.DataFrame:
    """The frames that corrupted ones were before, each one less."""
    reports = changes.filter(pl.col("fate") == CORRUPTED)
    return reports.select("capture", "port", hashes_before(reports, read), pl.lit(-1, pl.Int64).alias("step"), "row")


def _fates(table: pl.DataFrame, ports: pl.DataFrame, heard: Hearing) -> pl.DataFrame:
    """Fates that name no port of their segment."""
    reports = table.filter(pl.col("fate").is_not_null()).with_columns(
        where=pl.coalesce("fate_adapter", "fate_from", "fate_to")
    )
    known = ports.select("end", named=True)
    reports = (
        reports.with_columns(end=end_of("where"))
        .join(known, on="end", how="left")
        .with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"))
    )
    return findings(
        reports,
        pl.col("named").is_null() & ~at_own_station(heard.own_stations),
        pl.lit("fate"),
        pl.lit("of a port of the segment"),
        pl.col("comment").fill_null("no comment"),
    )


def _collisions(table: pl.DataFrame) -> pl.DataFrame:
    """A frame that collided is sent, or given up, before its station sends another one. What the adapter refuses
    meanwhile is behind it."""
    reports = table.filter(pl.col("fate") == COLLISION).with_columns(port="fate_adapter")
    if reports.is_empty():
        return none()
    sent = table.filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND).with_columns(port="interface")
    given_up = table.filter(pl.col("fate") == DROPPED, pl.col("fate_rule") == _GIVEN_UP).with_columns(
        port="fate_adapter"
    )
    names = ["capture", "port", "time_ns", "octets_hash", "row"]
    ends = pl.concat([sent.select(names), given_up.drop_nulls("port").select(names)]).sort("time_ns", "row")
    # Reports come before what is sent at the same instant: a frame collides while it is being sent.
    following = reports.sort("time_ns").join_asof(
        ends.rename({"octets_hash": "next_hash", "row": "next_row"}),
        on="time_ns",
        by=["capture", "port"],
        strategy="forward",
        check_sortedness=False,
    )
    wrong = following.filter(pl.col("next_hash") != pl.col("octets_hash")).with_columns(
        call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row", "next_row")
    )
    return findings(
        wrong, pl.lit(True), pl.lit("collision"), pl.format("of the next frame of {}", "port"), pl.lit("of another one")
    )


def _passed_on(table: pl.DataFrame, ports: pl.DataFrame, read: Read) -> pl.DataFrame:
    """Frames that a guest which joins segments sent without having received them."""
    joining = ports.filter("joins").select("end", "machine", "corrupts", "duplicates")
    if joining.is_empty():
        return none()
    seen = table.filter(pl.col("fate").is_null()).join(joining, on="end", how="inner").sort("time_ns", "row")
    out = pl.col("direction") == OUTBOUND
    twice = pl.col("duplicates").any().over("machine")
    key = ["machine", "octets_hash"]
    counted = seen.with_columns(
        # A frame from one port may leave at all others.
        came=(~out).cum_sum().over(key, order_by=["time_ns", "row"]),
        left=out.cum_sum().over([*key, "end"], order_by=["time_ns", "row"]),
        twice=twice,
    )
    wrong = counted.filter(out, (pl.col("left") > pl.col("came")) & ~(pl.col("twice") & (pl.col("came") > 0)))
    changes = pl.col("corrupts")
    if wrong.select(changes.any()).item():
        wrong = wrong.filter(~(changes & pl.col("row").is_in(flipped(table, read, ports)["row"].implode())))
    return findings(
        wrong.with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row")),
        pl.lit(True),
        pl.format("frame sent by {}", "machine"),
        pl.lit("one that it received before"),
        pl.format("{} bytes that it did not", "frame_length"),
    )
