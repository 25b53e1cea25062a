# SPDX-License-Identifier: Apache-2.0
"""Captures to one table of frames, exact and with the frame numbers that Wireshark shows for the original file.

Why tshark is called as it is:

* `ip.defragment:FALSE`: every fragment keeps its own row; the first still shows UDP and the RPC header.
* each interface of a capture is dissected alone: the same frame at two ports is no retransmission.
* ports known from the samples are decoded as RPC, since a client may be bound to a reserved port that another dissector
  claims (853: DTLS), and programs that tshark does not know are dissected too.
* MBCF is dissected by our own script, which is loaded where there is any.
* frames that carry no TCP are cut to their headers before tshark sees them; lengths are those of the original.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from sundial.errors import BadInput
from sundial.observe import mbcf
from sundial.observe.pcap import Capture, Interface, open_capture
from sundial.observe.tshark import AGGREGATOR, dissect

SNAP = 160
"""Ethernet, IP with options, UDP and the fixed part of an RPC call or the header of a raw payload."""

RPC_PORTMAP = 111

_UNSIGNED = (
    ("packet_flags", "frame.packet_flags_direction"),
    ("ip_id", "ip.id"),
    ("fragment_units", "ip.frag_offset"),
    ("ip_length", "ip.len"),
    ("ip_header", "ip.hdr_len"),
    ("protocol", "ip.proto"),
    ("udp_source", "udp.srcport"),
    ("udp_target", "udp.dstport"),
    ("udp_length", "udp.length"),
    ("tcp_source", "tcp.srcport"),
    ("tcp_target", "tcp.dstport"),
    ("tcp_seq", "tcp.seq_raw"),
    ("tcp_length", "tcp.len"),
    ("tcp_flags", "tcp.flags"),
    ("tcp_mss", "tcp.options.mss_val"),
    ("tcp_timestamp", "tcp.options.timestamp.tsval"),
    ("icmp_type", "icmp.type"),
)
_TEXT = (
    ("ethertype", "eth.type"),
    ("source", "ip.src"),
    ("target", "ip.dst"),
    ("more_text", "ip.flags.mf"),
    ("rpc_xids", "rpc.xid"),
    ("rpc_types", "rpc.msgtyp"),
    ("rpc_program", "rpc.program"),
    ("rpc_procedure", "rpc.procedure"),
    ("record_lengths", "rpc.fraglen"),
    ("record_lasts", "rpc.lastfrag"),
    ("comment", "frame.comment"),
    ("udp_head", "udp.payload"),
)
_EPOCH = "frame.time_epoch"

FRAME_COLUMNS: dict[str, type[pl.DataType]] = {
    "capture": pl.String,
    "interface": pl.String,
    "frame": pl.UInt32,
    "time_ns": pl.Int64,
    "direction": pl.UInt8,
    "frame_length": pl.UInt32,
    "captured_length": pl.UInt32,
    "ethertype": pl.String,
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
    "rpc_xid": pl.UInt32,
    "rpc_type": pl.UInt32,
    "rpc_program": pl.String,
    "rpc_procedure": pl.String,
    "rpc_xids": pl.String,
    "record_lengths": pl.String,
    "record_lasts": pl.String,
    "comment": pl.String,
    **mbcf.COLUMNS,
}
"""Lengths and offsets in bytes, `time_ns` since zero of the run, `direction` 0 unknown, 1 inbound, 2 outbound.

`source_port` and `target_port` are null in fragments after the first. `rpc_xid` and `rpc_type` (0 call, 1 reply) are
those of the first message in a frame; `rpc_xids`, `record_lengths` and `record_lasts` list all, with commas between.
`udp_head` is the beginning of the UDP payload in hexadecimal (tshark does not dissect an RPC reply whose call it has
not seen).
"""


@dataclass(frozen=True)
class Decode:
    """Ports (of servers) that carry Sun RPC."""

    rpc_udp: tuple[int, ...] = ()
    rpc_tcp: tuple[int, ...] = ()

    def options(self) -> list[str]:
        """tshark's options, each `-x value`."""
        preferences = [
            "ip.defragment:FALSE",
            "tcp.relative_sequence_numbers:FALSE",
            "rpc.dissect_unknown_programs:TRUE",
            "rpc.desegment_rpc_over_tcp:TRUE",
            "rpc.defragment_rpc_over_tcp:TRUE",
        ]
        decode = [f"udp.port=={port},rpc" for port in self.rpc_udp] + [f"tcp.port=={port},rpc" for port in self.rpc_tcp]
        return [f"-o {preference}" for preference in preferences] + [f"-d {rule}" for rule in decode]


def read_frames(files: Iterable[tuple[Path, str]], decode: Decode, epoch_ns: int) -> pl.DataFrame:
    """All frames of some captures, each given with the name to show for it: a table with FRAME_COLUMNS.

    Sorted by capture, interface and frame. Raises BadInput for a capture that cannot be read.
    """
    opened: list[tuple[Capture, str]] = []
    try:
        for path, name in files:
            opened.append((open_capture(path), name))
        jobs = [(capture, name, item) for capture, name in opened for item in capture.interfaces if item.blocks]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            parts = list(pool.map(lambda job: _interface(job[0], job[1], job[2], decode, epoch_ns), jobs))
    finally:
        for capture, _ in opened:
            capture.close()
    return pl.concat(parts) if parts else pl.DataFrame(schema=FRAME_COLUMNS)


def _interface(capture: Capture, name: str, interface: Interface, decode: Decode, epoch_ns: int) -> pl.DataFrame:
    has_mbcf = mbcf.carries(capture, interface)
    unsigned = (*_UNSIGNED, *(mbcf.UNSIGNED if has_mbcf else ()))
    named = (*unsigned, *_TEXT, *(mbcf.TEXT if has_mbcf else ()))
    fields = [_EPOCH, *(field for _, field in named)]
    options = [*(mbcf.OPTIONS if has_mbcf else ()), *decode.options()]
    with tempfile.TemporaryDirectory(prefix="sundial-frames-") as directory:
        split = Path(directory) / "interface"
        capture.write(interface, split, SNAP)
        text = dissect(split, fields, options=options, name=capture.path)
    blocks = np.array([block[2:] for block in interface.blocks], dtype=np.uint32)
    if text.height != len(blocks):
        what = f"tshark read {text.height} of {len(blocks)} frames"
        raise BadInput(what, file=str(capture.path), allowed="a capture that tshark can read")
    table = text.lazy().rename({_EPOCH: "epoch", **{f: c for c, f in named}})
    numbers = {column: _first(column).pipe(_number) for column, _ in unsigned}
    absent = {} if has_mbcf else {column: pl.lit(None, kind) for column, kind in mbcf.COLUMNS.items()}
    return (
        table.with_columns(
            pl.Series("captured_length", blocks[:, 0]),
            pl.Series("frame_length", blocks[:, 1]),
            pl.Series("frame", blocks[:, 2]),
            capture=pl.lit(name),
            interface=pl.lit(interface.name or Path(name).stem),
            time_ns=_nanoseconds("epoch") - epoch_ns,
            source=_first("source"),
            target=_first("target"),
            more=_first("more_text").is_in(["1", "True"]),
            rpc_xid=_first("rpc_xids").pipe(_number),
            rpc_type=_first("rpc_types").pipe(_number),
            rpc_program=_first("rpc_program"),
            rpc_procedure=_first("rpc_procedure"),
            **numbers,
            **absent,
            **({"mbcf_digest": mbcf.digests(capture, interface)} if has_mbcf else {}),
        )
        .with_columns(
            direction=pl.col("packet_flags").fill_null(0).cast(pl.UInt8),
            fragment_offset=pl.col("fragment_units") * 8,
            source_port=pl.coalesce("udp_source", "tcp_source"),
            target_port=pl.coalesce("udp_target", "tcp_target"),
        )
        .select([pl.col(column).cast(kind) for column, kind in FRAME_COLUMNS.items()])
        .collect()
    )


def _first(column: str) -> pl.Expr:
    """The first of several values: of the outer header, where an ICMP message quotes another one."""
    value = pl.col(column)
    return pl.when(value.str.contains(AGGREGATOR, literal=True)).then(value.str.extract(r"^([^,]*)")).otherwise(value)


def _number(value: pl.Expr) -> pl.Expr:
    """Decimal or 0x-hexadecimal text as a number."""
    hexadecimal = value.str.starts_with("0x")
    return (
        pl.when(hexadecimal)
        .then(value.str.strip_prefix("0x").str.to_integer(base=16, strict=False))
        .otherwise(value.str.to_integer(base=10, strict=False))
    ).cast(pl.UInt32)


def _nanoseconds(column: str) -> pl.Expr:
    """`seconds.fraction` as whole ns; the fraction has up to nine digits."""
    parts = pl.col(column).str.split_exact(".", 1)
    seconds = parts.struct.field("field_0").cast(pl.Int64)
    fraction = parts.struct.field("field_1").fill_null("").str.pad_end(9, "0").str.slice(0, 9).cast(pl.Int64)
    return seconds * 1_000_000_000 + fraction
