# SPDX-License-Identifier: Apache-2.0
"""Full duplex: only what a port itself sends takes the wire in front of it; and where and when each frame leaves."""

from __future__ import annotations

import polars as pl

from sundial.seams.fate import AdapterOff, MachineOff, OutputFull, Severed
from sundial.segments.switch.model import Switch
from sundial.segments.switch.verify_forwarding import (
    before_the_switch,
    begins_of,
    check_drops,
    check_severed,
    outputs,
    received,
    taken,
)
from sundial.verify.contention import Contention, of_own_frames
from sundial.verify.law import (
    Bounds,
    Law,
    check_fates,
    check_ring,
    cut_off,
    merged,
    offered,
    ring_drops,
)
from sundial.verify.learning import FILTERED, FLOODED, output_ports
from sundial.verify.offered import check_full_duplex
from sundial.verify.power import check_power
from sundial.verify.segment import SegmentVerifier
from sundial.verify.wire import PS_PER_NS, Passages, Wire, check_arrivals, check_line

UNPROVEN = ("switch: when a machine handed a frame to its adapter",)


class _Switch(SegmentVerifier[Switch]):
    def contention(self, segment: Switch, port: str, frames: pl.DataFrame) -> Contention | None:
        return of_own_frames(port, segment.rate, frames)

    def receives_all(self, segment: Switch) -> bool:
        return False

    def check_times(self, segment: Switch, wire: Wire) -> Law:
        power, counted = check_power(wire, segment)
        found = [check_fates(wire, segment, [OutputFull, Severed, MachineOff, AdapterOff]), power]
        cut: dict[str, Bounds] = {}
        rates = segment.by_port(segment.rate)
        for port, sent, rate_bps in zip(segment.ports, wire.sent, rates, strict=True):
            found.append(check_line(port, sent, rate_bps))
            ring, full = check_ring(wire, segment, port, sent, rate_bps)
            found.append(ring)
            refused = len(ring_drops(wire, port))
            counted[port, "adapter_full"] = full
            counted[port, "dropped adapter full"] = (refused, refused)
            counted[port, "offered_frames"] = offered(wire, segment, port, refused + len(sent))
        frames = received(segment, wire)
        begins_ns = begins_of(wire, frames)
        gone, before = before_the_switch(segment, frames, begins_ns)
        frames, begins_ns = taken(frames, ~gone), begins_ns[~gone]
        severed = [before]
        way = output_ports(frames, segment.ageing * PS_PER_NS, segment.mac_table_entries)
        done = frames.ready <= (frames.ready.max(initial=0) if wire.end_ns is None else wire.end_ns * PS_PER_NS)
        for number, (port, output) in enumerate(
            zip(segment.ports, outputs(segment, frames, begins_ns, way), strict=True)
        ):
            severed.append(output.severed)
            arrivals, late = check_arrivals(port, output.arrivals, wire.received[number], wire.end_ns)
            found.append(arrivals)
            drops = wire.fates_of(OutputFull, fate_to=port)
            found.append(check_drops(port, wire, drops, frames, output))
            mine = frames.port == number
            counted[port, "undelivered"] = (0, late)
            cut[port] = cut_off(wire, segment, port, late)
            for name, code in (("flooded", FLOODED), ("filtered", FILTERED)):
                here = mine & (way == code)
                counted[port, name] = (int((here & done).sum()), int(here.sum()))
            counted[port, "dropped queue full"] = (len(drops), len(drops))
        due = pl.concat(severed)
        found.append(check_severed(wire, due, wire.end_ns))
        counted |= _cut_off(segment, due, wire.end_ns)
        return Law(merged(found), counted, cut)

    def check_offered(self, segment: Switch, wire: Wire, port: str, handed_in: Passages) -> list[pl.DataFrame]:
        return check_full_duplex(segment, wire, port, handed_in)


def _cut_off(segment: Switch, due: pl.DataFrame, end_ns: int | None) -> dict[tuple[str, str], Bounds]:
    """How often each port must have counted frames that nothing let pass: where they were to go, or where they came
    from if they did not come to the switch."""
    at = pl.coalesce("to", "from")
    found = {}
    for port in segment.ports if segment.timeline else ():
        for rule in ("cut", "off", "partition"):
            times = due.filter(at == port, pl.col("rule") == rule)["at"]
            least = len(times) if end_ns is None else int((times < end_ns).sum())
            found[port, f"dropped {rule}"] = (least, len(times))
    return found


KIND: SegmentVerifier[Switch] = _Switch()
