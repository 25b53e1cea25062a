# SPDX-License-Identifier: Apache-2.0
"""Channels of MBCF: the sequence of each pair of nodes, who accepted what, and the reasons of acknowledgements and of
what was sent again.

Times are those of the capture at the ports of the two nodes; what a node knows follows from what passed its own port.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from sundial.expect.mbcf_acks import Receiver, after
from sundial.verify.findings import FINDING

ACK, SYN, SYNACK, RST, PROBE = range(5)
FIRST_SEQUENCED = 0x10
ACK_NOW, RETX = 2, 8
SLACK_NS = 10_000_000
"""A full frame takes 1.2 ms on 10BASE-T, and others may be in front; the machine's own time is small beside that."""
CROSSING_NS = 5_000_000
"""How long a frame may have waited in its adapter while what made it needless arrived."""

WINDOW = 64
"""More than a channel ever has under way."""

Fault = tuple[str, str, str, list[int]]
"""field, expected, seen, rows."""

_COLUMNS = (
    "row", "time_ns", "view", "mbcf_op", "mbcf_flags", "mbcf_source", "mbcf_target", "mbcf_epoch", "mbcf_seq",
    "mbcf_ack", "mbcf_ack_epoch", "mbcf_digest",
)  # fmt: skip


@dataclass
class Sent:
    """One sequence number of a channel, as its sender made it."""

    row: int
    digest: int
    arrived_ns: int | None = None
    acked_ns: int | None = None
    """When the receiver first sent an acknowledgement of it."""
    known_ns: int | None = None
    """When the sender first received one."""


@dataclass
class Channel:
    """One direction between two nodes, for one incarnation of both."""

    receiver: Receiver
    sent: dict[int, Sent] = field(default_factory=dict)
    top: int | None = None
    acked: int = 0
    known: int = 0


@dataclass(frozen=True)
class Channels:
    """`findings`; rows of frames that were sent for the first time, sent again, and of those that a node executed."""

    findings: pl.DataFrame
    first: list[int]
    again: list[int]
    accepted: list[int]
    received: dict[int, int]
    """Row of a first frame -> when it was accepted."""
    sent_ns: dict[int, int]
    """Row of a first frame -> when it was sent."""


def half(epoch: int) -> int:
    """What `ack_epoch` says of an epoch: its low half, where 0 has another meaning."""
    return epoch & 0xFFFF or 0xFFFF


def check_channels(frames: pl.DataFrame, *, exact_time: bool) -> Channels:
    """`frames`: MBCF with row, time_ns, view (sent, received). `exact_time`: waits can be told from the capture."""
    walk = _Walk(exact_time)
    # A frame that arrives at the very moment another one leaves had not been seen when that was made.
    ordered = frames.filter(pl.col("view").is_in(["sent", "received"])).sort(
        "time_ns", "view", "row", descending=[False, True, False]
    )
    for line in ordered.select(_COLUMNS).iter_rows():
        walk.frame(*line)
    return walk.result()


class _Walk:
    """Goes through the frames of all channels in the order of time."""

    def __init__(self, exact_time: bool) -> None:
        self.exact = exact_time
        self.channels: dict[tuple[int, int, int], Channel] = {}
        self.epochs: dict[int, int] = {}
        self.faults: list[Fault] = []
        self.first: list[int] = []
        self.again: list[int] = []
        self.accepted: list[int] = []
        self.received: dict[int, int] = {}
        self.sent_ns: dict[int, int] = {}

    def channel(self, source: int, target: int, epoch: int) -> Channel:
        key = (source, target, epoch)
        found = self.channels.get(key)
        if found is None:
            found = self.channels[key] = Channel(Receiver(SLACK_NS))
        return found

    def frame(
        self, row: int, time: int, view: str, op: int, flags: int, source: int, target: int, epoch: int, seq: int,
        ack: int, ack_epoch: int, digest: int,
    ) -> None:  # fmt: skip
        forth = self.channel(source, target, epoch)
        peer = self.epochs.get(target, 0)
        back = self.channel(target, source, peer) if peer and half(peer) == ack_epoch else None
        if view == "sent":
            self.epochs[source] = epoch
            if op >= FIRST_SEQUENCED:
                self.leaves(forth, row, time, flags, seq, digest)
            elif op == SYN:
                self.opens(forth, seq)
            if back is not None and op not in (SYN, SYNACK, RST):
                self.acknowledges(back, row, time, op, ack)
        else:
            if op in (SYN, SYNACK):
                forth.receiver.begin(seq)
            elif op == PROBE:
                forth.receiver.asked(time)
            elif op >= FIRST_SEQUENCED and back is not None:
                self.arrives(forth, row, time, flags, seq)
            if back is not None and op != SYN:
                for passed in self._between(back.known, ack, back):
                    passed.known_ns = time
                back.known = max(back.known, ack)

    def opens(self, channel: Channel, base: int) -> None:
        """A SYN: what was given up behind `base` will be used again, for other frames."""
        for seq in [seq for seq in channel.sent if after(seq, base)]:
            del channel.sent[seq]
        channel.top = base if channel.top is None or after(channel.top, base) else channel.top

    def leaves(self, channel: Channel, row: int, time: int, flags: int, seq: int, digest: int) -> None:
        known = channel.sent.get(seq)
        if known is None:
            if channel.top is not None and seq != (1 if channel.top == 0xFFFFFFFF else channel.top + 1):
                self.fault("mbcf.sequence", f"sequence number {channel.top + 1}", str(seq), row)
            if flags & RETX:
                self.fault("mbcf.retx", "RETX only on what was sent before", f"RETX on the first {seq}", row)
            channel.sent[seq] = Sent(row, digest)
            channel.top = seq
            self.first.append(row)
            self.sent_ns[row] = time
            return
        self.again.append(row)
        if not flags & RETX:
            self.fault("mbcf.retx", "RETX on what was sent before", f"{seq} again without it", row, known.row)
        if digest != known.digest:
            self.fault("mbcf.content", "the same again", f"{seq} with another content", row, known.row)
        self.cause(known, seq, row, time)

    def cause(self, known: Sent, seq: int, row: int, time: int) -> None:
        """Why a frame was sent again: the wire, or a mistake of one of the two nodes."""
        if known.known_ns is not None and known.known_ns + CROSSING_NS < time:
            self.fault(
                "mbcf.retransmission",
                "a frame or ACK that did not arrive",
                f"{seq} was acknowledged before",
                row,
                known.row,
            )
        elif known.arrived_ns is not None and known.arrived_ns + CROSSING_NS < time and known.acked_ns is None:
            text = f"{seq} had arrived {time - known.arrived_ns} ns before and was not acknowledged"
            self.fault("mbcf.retransmission", "a frame or ACK that did not arrive", text, row, known.row)

    def arrives(self, channel: Channel, row: int, time: int, flags: int, seq: int) -> None:
        self.overdue(channel, row, time)
        if channel.receiver.arrive(time, seq, bool(flags & ACK_NOW)) != "accepted":
            return
        self.accepted.append(row)
        known = channel.sent.get(seq)
        if known is None:
            self.fault("mbcf.sequence", "only what was sent", f"{seq} arrived, nobody had sent it", row)
        elif known.arrived_ns is None:
            known.arrived_ns = time
            self.received[known.row] = time

    def acknowledges(self, channel: Channel, row: int, time: int, op: int, ack: int) -> None:
        self.overdue(channel, row, time)
        for passed in self._between(channel.acked, ack, channel):
            passed.acked_ns = time
        channel.acked = max(channel.acked, ack)
        wrong = channel.receiver.sent(time, ack, op == ACK)
        if wrong and (self.exact or "acknowledges" in wrong):
            self.fault("mbcf.ack", "an acknowledgement that is due", wrong, row)

    def overdue(self, channel: Channel, row: int, time: int) -> None:
        due = channel.receiver.late(time) if self.exact else None
        if due is not None:
            text = f"none, {time - due} ns after it was due"
            self.fault("mbcf.ack", "an acknowledgement that is due", text, row)

    def _between(self, low: int, high: int, channel: Channel) -> Iterator[Sent]:
        for seq in range(max(low + 1, high - WINDOW + 1), high + 1):
            found = channel.sent.get(seq)
            if found is not None:
                yield found

    def fault(self, name: str, expected: str, seen: str, *rows: int) -> None:
        self.faults.append((name, expected, seen, list(rows)))

    def result(self) -> Channels:
        lines = [(None, *fault) for fault in self.faults]
        table = pl.DataFrame(lines, schema=FINDING, orient="row")
        return Channels(table, self.first, self.again, self.accepted, self.received, self.sent_ns)
