# SPDX-License-Identifier: Apache-2.0
"""Conservation: what was sent at one end arrives at the other, but for what the wire is known to have done to it.

For each packet of a call (and each kind of TCP frame of a connection):

    received = sent + passed - lost + duplicated

where `passed` is what guests and devices between segments sent towards the receiver less what they received from the
sender. Frames that they hear and do not pass on, copies that they send elsewhere, and what becomes of those, count for
nothing. `dropped` frames may have been refused before they were seen at the sender's port, those that a cut or a
partition lost may be copies for other ports, `corrupted` ones arrive as something else, which is not in the table, and
others were on their way when the run ended: they leave room below. Since
the bit that was flipped may be one of the key, a corrupted frame counts by what it was before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, pairwise

import polars as pl

from sundial.observe import RunDirectory, octets_of
from sundial.verify.findings import findings, none
from sundial.verify.frames import DROPPED, DUPLICATED, INBOUND, LOST, OUTBOUND
from sundial.verify.groups import Groups, number_of
from sundial.verify.headers.arp import QUEUED, RETRY_NS, asking, retry_ns, unresolved
from sundial.verify.headers.carriage import under_way
from sundial.verify.headers.icmp import Read

QUEUING_NS = 10_000_000
"""More than a router takes from the arrival of a packet to its question for the neighbour."""
_ROWS: dict[str, pl.DataType] = {"row": pl.UInt32(), "step": pl.Int64(), "aside": pl.Boolean()}


@dataclass(frozen=True)
class Transit:
    """Guests and devices that join segments. `ends`: their ports, as `end` of frames."""

    ends: pl.Series
    rows: pl.DataFrame
    """Frames on their way from segment to segment, `step` 1 where one leaves such a port and -1 where it comes in;
    `aside`: fates on segments that are not on the way."""
    under_way: pl.DataFrame
    """As of `carriage.under_way`."""
    severed: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.UInt32))
    """Rows of fates of frames that met a cut or a partition."""


def transit_of(frames: pl.DataFrame, ports: pl.DataFrame, run: RunDirectory | None = None) -> Transit:
    """Of all frames of a run; `ports` as of `headers.ports`. `run`: for the answers of ARP to its routers."""
    last = under_way(frames, ports)
    if run is not None and ports["forwards"].any():
        read = partial(octets_of, files=run.capture_files)
        more = [_unresolved(frames, ports, read, retry_ns(run.clock))]
        if run.clock != "virtual":
            more.append(_too_early(frames, ports))
        last = pl.concat([last, *(each.cast(last.schema) for each in more)])
        last = last.group_by("row").agg(pl.col("under_way").max())
    severed = frames.filter(pl.col("fate") == LOST, pl.col("fate_rule").is_not_null())["row"]
    joining = ports.filter("joins")
    steps, on_way = _ways(joining)
    if steps.is_empty():
        return Transit(joining["end"], pl.DataFrame(schema=_ROWS), last, severed)
    homes = ports.filter(~pl.col("joins")).select("mac", "address", capture=_capture())
    by_address = homes.drop_nulls("address").select(source="address", by_address="capture")
    table = (
        frames.select("row", "capture", "end", "direction", "fate", "eth_source", "eth_target", "source")
        .join(homes.select(eth_source="mac", by_mac="capture"), on="eth_source", how="left")
        # tc-netem on a bridge may flip a bit of the source's MAC address, which no receiver checks.
        .join(by_address, on="source", how="left")
        .join(_flipped(frames["eth_source"], homes), on="eth_source", how="left")
        .with_columns(pl.coalesce("by_mac", "by_address", "by_bit").alias("from"))
        .drop_nulls("from")
        .join(homes.select(eth_target="mac", to="capture"), on="eth_target", how="inner")
    )
    seen = table.filter(pl.col("fate").is_null()).join(steps, on=["from", "to", "end", "direction"], how="inner")
    aside = table.filter(pl.col("fate").is_not_null()).join(on_way, on=["from", "to", "capture"], how="anti")
    return Transit(
        joining["end"],
        pl.concat(
            [
                seen.select("row", "step", aside=pl.lit(False)),
                aside.select("row", step=pl.lit(0, pl.Int64), aside=pl.lit(True)),
            ]
        ),
        last,
        severed,
    )


def _flipped(sources: pl.Series, homes: pl.DataFrame) -> pl.DataFrame:
    """eth_source, by_bit: of addresses that no port has, the home of the one in which one bit is another."""
    known = dict(homes.select("mac", "capture").iter_rows())
    flipped = ((mac ^ (1 << bit), capture) for mac, capture in known.items() for bit in range(48))
    near = {mac: capture for mac, capture in flipped if mac not in known}
    strange = [(source, near[source]) for source in sources.drop_nulls().unique() if source in near]
    return pl.DataFrame(strange, schema={"eth_source": sources.dtype, "by_bit": pl.String}, orient="row")


def _unresolved(frames: pl.DataFrame, ports: pl.DataFrame, read: Read, apart_ns: int = RETRY_NS) -> pl.DataFrame:
    """row, under_way: packets that a router received while ARP had no answer to it. It drops them without a word, and
    while it still asks, those that its queue for the neighbour does not hold. `apart_ns`: as `retry_ns` of
    `headers.arp.unresolved`."""
    routers = ports.filter("forwards").select("end", "machine", "address")
    machines = dict(routers.select("end", "machine").iter_rows())
    asking_of, unresolved_of = asking(frames, machines, read), unresolved(frames, machines, read, apart_ns)
    at_ns = pl.col("time_ns")
    parts = [pl.DataFrame(schema={"row": frames.schema["row"], "under_way": pl.Int64})]
    for name in {**asking_of, **unresolved_of}:
        asked = asking_of.get(name, ())
        own = routers.filter(pl.col("machine") == name)
        came = frames.filter(
            pl.col("end").cast(pl.String).is_in(own["end"].implode()),
            pl.col("direction") == INBOUND,
            pl.col("fate").is_null(),
            pl.col("target").is_not_null() & ~pl.col("target").is_in(own["address"].drop_nulls().implode()),
        )
        during = [at_ns.is_between(begin - RETRY_NS, end) for begin, end in unresolved_of.get(name, ())]
        beyond = ~pl.col("target").is_in(list({address for address, _, _ in asked}))
        waiting = [
            came.filter((pl.col("target") == address) | beyond, at_ns.is_between(begin - QUEUING_NS, end))
            for address, begin, end in asked
        ]
        dropped = [came.filter(pl.any_horizontal(during))] if during else []
        dropped += [each for each in waiting if each.height > QUEUED]
        parts += [each.select("row", under_way=pl.lit(1, pl.Int64)) for each in dropped]
    return pl.concat(parts)


def _too_early(frames: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """row, under_way: packets that came to a router before it had sent anything at another of its ports. Under the real
    clock a machine may still be setting up its interfaces while others begin."""
    routers = ports.filter("forwards").select("machine", end=pl.col("end").cast(pl.String))
    seen = frames.filter(pl.col("fate").is_null()).select("row", "time_ns", "direction", pl.col("end").cast(pl.String))
    seen = seen.join(routers, on="end")
    ready = (
        seen.filter(pl.col("direction") == OUTBOUND)
        .group_by("machine", "end")
        .agg(pl.col("time_ns").min())
        .group_by("machine")
        .agg(ready_ns=pl.col("time_ns").max())
    )
    early = seen.join(ready, on="machine").filter(
        pl.col("direction") == INBOUND, pl.col("time_ns") < pl.col("ready_ns")
    )
    return early.select("row", under_way=pl.lit(1, pl.Int64))


def _capture() -> pl.Expr:
    return pl.col("end").str.extract(r"^([^|]*)")


def _ways(joining: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Between any two captures: the ports that a frame passes, with its direction there and `step`; and the captures
    on the way."""
    joins = []
    for _, part in joining.with_columns(capture=_capture()).group_by("machine", maintain_order=True):
        places = part.select("capture", "end").rows()
        for (one, near), (other, far) in combinations(places, 2):
            joins.append((one, other, {"ends": {one: near, other: far}}))
    steps, on_way = [], []
    if joins:
        import networkx as nx  # takes a third of a second, and few topologies need it

        graph = nx.Graph(joins)
        for begin, ways in nx.all_pairs_shortest_path(graph):
            for end, way in ways.items():
                on_way += [(begin, end, capture) for capture in way]
                for one, other in pairwise(way):
                    ends = graph.edges[one, other]["ends"]
                    steps += [(begin, end, ends[one], INBOUND, -1), (begin, end, ends[other], OUTBOUND, 1)]
    names = ["from", "to", "end", "direction", "step"]
    kinds = (pl.String, pl.String, pl.String, pl.UInt8, pl.Int64)
    return (
        pl.DataFrame(steps, schema=dict(zip(names, kinds, strict=True)), orient="row"),
        pl.DataFrame(on_way, schema=dict.fromkeys(["from", "to", "capture"], pl.String), orient="row"),
    )


def check_balance(frames: pl.DataFrame, key: list[str], what: pl.Expr, transit: Transit) -> pl.DataFrame:
    """Findings for each `key` whose frames do not balance; `what` says in words which packet a key is.

    `frames` need row, call (null for none), reply, view, fate, direction, end, corrupted (see `with_corrupted`).
    """
    frames = frames.filter(~_plainly_balanced(frames, key, transit))
    if frames.is_empty():
        return none()
    frames = (
        frames.join(transit.rows, on="row", how="left")
        .join(transit.under_way, on="row", how="left")
        .with_columns(pl.col("step", "under_way").fill_null(0), pl.col("aside").fill_null(False))
    )
    fate = pl.col("fate")
    # Copies for other ports may be lost to a cut or a partition as well.
    severed = pl.col("row").is_in(transit.severed.implode())
    table = frames.group_by(key).agg(
        sent=_number(pl.col("view") == "sent"),
        received=_number(pl.col("view") == "received"),
        passed=pl.col("step").sum(),
        lost=_number((fate == LOST) & ~severed & ~pl.col("aside")),
        duplicated=_number((fate == DUPLICATED) & ~pl.col("aside")),
        dropped=_number(((fate == DROPPED) | severed) & ~pl.col("aside")),
        corrupted=pl.col("corrupted").sum().cast(pl.Int64),
        under_way=pl.col("under_way").sum(),
    )
    most = pl.col("sent") + pl.col("passed") - pl.col("lost") + pl.col("duplicated")
    least = most - pl.col("dropped") - pl.col("corrupted") - pl.col("under_way")
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


def _plainly_balanced(frames: pl.DataFrame, key: list[str], transit: Transit) -> pl.Series:
    """Frames of each `key` that was received as often as sent while nothing else happened to it: nearly all."""
    other = pl.concat([transit.rows["row"].cast(pl.UInt32), transit.under_way["row"].cast(pl.UInt32)])
    columns = frames.select(
        key=number_of(*key),
        net=(pl.col("view") == "sent").fill_null(False).cast(pl.Int32)
        - (pl.col("view") == "received").fill_null(False).cast(pl.Int32),
        plain=pl.col("fate").is_null() & (pl.col("corrupted") == 0) & ~pl.col("row").is_in(other.implode()),
    )
    groups = Groups(columns["key"])
    balanced = (groups.sums(columns["net"]) == 0) & (groups.sums(~columns["plain"]) == 0)
    return pl.Series(groups.each(balanced))


def _number(where: pl.Expr) -> pl.Expr:
    return where.fill_null(False).sum().cast(pl.Int64)
