# SPDX-License-Identifier: Apache-2.0
"""Reads the ladder of a call from a run directory: which row of the samples it is, and its frames in the captures.

A frame belongs to the call if it passed one of the two machines, or what forwards between them, from the call's
beginning to the beginning of the next call of its flow, between the ports of the flow.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from sundial.errors import BadInput
from sundial.observe import RunDirectory, open_run
from sundial.observe.fates import record_of
from sundial.observe.pcap import ETHERNET_LINK, Capture, Interface, open_capture
from sundial.observe.pcapng import BYTE_ORDER, ENHANCED, SECTION, comments_alone
from sundial.observe.stamps import options, stamps
from sundial.observe.tshark import list_frames
from sundial.printable import printable
from sundial.report import registry, viewer
from sundial.report.ladder import Arrow, Fate, Ladder, Row, Sighting, arrows, in_time, rows
from sundial.report.ladder_frames import ARP, ICMP, Head, read_head, tcp_words
from sundial.verify.samples import load_samples

SLOWEST, FINDING = "slowest", "finding"
"""Words for a call instead of its number."""
TAIL_NS = 100_000_000
"""So long after a call its last acknowledgements are looked for, unless another call begins."""
ARRIVES_NS = 1_000_000_000
"""So much later a frame arrives at most that is sent in the time of the call."""
MOST_FRAMES = 200_000
"""Records in the time of a call that are read at most."""
MOST_WORDS = 5_000
"""Frames that tshark is asked for words for."""
_End = tuple[str, int]
"""Address and port."""
_FATE = ":fate"
_IP_PROTOCOLS = {"udp": 17, "tcp": 6}


def calls_of(run: RunDirectory) -> pl.DataFrame:
    """All calls of a run, in the order of samples.parquet, numbered in the column `id`; with `verdict` and
    `retransmissions` if the run was verified. Raises BadInput."""
    table = _samples(run).with_row_index("id")
    path = run.path / "observed.parquet"
    if path.is_file():
        observed = pl.read_parquet(path)
        names = ("verdict", "retransmissions", "call_first_tx_ns", "reply_last_rx_ns")
        if observed.height == table.height:
            table = table.with_columns(observed[name] for name in names if name in observed.columns)
    lacking = [name for name in ("verdict", "retransmissions") if name not in table.columns]
    return table.with_columns(pl.lit(None).alias(name) for name in lacking)


def _samples(run: RunDirectory) -> pl.DataFrame:
    path = run.path / "samples.parquet"
    if not path.is_file():
        return load_samples(run).table.drop("id")
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise BadInput("is not readable as Parquet", file=str(path), allowed="what 'sundial run' wrote") from error


def number_of(calls: pl.DataFrame, asked: str, file: str) -> int:
    """The number of the call that is asked for: a number, SLOWEST or FINDING. Raises BadInput."""
    if calls.is_empty():
        raise BadInput("the run has no calls", file=file)
    allowed = f"0 to {calls.height - 1}, {SLOWEST} or {FINDING}"
    if asked == SLOWEST:
        found = slowest(calls)
    elif asked == FINDING:
        found = first_finding(calls)
        if found is None:
            raise BadInput("no call of the run has a finding", field="--call", file=file, allowed=allowed)
    else:
        found = int(asked) if asked.isascii() and asked.isdigit() else -1
        if not 0 <= found < calls.height:
            raise BadInput(f"--call: there is no call {asked}", file=file, allowed=allowed)
    return found if found is not None else 0


def slowest(calls: pl.DataFrame) -> int | None:
    """The number of the call that took longest, of those that were measured."""
    measured = calls.filter(~pl.col("warmup")) if not calls["warmup"].all() else calls
    timed = measured.filter(pl.col("rtt_ns").is_not_null())
    return None if timed.is_empty() else int(timed.sort("rtt_ns", "id", descending=[True, False])["id"][0])


def first_finding(calls: pl.DataFrame) -> int | None:
    """The number of the first call that verification found a mismatch in."""
    failed = calls.filter(pl.col("verdict") == "fail")
    return None if failed.is_empty() else int(failed["id"][0])


def notable(calls: pl.DataFrame, most: int) -> pl.DataFrame:
    """The calls worth looking at, in order: with a finding, that failed, that were sent again; then the slowest."""
    trouble = calls.filter(
        (pl.col("verdict") == "fail").fill_null(value=False)
        | ~pl.col("ok")
        | (pl.max_horizontal("retransmissions", "retransmits") > 0).fill_null(value=False)
    ).head(most)
    slow = calls.filter(~pl.col("warmup")).sort("rtt_ns", "id", descending=[True, False], nulls_last=True)
    return pl.concat([trouble, slow.head(max(1, most - trouble.height))]).unique("id", maintain_order=True)


@dataclass(frozen=True)
class _Call:
    """The row of the call, and what its frames can be known by."""

    row: Mapping[str, Any]
    run: RunDirectory
    from_ns: int
    to_ns: int

    @property
    def ends(self) -> tuple[str, str]:
        return str(self.row["client"]), str(self.row["server"])

    @property
    def addresses(self) -> set[str]:
        return {str(self.row["client_address"]), str(self.row["server_address"])}

    @property
    def ports(self) -> set[int]:
        return {int(self.row[name]) for name in ("client_port", "server_port") if self.row[name] is not None}

    @property
    def macs(self) -> set[bytes]:
        nodes = [self.run.nodes[name] for name in self.ends if name in self.run.nodes]
        found = [interface.mac for node in nodes for interface in node.interfaces if interface.mac]
        return {bytes.fromhex(mac.replace(":", "")) for mac in found}


def read_ladder(directory: Path, asked: str, *, everything: bool = False, before: Sequence[str] = ()) -> Ladder:
    """The ladder of a call: its number, SLOWEST or FINDING. `before`: words in front of tshark.

    Raises BadInput for a call that is not there and a run without captures, HostLacks.
    """
    run = open_run(directory)
    calls = calls_of(run)
    number = number_of(calls, asked, str(directory))
    return ladder_of(run, calls, number, everything=everything, before=before)


def ladder_of(
    run: RunDirectory, calls: pl.DataFrame, number: int, *, everything: bool = False, before: Sequence[str] = ()
) -> Ladder:
    """The same of a call that is there, of `calls_of`."""
    files = [run.path / name for name in sorted(run.captures) if (run.path / name).is_file()]
    if not files:
        raise BadInput("has no captures", file=str(run.path), allowed="a run that kept wire/*.pcapng")
    row = calls.row(number, named=True)
    call = _Call(row, run, *_window(run, calls, row))
    seen, fates = _read(call, files)
    parties = _parties(call, seen)
    loop = call.ends[0] == call.ends[1]
    ways = arrows(seen, fates, [call.ends[0]] if loop else parties)
    ways = [arrow for arrow in ways if arrow.target is None or arrow.target in parties]
    ways = _worded(ways, seen, call, _shown(seen, call, files, before))
    if loop:
        parties = [f"{call.ends[0]} (client)", f"{call.ends[0]} (server)"]
        ways = [_looped(arrow, parties, call) for arrow in ways]
    drawn, hidden = rows(ways, [*_events(call, parties), *_notes(call, files)], everything=everything)
    remarks = [] if ways else ["No frame of this call is in the captures: a one-way call may leave with a later one."]
    return Ladder(
        _title(number, row), _outcome(row), tuple(parties), call.from_ns, tuple(drawn), tuple(remarks),
        tuple(ways), hidden,
    )  # fmt: skip


def _window(run: RunDirectory, calls: pl.DataFrame, row: Mapping[str, Any]) -> tuple[int, int]:
    """From when to when its frames are looked for, in ns of the run."""
    begins, start, end = "start_ns", row["start_ns"], row["end_ns"]
    if run.clock != "virtual" and row.get("call_first_tx_ns") is not None:
        # Guests' clocks are apart from that of the captures: its frames tell.
        begins, start = "call_first_tx_ns", row["call_first_tx_ns"]
        end = max(start, row["reply_last_rx_ns"] or start)
    # Without ports of UDP or TCP, all frames between the two machines are shown.
    named = ("client_port", "thread") if row["transport"] in _IP_PROTOCOLS else ()
    same = [name for name in ("client", "server", *named) if row[name] is not None]
    later = calls.filter(pl.all_horizontal(pl.col(name) == row[name] for name in same), pl.col(begins) > start)
    following: list[int] = later[begins].sort().head(1).to_list()
    return int(start), int(max(end, min([end + TAIL_NS, *following])))


def _read(call: _Call, files: Sequence[Path]) -> tuple[list[Sighting], list[Fate]]:
    seen: list[Sighting] = []
    fates: list[Fate] = []
    client = registry.client(str(call.row["app"]))
    for path in files:
        capture = open_capture(path)
        try:
            records = list(_records(capture, call))
        finally:
            capture.close()
        read = {
            link: partial(read_head, ethernet=link == ETHERNET_LINK, repeats=client.repeats)
            for link in {record.link for record in records}
        }
        heads = [read[record.link](record.frame) for record in records]
        known = {head.packet for head in heads if head.packet and head.ports and _of_flow(call, head)}
        for record, head in zip(records, heads, strict=True):
            if not (_belongs(call, head) or head.packet in known):
                continue
            if record.port.endswith(_FATE):
                fate = _fate(path.stem, record, head, read[record.link])
                if fate is not None and not (fate.refused and fate.at_ns >= call.to_ns):
                    fates.append(fate)
            else:
                seen.append(
                    Sighting(record.at_ns, path.stem, record.port, record.sent, record.number, record.length, head)
                )
    return seen, fates


@dataclass(frozen=True)
class _Record:
    at_ns: int
    port: str
    sent: bool
    number: int
    length: int
    frame: bytes
    comment: str
    link: int


def _records(capture: Capture, call: _Call) -> Iterator[_Record]:
    """All records of a capture within the call's time."""
    for place, interface in enumerate(capture.interfaces):
        if not len(interface.blocks):
            continue
        at = stamps(capture, interface).fill_null(-1).to_numpy() - call.run.epoch_ns
        which = np.flatnonzero((at >= call.from_ns) & (at < call.to_ns + ARRIVES_NS))
        if len(which) > MOST_FRAMES:
            raise BadInput(
                f"{len(which)} frames passed {interface.name} during the call",
                file=str(capture.path),
                allowed=f"a call with at most {MOST_FRAMES}",
            )
        part = replace(interface, blocks=interface.blocks[which])
        direction, comment, _ = options(capture, part)
        loop = _is_second(capture.interfaces, place)
        columns = (part.blocks[name].tolist() for name in ("number", "original"))
        for found, number, length, when, way, text in zip(
            part.each(), *columns, at[which].tolist(), direction.tolist(), comment.to_list(), strict=True
        ):
            sent = way == 2 if not interface.name.endswith(":lo") else not loop
            if sent and when >= call.to_ns:
                continue
            frame = capture.packet(found)
            yield _Record(when, interface.name, sent, number, length, frame, text or "", interface.link_type)


def _is_second(interfaces: Sequence[Interface], place: int) -> bool:
    """True for the interface of a loopback that has frames as they were received."""
    return any(each.name == interfaces[place].name for each in interfaces[:place])


def _of_flow(call: _Call, head: Head) -> bool:
    """True for UDP and TCP between the ports of the call."""
    if {head.source, head.target} != call.addresses or head.ports is None:
        return False
    wanted = _IP_PROTOCOLS.get(str(call.row["transport"]), head.protocol)
    return head.protocol == wanted and call.ports <= set(head.ports)


def _belongs(call: _Call, head: Head) -> bool:
    if head.type == ARP or head.protocol == ICMP:
        return bool({head.source, head.target} & call.addresses)
    if head.source:
        return _of_flow(call, head)
    if head.mac is None or not call.macs:  # neither Ethernet nor IP: the ports tell
        return True
    return set(head.mac) <= call.macs


def _fate(segment: str, record: _Record, head: Head, read: partial[Head]) -> Fate | None:
    found = record_of(record.comment)
    if found is None:
        return None
    fields = found.record
    kind = str(fields["fate"])
    leaving: Hashable = head.key
    if kind == "corrupted" and fields["byte"] < len(record.frame):
        before = bytearray(record.frame)
        before[fields["byte"]] ^= 1 << fields["bit"]
        leaving = read(bytes(before)).key
    words = record.comment.partition(" | ")[0]
    sender = fields.get("adapter", fields.get("from"))
    return Fate(
        record.at_ns, segment, record.number, record.length, leaving, head.key, head, kind, words, sender,
        fields.get("to"), kind == "dropped" and "adapter" in fields, fields.get("bits"),
    )  # fmt: skip


def _parties(call: _Call, seen: Sequence[Sighting]) -> list[str]:
    """Client, what forwards in the order in which it first sent, server."""
    client, server = call.ends
    senders = dict.fromkeys(each.party for each in sorted(seen, key=lambda each: each.at_ns) if each.sent)
    forwards = [name for name in senders if name not in (client, server) and _forwards(call, name, seen)]
    return list(dict.fromkeys([client, *forwards, server]))


def _forwards(call: _Call, party: str, seen: Sequence[Sighting]) -> bool:
    """True if it sent more than its own ARP."""
    return any(each.sent and each.party == party and each.head.type != ARP for each in seen) or (
        party not in call.run.nodes
    )


def _looped(arrow: Arrow, parties: Sequence[str], call: _Call) -> Arrow:
    """Of a machine that calls itself: the ports tell its two ends apart."""
    back = arrow.head.ports is not None and arrow.head.ports[0] == call.row["server_port"]
    source, target = reversed(parties) if back else parties
    return replace(arrow, source=source, target=None if arrow.target is None else target)


# ---- words ----


def _shown(
    seen: Sequence[Sighting], call: _Call, files: Sequence[Path], before: Sequence[str]
) -> dict[tuple[str, int], str]:
    """What Wireshark shows of frames that client and server sent, by segment and number of the frame."""
    found: dict[tuple[str, int], str] = {}
    for path in files:
        sent = [each for each in seen if each.segment == path.stem and each.sent and each.party in call.ends]
        sent.sort(key=lambda each: (each.at_ns, each.number))
        if not sent or len(sent) > MOST_WORDS:
            continue
        capture = open_capture(path)
        try:
            stream = list(_stream(capture, [each.number for each in sent]))
        finally:
            capture.close()
        look = ["-o", "ip.defragment:FALSE", *viewer.dissection(path)]
        lines = list(list_frames(partial(_write_all, stream), ("%p", "%i"), options=look, before=before, name=path))
        if len(lines) == len(sent):
            found |= {
                (path.stem, each.number): _words(protocol, info)
                for each, (protocol, info) in zip(sent, lines, strict=True)
            }
    return found


def _write_all(parts: Sequence[bytes], to: IO[bytes]) -> None:
    to.writelines(parts)


def _stream(capture: Capture, numbers: Sequence[int]) -> Iterator[bytes]:
    """Frames of a capture as a capture of one interface, in the order given."""
    first = next(interface for interface in capture.interfaces if not interface.name.endswith(_FATE))
    order = first.order
    places = {
        number: (offset, total)
        for interface in capture.interfaces
        for number, offset, total in zip(
            *(interface.blocks[name].tolist() for name in ("number", "offset", "total")), strict=True
        )
    }
    yield struct.pack(f"{order}IIIHHqI", SECTION, 28, BYTE_ORDER, 1, 0, -1, 28)
    yield first.description
    for number in numbers:
        offset, total = places[number]
        data = capture.data[offset : offset + total]
        assert struct.unpack_from(f"{order}I", data) == (ENHANCED,)
        yield data[:8] + bytes(4) + data[12:]


_TRANSPORTS = frozenset({"UDP", "TCP", "IPv4", "ARP", "ICMP", ""})
"""Protocols of whose frames the ladder has words of its own."""


_LINKS = re.compile(r"\s*[\[(](?:(?:Call|Reply|Request|Response|Reassembled) [Ii]n|RPC \w+ of) #?\d+[\])]")
_UNKNOWN = re.compile(r"Unknown RPC program \d+")


def _words(protocol: str, info: str) -> str:
    """Empty where the ladder's own words say as much."""
    if protocol.upper() in {name.upper() for name in _TRANSPORTS}:
        return ""
    # Links are numbers of what tshark was given, not of the capture.
    return printable(_UNKNOWN.sub("RPC", _LINKS.sub(" ", f"{protocol} {info}")).replace("  ", " ").strip())


def _worded(
    ways: Sequence[Arrow], seen: Sequence[Sighting], call: _Call, shown: Mapping[tuple[str, int], str]
) -> list[Arrow]:
    """With words: of sequence numbers relative to the first of the call, and of what Wireshark shows."""
    bases = _bases(seen, call)
    known: dict[Hashable, str] = {}
    for each in seen:
        text = shown.get((each.segment, each.number))
        if text:
            known.setdefault(_carried(each.head), text)
    return [replace(arrow, words=_said(arrow.head, bases, known.get(_carried(arrow.head), ""))) for arrow in ways]


def _bases(seen: Sequence[Sighting], call: _Call) -> dict[_End, int]:
    """By end of a connection: the sequence number of the first byte that it sends in the call."""
    sent = [each.head for each in sorted(seen, key=lambda each: each.at_ns) if each.sent and each.party in call.ends]
    segments = [(_ends(head)[0], head.tcp) for head in sent if head.tcp is not None]
    bases: dict[_End, int] = {}
    for end, segment in segments:
        if segment.length:
            bases.setdefault(end, segment.seq)
    for end, segment in segments:  # of what sends no data; a SYN counts as a byte before it
        bases.setdefault(end, segment.seq + (segment.flags >> 1 & 1))
    return bases


def _ends(head: Head) -> tuple[_End, _End]:
    source, target = head.ports or (0, 0)
    return (head.source, source), (head.target, target)


def _carried(head: Head) -> Hashable:
    """The same on all segments of a packet's way: a router changes the time to live and the checksum."""
    if isinstance(head.key, bytes) and head.source and head.type != ARP:
        return head.key[:8] + head.key[9:10] + head.key[12:]
    return head.key


def _said(head: Head, bases: Mapping[_End, int], shown: str) -> str:
    own = head.words
    if head.tcp is not None:
        source, target = _ends(head)
        own = tcp_words(head.tcp, bases.get(source, head.tcp.seq), bases.get(target, head.tcp.ack))
    if head.part is not None and head.part.offset:
        return own
    return f"{shown} [{own}]" if shown and (head.tcp is not None or head.part is not None) else shown or own


def _events(call: _Call, parties: Sequence[str]) -> list[Row]:
    row = call.row
    if call.run.clock != "virtual":
        return []  # guests' clocks are apart from that of the captures
    ended = "call ends" if row["ok"] else f"call fails: {row.get('error') or 'no reason given'}"
    return [
        Row(int(row["start_ns"]), party=parties[0], event="call begins"),
        Row(int(row["end_ns"]), party=parties[0], event=ended),
    ]


def _notes(call: _Call, files: Sequence[Path]) -> Iterator[Row]:
    """Comments of the captures that belong to no frame, such as events of a timeline."""
    for path in files:
        for at, words in comments_alone(path):
            if call.from_ns <= at - call.run.epoch_ns < call.to_ns:
                yield Row(at - call.run.epoch_ns, event=f"{path.stem}: {printable(words)}")


def _title(number: int, row: Mapping[str, Any]) -> str:
    xid = f", xid {row['xid']:#x}" if row.get("xid") is not None else ""
    kind = f"{registry.client(str(row['app'])).label}, {row['transport']} {row['procedure']}, {row['size']} B{xid}"
    return f"call {number} of the run: {row['client']} to {row['server']} ({kind})"


def _outcome(row: Mapping[str, Any]) -> str:
    parts = ["ok" if row["ok"] else f"failed ({row.get('error') or 'no reason given'})"]
    if row.get("rtt_ns") is not None:
        parts.append(f"round trip {in_time(int(row['rtt_ns']))}")
    again = row.get("retransmissions")
    again = row.get("retransmits") if again is None else again
    if again:
        parts.append(f"{again} retransmission{'s' if again > 1 else ''}")
    if row.get("warmup"):
        parts.append("warm-up")
    if row.get("verdict"):
        parts.append(f"verdict {row['verdict']}")
    return ", ".join(parts)
