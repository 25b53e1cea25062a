# SPDX-License-Identifier: Apache-2.0
"""Time on the wire: every segment, and every machine and device that joins segments, each by the law of its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import polars as pl

from sundial.model.network import Device, Network
from sundial.observe import RunDirectory
from sundial.observe.octets import octets_of
from sundial.verify.contention import Contention
from sundial.verify.devices import check_device
from sundial.verify.findings import Finding, as_table, none
from sundial.verify.handed_in import latest_hand_in
from sundial.verify.law import Bounds, Counted, Law, merged
from sundial.verify.learning import Behind
from sundial.verify.segment import HELD_BACK, contention_of_port, network_of, verifiers
from sundial.verify.timeline import check_notes
from sundial.verify.wire import Passages, Wire

UNPROVEN = ("wires: the origin of time; all stamps may be shifted together within the slack of calls",)
UNPROVEN_REAL_CLOCK = (
    "wires under the real clock: that a frame left or reached its machine at the instant of its stamp, the model's",
)


_COLUMNS = ("row", "capture", "interface", "time_ns", "direction", "frame_length", "captured_length", "octets_begin",
            "octets_hash", "eth_source", "eth_target", "eth_type", "fate", "fate_adapter",
            "comment")  # fmt: skip


def check_wires(
    run: RunDirectory, frames: pl.DataFrame, files: Sequence[tuple[Path, str]]
) -> tuple[pl.DataFrame, Counted]:
    """Findings, and what the fabric must have counted. `frames` of the whole run, with fate."""
    network = network_of(run)
    if network is None:
        return _no_topology(run), Counted()
    laws = verifiers()
    by_name = {name: _wire(run, network, name, frames, files) for name in network.captured}
    found: list[pl.DataFrame] = []
    known: dict[str, Law] = {}
    for name, wire in by_name.items():
        segment = network.captured[name]
        if segment.kind not in laws:
            continue
        law = laws[segment.kind].check_times(segment, wire)
        if law is None:
            continue
        found += [law.findings, check_notes(segment, wire)]
        if name in network.segments:
            known[name] = law
    found += [law.findings for law in _machines(network, by_name, exact=run.clock == "virtual")]
    counted: dict[tuple[str, str], Bounds] = {}
    for device in network.devices:
        findings, numbers = _device(network, device, by_name)
        found += findings
        counted |= numbers
    inner = [f"wire/{name}.pcapng" for name in network.inner]
    return merged(found), Counted(known, network.devices, counted, inner)


def held_back(run: RunDirectory, frames: pl.DataFrame, files: Sequence[tuple[Path, str]]) -> pl.DataFrame:
    """Frames that adapters may have kept back, as `SegmentVerifier.held_back`, but since machines handed them in."""
    network, laws = network_of(run), verifiers()
    segments = {} if network is None else network.captured
    parts = [
        laws[segment.kind].held_back(segment, _wire(run, network, name, frames, files))
        for name, segment in segments.items()
        if network is not None and segment.kind in laws
    ]
    held = pl.concat([pl.DataFrame(schema=HELD_BACK), *parts])
    of_frames = held.rename({"since_ns": "time_ns"}).join(frames.drop("time_ns"), on="row", how="left")
    return latest_hand_in(of_frames, network).select("row", since_ns="time_ns")


def _device(
    network: Network, device: Device, by_name: Mapping[str, Wire]
) -> tuple[list[pl.DataFrame], dict[tuple[str, str], Bounds]]:
    laws = verifiers()
    wires = {port.end: by_name[port.segment] for port in device.ports if port.segment in by_name}

    def check_offered(end: str, handed_in: Passages, behind: Behind | None) -> list[pl.DataFrame]:
        segment, wire = network.captured[wires[end].name], wires[end]
        if segment.kind not in laws:
            return []
        found = laws[segment.kind].check_offered(segment, wire, end, handed_in)
        return found if behind is None else found + laws[segment.kind].check_behind(segment, wire, end, behind)

    return check_device(device, wires, check_offered)


def _machines(network: Network, by_name: Mapping[str, Wire], *, exact: bool) -> list[Law]:
    wires = {port: wire for wire in by_name.values() for port in wire.ports}

    @cache
    def waits(port: str) -> Contention | None:
        segment = network.captured[wires[port].name]
        return contention_of_port(segment, port, wires[port].frames, [*wires[port].macs.values()])

    return [
        law.check_machine(node, wires, waits, exact=exact) for law in verifiers().values() for node in network.nodes
    ]


def _wire(
    run: RunDirectory, network: Network, name: str, frames: pl.DataFrame, files: Sequence[tuple[Path, str]]
) -> Wire:
    end_ns = (run.counters or {}).get("virtual_ns")
    ends = [nic for node in network.nodes for nic in node.interfaces]
    return Wire(
        name,
        network.captured[name].ports,
        frames.select(_COLUMNS).filter(pl.col("capture") == f"wire/{name}.pcapng"),
        end_ns if isinstance(end_ns, int) else None,
        partial(octets_of, files=files),
        {port.end: device.written.queue_frames for device in network.devices for port in device.ports},
        run.path / "wire",
        run.epoch_ns,
        {end: int(network.plug(end).mac.replace(":", ""), 16) for end in network.captured[name].ports},
        {nic.end: [nic.address.ip.packed] for nic in ends if nic.segment == name and nic.address},
        {nic.end: node.adapter_latency_ns for node in network.nodes for nic in node.nics},
    )


def _no_topology(run: RunDirectory) -> pl.DataFrame:
    """Without a topology there is no law; a run has one."""
    if "topology" not in run.document:
        return none()
    return as_table([Finding(None, "run.json: topology", "the wires of the run", "none that can be read")])
