# SPDX-License-Identifier: Apache-2.0
"""Connections and datagrams of services, from the frames of a run or of a capture from elsewhere."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sundial.verify.decoders.traffic import Connection, Datagram, Lane, Service
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.sockets import flows
from sundial.verify.sockets.captured_datagrams import to_all
from sundial.verify.sockets.conversations import Conversation, End
from sundial.verify.sockets.payloads import ip_payloads
from sundial.verify.sockets.protocol import Files
from sundial.verify.sockets.reassembly import Fragment, put_together
from sundial.verify.sockets.stream import Stream

_UDP_HEADER = 8
_UNREACHABLE = 3


def of_service(services: Iterable[Service], transport: str) -> pl.Expr:
    """True of frames with ports from or to one of the services."""
    ports: dict[str | None, list[int]] = {}
    for each in services:
        if each.transport == transport:
            ports.setdefault(each.address, []).append(each.port)
    found = pl.lit(False)
    for own, numbers in ports.items():
        for address, port in (("source", "source_port"), ("target", "target_port")):
            there = pl.col(port).is_in(numbers)
            found = found | (there if own is None else there & (pl.col(address) == own))
    return found.fill_null(False)


def connections(found: Iterable[Conversation]) -> list[Connection]:
    """Those of a run."""
    return [
        Connection(
            {
                reply: Lane(
                    each.server if reply else each.client,
                    each.client if reply else each.server,
                    Stream([(0, way.data)]),
                    way,
                )
                for reply, way in each.ways.items()
            },
            bool(each.reset_rows),
        )
        for each in found
    ]


@dataclass(frozen=True)
class _Whole:
    """A datagram at one place."""

    key: tuple[End, End, int, bytes]
    """Ends, identification and data."""
    begins_ns: int
    ends_ns: int
    rows: list[int]
    to_all: bool


def datagrams(
    frames: pl.DataFrame, files: Files, services: Sequence[Service], ends: Mapping[str, str] | None
) -> list[Datagram]:
    """All that were sent whole from or to the services, in time. `ends`: the port of an address, as `end` of frames;
    without it the end that has most frames of a direction is the view of both."""
    udp = frames.filter(pl.col("protocol") == flows.UDP, pl.col("fate").is_null(), pl.col("source").is_not_null())
    heads = udp.filter(of_service(services, "udp"))
    split = pl.col("more") | (pl.col("fragment_offset") > 0)
    packets = heads.filter(split).select("source", "target", "ip_id").unique()
    pieces = pl.concat(
        [heads.filter(~split), udp.filter(split).join(packets, on=["source", "target", "ip_id"], how="semi")]
    )
    if pieces.is_empty():
        return []
    if ends is None:
        sent = pieces.join(_best(pieces), on=["source", "target", "end"], how="semi")
        return [_datagram(each, [each.begins_ns]) for each in _wholes(sent, files, services)]
    source, target = (
        pl.col(name).replace_strict(ends, default=None, return_dtype=pl.String) for name in ("source", "target")
    )
    end = pl.col("end").cast(pl.String)
    sent = pieces.filter(end == source, pl.col("direction") == OUTBOUND)
    came = pieces.filter(end == target, pl.col("direction") == INBOUND)
    return _matched(_wholes(sent, files, services), _wholes(came, files, services))


def _best(pieces: pl.DataFrame) -> pl.DataFrame:
    counts = pieces.group_by("source", "target", "end").len().sort("len", "end", descending=[True, False])
    return counts.unique(["source", "target"], keep="first").drop("len")


def _wholes(pieces: pl.DataFrame, files: Files, services: Sequence[Service]) -> list[_Whole]:
    """Datagrams put together, of those that are from or to the services."""
    table = pieces.sort("time_ns", "row").with_columns(
        number=pl.int_range(pl.len()).over("end", "source", order_by=["time_ns", "row"]),
        to_all=to_all(),
    )
    names = ["row", "time_ns", "end", "source", "target", "ip_id", "fragment_offset", "more", "number", "to_all"]
    lines = list(table.select(names).iter_rows())
    data = list(ip_payloads(table, files))
    queues: dict[tuple[str, str, str, int], list[Fragment]] = {}
    found: list[_Whole] = []
    for place, (_, at_ns, end, source, target, ip_id, offset, more, number, _) in enumerate(lines):
        if more or offset:
            fragment = Fragment(place, at_ns, number, offset, offset + len(data[place]), more)
            queues.setdefault((end, source, target, ip_id), []).append(fragment)
        else:
            found += _whole([place], lines, data)
    for fragments in queues.values():
        for queue in put_together(fragments):
            if queue.whole:
                found += _whole(sorted(queue.places, key=lambda place: lines[place][6]), lines, data)
    wanted = {(each.address, each.port) for each in services if each.transport == "udp"}
    own = [each for each in found if any({end, (None, end[1])} & wanted for end in each.key[:2])]
    return sorted(own, key=lambda each: (each.begins_ns, each.rows))


def _whole(places: Sequence[int], lines: Sequence[tuple[int, ...]], data: Sequence[bytes]) -> Iterator[_Whole]:
    """Of its fragments in their order; nothing where it has not even a header."""
    whole = b"".join(data[place] for place in places)
    if len(whole) < _UDP_HEADER:
        return
    ports = [int.from_bytes(whole[at : at + 2], "big") for at in (0, 2)]
    length = int.from_bytes(whole[4:6], "big")
    first = lines[places[0]]
    times = [lines[place][1] for place in places]
    key = ((str(first[3]), ports[0]), (str(first[4]), ports[1]), first[5], whole[_UDP_HEADER:length])
    yield _Whole(key, min(times), max(times), [lines[place][0] for place in places], bool(first[9]))


def _matched(sent: Sequence[_Whole], came: Sequence[_Whole]) -> list[Datagram]:
    """What arrived is what was sent last with the same ends, identification and data."""
    times: dict[tuple[End, End, int, bytes], list[int]] = {}
    for each in sent:
        times.setdefault(each.key, []).append(each.begins_ns)
    arrivals: dict[tuple[tuple[End, End, int, bytes], int], list[int]] = {}
    for each in came:
        begun = times.get(each.key, [])
        place = bisect_right(begun, each.ends_ns) - 1
        if place >= 0:
            arrivals.setdefault((each.key, begun[place]), []).append(each.ends_ns)
    return [_datagram(each, arrivals.get((each.key, each.begins_ns), [])) for each in sent]


def _datagram(each: _Whole, arrived_ns: Sequence[int]) -> Datagram:
    source, target, _, data = each.key
    return Datagram(source, target, data, each.begins_ns, arrived_ns, each.rows, each.to_all)


def unreachable(frames: pl.DataFrame) -> frozenset[tuple[End, End]]:
    """Ends of datagrams, source and target, that ICMP said are unreachable (RFC 792)."""
    said = frames.filter(pl.col("protocol") == flows.ICMP, pl.col("icmp_type") == _UNREACHABLE)
    names = ["target", "source_port", "source", "target_port"]
    return frozenset(((near, here), (far, there)) for near, here, far, there in said.select(names).unique().iter_rows())
