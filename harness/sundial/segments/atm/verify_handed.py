# SPDX-License-Identifier: Apache-2.0
"""What a device hands in at an ATM segment: each frame leaves at once or behind what its line was carrying; a client of
LAN emulation may hold it back, until something comes that lets it go. And what the client answers for the device: it
knows the addresses behind that, as the device does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from sundial.expect.atm import LANE
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import DISTRIBUTE
from sundial.segments.atm.verify_lane_calls import Channels
from sundial.segments.atm.verify_lane_fields import Problem
from sundial.segments.atm.verify_lane_messages import ARP, NARP, RESPONSE, Clients, Message, clients_of, read_messages
from sundial.segments.atm.verify_lane_uplink import ROUNDING_NS, Uplink, uplink
from sundial.segments.atm.verify_lane_vccs import NEVER_NS, Vccs
from sundial.segments.atm.verify_lines import NS
from sundial.segments.atm.verify_pdus import Pdus, read_pdus
from sundial.verify.law import BY_LENGTH
from sundial.verify.learning import GROUP_BIT, Behind
from sundial.verify.offered import check_not_before, check_places
from sundial.verify.segment import HELD_BACK
from sundial.verify.wire import Numbers, Passages, Wire, problem

UNPROVEN = (
    "lane: which frames of a device waited for a channel; only that each left after an event that allows it",
    "lane: what a proxy answers whose device has seen more addresses than its table holds",
)


def check_handed_in(segment: Atm, wire: Wire, port: str, handed_in: Passages) -> list[pl.DataFrame]:
    """Findings of what a device handed in at `port`."""
    pdus, number = read_pdus(segment, wire), segment.ports.index(port)
    line = uplink(segment, pdus, number)
    sent = wire.sent_at(port)
    place = np.searchsorted(line.time_ns, sent.time_ns)
    known = place < len(line.time_ns)
    first = np.minimum(place, max(len(line.time_ns) - 1, 0))
    left_ns = np.sort(np.concatenate([_left(segment, pdus, line, first, sent), _dropped(segment, wire, port)]))
    ring, _ = check_places(segment, wire, port, handed_in, left_ns, ROUNDING_NS)
    found = [ring, *check_not_before(wire, port, handed_in)]
    if not known.all() or not len(sent):
        return found
    given = _given(wire, port, handed_in, sent)
    there = given >= 0
    due = handed_in.time_ns[given[there]] + line.latency_ns
    seen, busy = sent.time_ns[there], line.busy_ns[first[there]]
    late = (seen > due + ROUNDING_NS) & (busy > due + ROUNDING_NS)
    if segment.encapsulation == LANE and segment.lan_emulation.resolution == "le_arp":
        _, messages, vccs = _talk(segment, wire, pdus)
        events = _events(segment, line, messages, vccs)
        may = (sent.target[there] & GROUP_BIT) == 0
        after = events + line.latency_ns
        # The last event that may have let it go, before the line was taken for it.
        last = np.searchsorted(after, np.minimum(seen, busy + ROUNDING_NS) + ROUNDING_NS, "right") - 1
        let_go = (last >= 0) & (after[np.maximum(last, 0)] >= due - ROUNDING_NS) if len(after) else may & False
        on_time = np.abs(seen - after[np.maximum(last, 0)]) <= ROUNDING_NS if len(after) else may & False
        late &= ~(may & let_go & (on_time | (busy <= after[np.maximum(last, 0)] + ROUNDING_NS)))
    found.append(
        problem(f"sent by {port}", late, [handed_in.row[given[there]], sent.row[there]],
                (f"at {at} ns, or as soon as the line is free" for at in due[late]),
                (f"at {at} ns" for at in seen[late]))
    )  # fmt: skip
    return found


def _given(wire: Wire, port: str, handed_in: Passages, sent: Passages) -> Numbers:
    """Of each frame that was sent, the place among those handed in; -1: none has its bytes. Of frames with the same
    bytes, one that is dropped as it comes is that one, and the others go in order."""
    fates = wire.given_up(port)
    gone = fates.select(content=pl.col("octets_hash").cast(pl.Int64), time_ns="time_ns")
    given = pl.DataFrame(
        {"content": handed_in.content, "time_ns": handed_in.time_ns, "place": np.arange(len(handed_in))}
    )
    at_once = ["content", "time_ns", "number"]
    number = pl.int_range(pl.len()).alias("number")
    gone, given = (each.with_columns(number.over("content", "time_ns")) for each in (gone, given))
    waited = given.join(gone, on=at_once, how="anti")
    later = gone.join(given, on=at_once, how="anti").select("content", "time_ns", own=pl.lit(None, pl.Int64))
    done = pl.DataFrame({"content": sent.content, "time_ns": sent.time_ns, "own": np.arange(len(sent))})
    done = pl.concat([done, later]).sort("time_ns", maintain_order=True).with_columns(number.over("content"))
    waited = waited.sort("place").drop("number", "time_ns").with_columns(number.over("content"))
    pairs = done.join(waited, on=["content", "number"], how="left").drop_nulls("own").sort("own")
    return pairs["place"].fill_null(-1).to_numpy()


def _left(segment: Atm, pdus: Pdus, line: Uplink, first: Numbers, sent: Passages) -> Numbers:
    """When all of each frame has left: with all of its PDUs where it goes to every port; at once if there are none."""
    if not len(sent) or not len(line.place):
        return sent.time_ns
    last = first
    if segment.encapsulation not in (LANE, "routed"):
        begins = np.append(first[1:], len(line.time_ns))
        last = np.maximum(first, np.minimum(begins, first + len(segment.ports) - 1) - 1)
    port = segment.ports[line.number]
    taken = (pdus.cells[line.place[last]] - 1) * segment.spacing_units(port) + segment.cell_time_units(port)
    return np.asarray(line.time_ns[last] + -(-taken // NS))


def _dropped(segment: Atm, wire: Wire, port: str) -> Numbers:
    """When frames that the adapter dropped have left its ring: as if they had taken a cell."""
    fates = wire.given_up(port).filter(~pl.col("fate_rule").is_in(["adapter full", *BY_LENGTH]))
    latency_ns = segment.tx_latency_ns(port)
    return fates["time_ns"].to_numpy() + latency_ns + -(-segment.cell_time_units(port) // NS)


def _talk(segment: Atm, wire: Wire, pdus: Pdus) -> tuple[list[Uplink], list[Message], Vccs]:
    """Of all clients: their lines, what they and the services said, and their channels."""
    lines, messages = [uplink(segment, pdus, number) for number in range(len(segment.ports))], read_messages(pdus)
    return lines, messages, Vccs(segment, clients_of(segment, wire), pdus, lines, messages)


def _events(segment: Atm, line: Uplink, messages: Sequence[Message], vccs: Vccs) -> Numbers:
    """When a client may have let frames go: answers, channels that become ready or are released, the ends of C11, C17
    and C22."""
    lane = segment.lan_emulation
    own = [each for each in messages if each.port == line.number and not each.lost]
    channels = Channels(segment, line, own, vccs)
    latency_ns = segment.by_port(segment.rx_latency)[line.number]
    heard = [each.at_ns + latency_ns for each in own if not each.out]
    ready = [high for peer in range(len(segment.ports)) for _, high in channels.ready(peer)]
    others = [peer for peer in range(len(segment.ports)) if peer != line.number]
    released = [at for peer in others for each in vccs.between(line.number, peer) for at in each.released]
    flushed = [at for _, at in channels.flushes if at != NEVER_NS]
    # C11 and C22 count from when a frame was let go, which may have been behind what its client sent with it.
    asked = np.unique(np.concatenate([line.time_ns, line.busy_ns])) - line.latency_ns
    forgotten = [at + lane.ageing for peer in others for at in vccs.named.get((line.number, peer), [])]
    times = [
        asked + lane.unknown_frame_time,
        asked + lane.path_switching_delay,
        np.array([*heard, *ready, *released, *flushed, *forgotten]),
    ]
    return np.unique(np.concatenate(times).astype(np.int64))


def held_back(segment: Atm, wire: Wire) -> pl.DataFrame:
    """Frames that clients may have kept back: those that left, or were given up, when something came that lets a frame
    go; since the last for the same station that left before that, and so did not wait for it."""
    pdus = read_pdus(segment, wire)
    lines, messages, vccs = _talk(segment, wire, pdus)
    parts = [pl.DataFrame(schema=HELD_BACK)]
    for line, port in zip(lines, segment.ports, strict=True):
        sent = wire.sent_at(port)
        gone = wire.given_up(port).select(
            row=pl.col("row").cast(pl.Int64), time_ns="time_ns", target=pl.col("eth_target").cast(pl.Int64),
            goes=pl.lit(True), event_ns="time_ns",
        )  # fmt: skip
        place = np.searchsorted(line.time_ns, sent.time_ns)
        known = place < len(line.time_ns)
        seen, busy = sent.time_ns[known], line.busy_ns[place[known]]
        after = _events(segment, line, messages, vccs) + line.latency_ns
        last = np.searchsorted(after, np.minimum(seen, busy + ROUNDING_NS) + ROUNDING_NS, "right") - 1
        event = after[np.maximum(last, 0)] if len(after) else seen
        goes = (last >= 0) & ((np.abs(seen - event) <= ROUNDING_NS) | (busy <= event + ROUNDING_NS))
        table = pl.DataFrame(
            {"row": sent.row[known], "time_ns": seen, "target": sent.target[known], "goes": goes,
             "event_ns": np.where(goes, event, seen)}
        )  # fmt: skip
        table = pl.concat([table, gone]).sort("time_ns", "row")
        table = table.with_columns(since_ns=pl.col("time_ns").shift().over("target"))
        table = table.with_columns(pl.col("since_ns").first().over("target", "event_ns"))
        table = table.filter("goes", (pl.col("target") & GROUP_BIT) == 0).drop_nulls("since_ns")
        parts.append(table.select(pl.col(name).cast(dtype) for name, dtype in HELD_BACK.items()))
    return pl.concat(parts)


def check_behind(segment: Atm, wire: Wire, port: str, behind: Behind) -> Iterator[tuple[Pdus, Problem]]:
    """A proxy answers for the addresses behind its device, and tells when one has come there."""
    pdus, number = read_pdus(segment, wire), segment.ports.index(port)
    line, clients = uplink(segment, pdus, number), clients_of(segment, wire)
    messages = [each for each in read_messages(pdus) if each.port == number and not each.lost and each.whole]
    answered = {_key(each) for each in messages if each.out and each.opcode == ARP | RESPONSE}
    latency_ns = segment.by_port(segment.rx_latency)[number]
    for each in messages:
        mac = each.target_mac
        if each.opcode == ARP and not each.out and each.vci == DISTRIBUTE and not _is_own(clients, number, each):
            at_ns = each.at_ns + latency_ns
            knew = {behind.knows(mac, at_ns + by) for by in (-ROUNDING_NS, ROUNDING_NS)}
            ended = wire.end_ns is not None and at_ns + line.latency_ns + 1_000_000 > wire.end_ns
            if len(knew) == 1 and ((_key(each) in answered) not in knew) and not ended:
                what = ("an answer of the proxy", "none") if True in knew else ("no answer", "one of the proxy")
                yield pdus, (each, f"for {mac:012x}", *what)
        elif each.opcode == NARP and each.out:
            came = behind.came(mac)
            if not any(line.left_at(each.record, at) for at in came):
                seen = f"at {each.at_ns - line.latency_ns} ns"
                yield pdus, (each, f"for {mac:012x}", "when the address comes up behind the device", seen)


def _key(message: Message) -> tuple[int, bytes]:
    fields = message.fields
    return (0, b"") if fields is None else (fields.transaction, fields.source_address)


def _is_own(clients: Clients, number: int, message: Message) -> bool:
    return message.fields is not None and message.fields.source_address == clients.addresses[number]
