# SPDX-License-Identifier: Apache-2.0
"""Captures to one table of frames, exact and with the frame numbers that Wireshark shows for the original file.

Why tshark is called as it is:

* `ip.defragment:FALSE`: every fragment keeps its own row; the first still shows UDP and the RPC header.
* each interface of a capture is dissected alone: the same frame at two ports is not a retransmission. Where they hold
  few frames, one tshark does one after another and forgets all between them: its start costs more than they do. Where
  they hold many, what one port has seen as another did is dissected once, and by several tsharks (`sharing.py`).
* kinds of workloads say which fields of theirs are shown, on which ports they are, and how tshark is to treat them
  (`workload.Dissection`).
* frames that carry no TCP are cut to their headers before tshark sees them; lengths are those of the original.

What is beside tshark's fields is read from the bytes, and some fields are read twice (`headers.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl

from sundial.errors import BadInput
from sundial.observe.headers import HEADER_COLUMNS, header_columns, read_differently
from sundial.observe.octets import Numbers
from sundial.observe.pcap import ETHERNET_LINK, Capture, Interface, open_capture
from sundial.observe.sharing import shares
from sundial.observe.stamps import options, stamps
from sundial.observe.tshark import AGGREGATOR, dissect
from sundial.observe.workload import Dissection, Field, ServerPorts, dissections

SNAP = 160
"""Ethernet, IP with options, UDP and the fixed part of an RPC call or the header of a raw payload."""

_FIELDS = (
    Field("ip_id", "ip.id", "number"),
    Field("fragment_units", "ip.frag_offset", "number"),
    Field("ip_length", "ip.len", "number"),
    Field("ip_header", "ip.hdr_len", "number"),
    Field("protocol", "ip.proto", "number"),
    Field("udp_source", "udp.srcport", "number"),
    Field("udp_target", "udp.dstport", "number"),
    Field("udp_length", "udp.length", "number"),
    Field("tcp_source", "tcp.srcport", "number"),
    Field("tcp_target", "tcp.dstport", "number"),
    Field("tcp_seq", "tcp.seq_raw", "number"),
    Field("tcp_length", "tcp.len", "number"),
    Field("tcp_flags", "tcp.flags", "number"),
    Field("tcp_mss", "tcp.options.mss_val", "number"),
    Field("tcp_timestamp", "tcp.options.timestamp.tsval", "number"),
    Field("icmp_type", "icmp.type", "number"),
    Field("ethertype", "eth.type", "all"),
    Field("source", "ip.src", "first"),
    Field("target", "ip.dst", "first"),
    Field("more_text", "ip.flags.mf", "first"),
    Field("udp_head", "udp.payload", "octets"),
)
_FEW = 20_000
"""Frames that one tshark dissects of several interfaces, each filled up to the longest."""
_AT_ONCE = 250_000
"""Frames that are dissected side by side: a tshark takes 160 MB, and up to 1 kB for each frame."""
_PIECE = 25_000
"""Frames whose bytes are read at once."""
_OPTIONS = (
    "-o ip.defragment:FALSE",
    "-o tcp.relative_sequence_numbers:FALSE",
    # What is not shown takes memory for each frame.
    "-o tcp.calculate_timestamps:FALSE",
    "-o tcp.track_bytes_in_flight:FALSE",
    "-o udp.calculate_timestamps:FALSE",
)

FRAME_COLUMNS: dict[str, type[pl.DataType]] = {
    "capture": pl.String,
    "interface": pl.String,
    "frame": pl.UInt32,
    "time_ns": pl.Int64,
    "direction": pl.UInt8,
    "frame_length": pl.UInt32,
    "captured_length": pl.UInt32,
    "ethertype": pl.Categorical,
    "source": pl.String,
    "target": pl.String,
    "ip_id": pl.UInt32,
    "more": pl.Boolean,
    "fragment_offset": pl.UInt32,
    "ip_length": pl.UInt32,
    "ip_header": pl.UInt32,
    "protocol": pl.UInt32,
    "source_port": pl.UInt32,
    "target_port": pl.UInt32,
    "udp_length": pl.UInt32,
    "udp_head": pl.String,
    "tcp_seq": pl.UInt32,
    "tcp_length": pl.UInt32,
    "tcp_flags": pl.UInt32,
    "tcp_mss": pl.UInt32,
    "tcp_timestamp": pl.UInt32,
    "icmp_type": pl.UInt32,
    "comment": pl.String,
    "octets_begin": pl.Int64,
    "octets_hash": pl.Int64,
    "read_differently": pl.String,
    **HEADER_COLUMNS,
}
"""Of every frame; `frame_columns` has those of kinds as well.

Lengths and offsets in bytes, `time_ns` since zero of the run, `direction` 0 unknown, 1 inbound, 2 outbound.

`source_port` and `target_port` are null in fragments after the first. `udp_head` is the beginning of the UDP payload in
hexadecimal (tshark does not dissect an RPC reply whose call it has not seen).

The last columns come from the captured bytes themselves (`octets.py`, `headers.py`), which begin at `octets_begin` of
the file; `octets_hash` is the same for equal frames; `read_differently` names fields that tshark shows otherwise.
"""


def frame_columns() -> dict[str, type[pl.DataType]]:
    """Columns of the table of frames."""
    columns = dict(FRAME_COLUMNS)
    for kind in dissections().values():
        columns |= {field.column: field.dtype for field in kind.fields}
        columns |= kind.computed
    return columns


def read_frames(
    files: Iterable[tuple[Path, str]], epoch_ns: int, servers: Mapping[str, ServerPorts] | None = None
) -> pl.DataFrame:
    """All frames of some captures, each given with the name to show for it: a table with `frame_columns`.

    `servers`: known ports by kind of workload. Sorted by capture, interface and frame. Raises BadInput for a capture
    that cannot be read.
    """
    opened: list[tuple[Capture, str]] = []
    try:
        for path, name in files:
            opened.append((open_capture(path), name))
        return read_opened(opened, epoch_ns, servers)
    finally:
        for capture, _ in opened:
            capture.close()


def read_opened(
    opened: Iterable[tuple[Capture, str]], epoch_ns: int, servers: Mapping[str, ServerPorts] | None = None
) -> pl.DataFrame:
    """The same of open captures, or of parts of one (`division.py`)."""
    workers = os.cpu_count() or 1
    pieces: list[pl.DataFrame] = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        # All are asked for before the first is waited for.
        for capture, name, shown in [(*each, _shown_of(*each, servers or {}, pool, workers)) for each in opened]:
            some = [part for each in shown() for part in each.slices()]
            pieces += pool.map(partial(_piece, capture, name, epoch_ns=epoch_ns), some)
            capture.forget()
    return _together(pieces)


@dataclass(frozen=True)
class _Shown:
    """What tshark shows of frames of one interface; hashes of their bytes, where they are known."""

    interface: Interface
    table: pl.DataFrame
    hashes: Numbers | None = None

    def slices(self) -> Iterator[_Shown]:
        """Some frames after others."""
        for first in range(0, self.table.height, _PIECE):
            blocks = self.interface.blocks[first : first + _PIECE]
            hashes = None if self.hashes is None else self.hashes[first : first + _PIECE]
            yield _Shown(replace(self.interface, blocks=blocks), self.table.slice(first, _PIECE), hashes)


def _shown_of(
    capture: Capture, name: str, servers: Mapping[str, ServerPorts], pool: ThreadPoolExecutor, workers: int
) -> Callable[[], list[_Shown]]:
    """Begins to dissect the interfaces of a capture; what is answered waits for that."""
    groups = _groups(capture)
    few = [group for group in groups if not _many(capture, group)]
    many = [group[0] for group in groups if _many(capture, group)]
    together = [(group, pool.submit(_dissect, capture, group, _carried(capture, group), servers)) for group in few]
    most = max((len(interface.blocks) for interface in many), default=0)
    apart = []
    # What is put together has the same columns, and was dissected by the same rules.
    carried = _carried(capture, many)
    for share in shares(capture, many, max(workers, -(-most * workers // _AT_ONCE))):
        parts = [replace(share.interface, blocks=share.interface.blocks[part]) for part in share.parts if len(part)]
        apart.append((share, [pool.submit(_dissect, capture, [part], carried, servers) for part in parts]))

    def wait() -> list[_Shown]:
        shown = [
            _Shown(interface, table)
            for group, job in together
            for interface, table in zip(group, job.result(), strict=True)
        ]
        tables: list[pl.DataFrame] = []
        for share, jobs in apart:
            tables.append(share.assembled([table for job in jobs for table in job.result()], tables))
            shown.append(_Shown(share.interface, tables[-1], share.hashes))
        places = {id(interface): place for place, interface in enumerate(capture.interfaces)}
        return sorted(shown, key=lambda each: places[id(each.interface)])

    return wait


def _many(capture: Capture, group: Sequence[Interface]) -> bool:
    """Whether its frames are worth more than one tshark."""
    return len(group) == 1 and len(group[0].blocks) > _FEW and not capture.classic


def _groups(capture: Capture) -> list[list[Interface]]:
    """Interfaces with frames, in their order; those that one tshark dissects together."""
    groups: list[list[Interface]] = []
    for interface in capture.interfaces:
        if not len(interface.blocks):
            continue
        group = groups[-1] if groups else []
        most = max(len(each.blocks) for each in [*group, interface])
        if not group or capture.classic or most * (len(group) + 1) > _FEW:
            groups.append([])
        groups[-1].append(interface)
    return groups


def _dissect(
    capture: Capture,
    group: Sequence[Interface],
    carried: Mapping[str, Dissection],
    servers: Mapping[str, ServerPorts],
) -> list[pl.DataFrame]:
    """What one tshark shows of the frames of each interface, without columns of kinds that are not carried."""
    fields = [*_FIELDS, *(field for each in carried.values() for field in each.fields)]
    options = [*_OPTIONS, *(option for kind, each in carried.items() for option in each.options(servers.get(kind, {})))]
    asked = list(dict.fromkeys(field.tshark for field in fields))
    found: list[list[pl.DataFrame]] = [[] for _ in group]
    for place, text in _dissected(capture, group, asked, options):
        found[place].append(text.select(**_shown(text, fields)))
    return [pl.concat(tables) for tables in found]


def _carried(capture: Capture, group: Sequence[Interface]) -> dict[str, Dissection]:
    return {
        kind: each
        for kind, each in dissections().items()
        if any(each.carried_by(capture, interface) for interface in group)
    }


def _dissected(
    capture: Capture, group: Sequence[Interface], asked: Sequence[str], options: Sequence[str]
) -> Iterator[tuple[int, pl.DataFrame]]:
    """What tshark says of some frames, and which interface of the group they are of."""
    most = max(len(interface.blocks) for interface in group)
    reset = [f"-M {most}"] if len(group) > 1 else []
    place = 0
    for table in dissect(capture.sections(group, SNAP, most), asked, options=[*options, *reset], name=capture.path):
        done = 0
        while done < table.height and place < most * len(group):
            number, first = divmod(place, most)
            height = min(table.height - done, most - first)
            some = min(height, len(group[number].blocks) - first)
            if some > 0:
                yield number, table.slice(done, some)
            done, place = done + height, place + height
        place += table.height - done
    frames = most * (len(group) - 1) + len(group[-1].blocks)
    if place != frames:
        what = f"tshark read {place} of {frames} frames"
        raise BadInput(what, file=str(capture.path), allowed="a capture that tshark can read")


def _piece(capture: Capture, name: str, shown: _Shown, *, epoch_ns: int) -> pl.DataFrame:
    """Columns of some frames at one interface; without those of kinds that are not there."""
    interface, blocks = shown.interface, shown.interface.blocks
    octets = capture.octets(interface)
    headers = header_columns(octets, ethernet=interface.link_type == ETHERNET_LINK)
    direction, comment, _ = options(capture, interface)
    computed = [
        series for each in _carried(capture, [interface]).values() for series in each.compute(capture, interface)
    ]
    columns = {column: kind for column, kind in frame_columns().items() if column != "read_differently"}
    table = shown.table.with_columns(
        pl.Series("captured_length", blocks["captured"]),
        pl.Series("frame_length", blocks["original"]),
        pl.Series("frame", blocks["number"]),
        pl.Series("octets_begin", octets.begin),
        pl.Series("octets_hash", octets.hashes() if shown.hashes is None else shown.hashes),
        pl.Series("direction", direction),
        comment.alias("comment"),
        (stamps(capture, interface) - epoch_ns).alias("time_ns"),
        *headers.select(HEADER_COLUMNS.keys()),
        *computed,
        capture=pl.lit(name),
        interface=pl.lit(interface.name or Path(name).stem),
        more=pl.col("more_text").is_in(["1", "True"]),
        fragment_offset=pl.col("fragment_units") * 8,
        source_port=pl.coalesce("udp_source", "tcp_source"),
        target_port=pl.coalesce("udp_target", "tcp_target"),
    )
    table = table.select([pl.col(column).cast(kind) for column, kind in columns.items() if column in table.columns])
    octets.forget()
    return table.with_columns(read_differently(table, headers).alias("read_differently"))


def _together(pieces: list[pl.DataFrame]) -> pl.DataFrame:
    """One table of all pieces, which are used up. A column of nulls only takes no memory."""
    if not pieces:
        return pl.DataFrame(schema=frame_columns())
    heights = [piece.height for piece in pieces]
    columns: dict[str, pl.Series] = {}
    for name, dtype in frame_columns().items():
        if any(name in piece.columns for piece in pieces):
            parts = [
                piece.drop_in_place(name) if name in piece.columns else pl.repeat(None, height, dtype=dtype, eager=True)
                for piece, height in zip(pieces, heights, strict=True)
            ]
            columns[name] = pl.concat(parts, rechunk=True)
    return (
        pl.DataFrame(columns)
        .select(
            pl.col(name) if name in columns else pl.lit(None, dtype).alias(name)
            for name, dtype in frame_columns().items()
        )
        .pipe(compact)
    )


def compact(table: pl.DataFrame) -> pl.DataFrame:
    """The same table, whose columns of one value, or of nulls, take no memory: polars keeps a literal as one value."""
    if table.is_empty():
        return table
    first, last = table.row(0, named=True), table.row(-1, named=True)
    # In one go, since each select of polars has its price.
    same = table.select(
        pl.col(name).eq_missing(pl.col(name).first()).all() for name, value in first.items() if value == last[name]
    )
    schema = table.schema
    return table.with_columns(pl.lit(first[name], schema[name]).alias(name) for name in same.columns if same[name][0])


def _shown(text: pl.DataFrame, fields: Sequence[Field]) -> dict[str, pl.Expr]:
    """The values of fields from what tshark printed. What no frame needs is not asked of all: most fields occur once in
    a frame, and in one form."""
    names = list(dict.fromkeys(field.tshark for field in fields if field.values not in ("all", "octets")))
    several, hexadecimal = (
        text.select(pl.col(name).str.contains(rule).any() for name in names).row(0, named=True)
        for rule in (AGGREGATOR, "^0x")
    )
    shown = {}
    for field in fields:
        value = pl.col(field.tshark)
        if field.values == "octets":
            value = value.str.replace_all(":", "", literal=True)  # as tshark 4.4 prints them
        elif field.values != "all" and several[field.tshark]:
            # The first of several: of the outer header, where an ICMP message quotes another one.
            value = value.str.extract(f"^([^{AGGREGATOR}]*)")
        if field.values == "number":
            value = _number(value) if hexadecimal[field.tshark] else value.str.to_integer(strict=False).cast(pl.UInt32)
        shown[field.column] = value
    return shown


def _number(value: pl.Expr) -> pl.Expr:
    """Decimal or 0x-hexadecimal text as a number."""
    return (
        pl.when(value.str.starts_with("0x"))
        .then(value.str.strip_prefix("0x").str.to_integer(base=16, strict=False))
        .otherwise(value.str.to_integer(base=10, strict=False))
    ).cast(pl.UInt32)
