# SPDX-License-Identifier: Apache-2.0
"""The messages of a run: datagrams and streams of its captures, as the ports of their senders showed them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.interface.judge import Fact, Finding, Judged, Message, facts, judge
from sundial.interface.messages import records
from sundial.interface.types import Interface
from sundial.interface.values import Fault
from sundial.observe import RunDirectory, octets_of, open_run, read_frames
from sundial.verify.corruption import with_corrupted
from sundial.verify.frames import OUTBOUND, with_places
from sundial.verify.headers import ports as headers
from sundial.verify.samples import load_samples
from sundial.verify.sockets.conversations import conversations
from sundial.verify.sockets.flows import UDP
from sundial.verify.sockets.payloads import payloads

_UDP_HEADER = 8


def ports_of(document: dict[str, Any]) -> list[tuple[str, int]]:
    """Transports and ports that the programs of a run's scenario name."""
    workloads = (document.get("scenario") or {}).get("workloads") or ()
    named = [port for each in workloads for port in (each.get("ports") or {}).values() if isinstance(port, dict)]
    return sorted({(name, port[name]) for port in named for name in ("tcp", "udp") if port.get(name)})


def judge_run(interface: Interface, folder: Path, port: int | None) -> tuple[Judged, int]:
    """All messages of a run at a server's port, or at those that its scenario names, and how many lines of clients they
    were compared with. Raises BadInput."""
    run = open_run(folder)
    ports = [("tcp", port), ("udp", port)] if port is not None else ports_of(run.document)
    frames = with_places(read_frames(run.capture_files, run.epoch_ns))
    frames = with_corrupted(frames, partial(octets_of, files=run.capture_files), headers.ports_of(run))
    broken: list[Finding] = []
    udp, tcp = ([number for name, number in ports if name == transport] for transport in ("udp", "tcp"))
    messages = sorted([*_datagrams(run, frames, udp), *_streams(run, frames, tcp, broken)], key=lambda each: each[0])
    if not messages and not broken:
        what = f"no message at port {port}" if port is not None else "no message at a port that its scenario names"
        raise BadInput(what, file=str(folder), allowed="the server's port with --port")
    known, bad = _facts(run)
    judged = judge(interface, (message for _, message in messages), known, _partial(run))
    judged.findings[:0] = [*broken, *bad]
    return judged, len(known)


def _facts(run: RunDirectory) -> tuple[list[Fact], list[Finding]]:
    """What the programs of each machine printed."""
    found: list[Fact] = []
    bad: list[Finding] = []
    for machine, node in run.nodes.items():
        addresses = tuple(each.address for each in node.interfaces if each.address)
        for path in sorted((run.path / "nodes" / machine / "programs").glob("*.stdout")):
            try:
                found += facts(addresses, path.read_text(encoding="utf-8", errors="replace"))
            except ValueError as error:
                bad.append(Finding(f"nodes/{machine}/programs/{path.name}", "a line of a call", str(error)[:200]))
    return found, bad


def _partial(run: RunDirectory) -> set[str]:
    """Addresses of machines whose programs did not end by themselves, or printed more than was kept."""
    found = set()
    records = load_samples(run).records
    for machine, node in run.nodes.items():
        programs = [each for each in records.get(machine, ()) if each["type"] == "program"]
        if any(each["signal"] or each["stdout"]["bytes"] > each["stdout"]["kept"] for each in programs):
            found |= {each.address for each in node.interfaces if each.address}
    return found


def _placed(capture: str, frame: int) -> str:
    return f"{capture} frame {frame}"


def _datagrams(run: RunDirectory, frames: pl.DataFrame, ports: Sequence[int]) -> Iterator[tuple[int, Message]]:
    """Whole datagrams from and to some ports, and when they were sent."""
    sent = frames.filter(pl.col("protocol") == UDP, pl.col("fate").is_null(), pl.col("direction") == OUTBOUND)
    named = sent.filter(pl.col("source_port").is_in(ports) | pl.col("target_port").is_in(ports))
    key = ["end", "source", "target", "ip_id"]
    sent = sent.join(named.select(key).unique(), on=key, how="semi").sort("time_ns", "row")
    names = [*key, "time_ns", "capture", "frame", "source_port", "target_port", "fragment_offset", "more", "udp_length"]
    pieces: dict[tuple[Any, ...], dict[int, bytes]] = {}
    heads: dict[tuple[Any, ...], tuple[int, Message]] = {}
    for row, data in zip(sent.select(names).iter_rows(named=True), _bodies(run, sent), strict=True):
        place = tuple(row[name] for name in key)
        if row["fragment_offset"] == 0:
            if row["source_port"] not in ports and row["target_port"] not in ports:
                continue
            ends = (row["source"], row["source_port"]), (row["target"], row["target_port"])
            size = bytes(row["udp_length"] - _UDP_HEADER)
            heads[place] = row["time_ns"], Message("udp", *ends, size, _placed(row["capture"], row["frame"]))
            pieces[place] = {}
        if place not in heads:
            continue
        pieces[place][row["fragment_offset"]] = data
        at_ns, message = heads[place]
        whole = b"".join(pieces[place][offset] for offset in sorted(pieces[place]))[_UDP_HEADER:]
        if not row["more"] and len(whole) == len(message.data):
            del heads[place]
            yield at_ns, Message("udp", message.source, message.target, whole, message.place)


def _bodies(run: RunDirectory, sent: pl.DataFrame) -> Iterator[bytes]:
    """What IP carries in each frame."""
    length = pl.col("ip_length").cast(pl.Int64) - pl.col("ip_header").cast(pl.Int64)
    # As segments, whose length is their own: a fragment has only its share of a datagram.
    return payloads(sent.with_columns(tcp_length=length), run.capture_files)


def _streams(
    run: RunDirectory, frames: pl.DataFrame, ports: Sequence[int], broken: list[Finding]
) -> Iterator[tuple[int, Message]]:
    """Records of connections to some ports, and when the first byte of each was sent."""
    addresses = [each.address for node in run.nodes.values() for each in node.interfaces if each.address]
    places = frames.select("row", "capture", "frame")
    named = {row: (capture, frame) for row, capture, frame in places.iter_rows()}
    for each in conversations(run, frames, [(address, port) for address in addresses for port in ports]).all:
        for reply, way in each.ways.items():
            source, target = (each.server, each.client) if reply else (each.client, each.server)
            try:
                for record in records(way.data):
                    first = way.segments(record.begin, record.begin + 1)[0]
                    place = _placed(*named[first.row])
                    yield first.at_ns, Message("tcp", source, target, record.data, place)
            except Fault as fault:
                where = f"TCP {source[0]}:{source[1]} > {target[0]}:{target[1]} {fault.path} at byte {fault.at}"
                broken.append(Finding(where, fault.expected, fault.what))
