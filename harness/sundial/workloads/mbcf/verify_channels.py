# SPDX-License-Identifier: Apache-2.0
"""Channels of MBCF: the sequence of each pair of nodes, who accepted what, and the reasons of acknowledgements and of
what was sent again.

Times are those of the capture at the ports of the two nodes; what a node knows follows from what passed its own port.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from sundial.verify.contention import NEVER_BUSY, Contention
from sundial.verify.findings import Finding, as_table
from sundial.workloads.mbcf.expect_acks import Receiver, after, following
from sundial.workloads.mbcf.verify_kernels import NEVER_CONGESTED, Congested
from sundial.workloads.mbcf.wire import (
    ACK,
    ACK_NOW,
    CLOSE,
    OPENED,
    PROBE,
    REQUEST_PLACES,
    RESULT,
    RETX,
    RST,
    SYN,
    SYNACK,
    TASKQUE,
    UNSURE,
    WINDOW,
)

FIRST_SEQUENCED = TASKQUE
_MOST = (1 << 32) - 1
SLACK_NS = 10_000_000
"""A full frame takes 1.2 ms on 10BASE-T, and others may be in front; the machine's own time is small beside that."""
CROSSING_NS = 5_000_000
"""How long a frame may have waited in its adapter while what made it needless arrived."""

UNPROVEN: tuple[str, ...] = (
    "MBCF: that a frame acknowledges all that had come when it left; only that all is acknowledged when that is due, up"
    " to 512,000 instructions of the node later (1,792,000 where it serves DCE RPC; 2,500,000 and 10 ms where it is a"
    " process, times the programs and threads of its machine)",
    "MBCF: that a process acknowledges anything between the end of its task and its own; where it sends no CLOSE, later"
    " than 100 ms behind the last call of its step",
    "MBCF: which frames Linux has discarded while the socket of a node that is a process was full; only that it was",
)
UNPROVEN_REAL_CLOCK: tuple[str, ...] = (
    "MBCF: why a frame was retransmitted, and that acknowledgements leave in time: a machine also waits for the host",
)

REACH = 256
"""How far back frames are looked for: more than a channel ever has under way (wire.WINDOW)."""
TRIES = 13
"""SYNs after which a node gives its peer up: one, and as many as DEAD_FAILURES of mbcf/receive.c allows again."""

_HANDSHAKE = (SYN, SYNACK, OPENED)
_UNACKNOWLEDGING = (*_HANDSHAKE, RST)
"""Frames whose acknowledgement means nothing, but for a SYNACK among nodes that know each other."""

"""field, expected, seen, rows."""

_COLUMNS = (
    "row", "time_ns", "view", "mbcf_op", "mbcf_flags", "mbcf_source", "mbcf_target", "mbcf_epoch", "mbcf_seq",
    "mbcf_ack", "mbcf_target_epoch", "mbcf_digest", "mbcf_op_id", "mbcf_status", "mbcf_last", "mbcf_nonce",
    "mbcf_echo", "mbcf_target_task",
)  # fmt: skip


class _Sighting(NamedTuple):
    """A frame at the port of its sender or of its receiver: _COLUMNS."""

    row: int
    time: int
    view: str
    op: int
    flags: int
    source: int
    target: int
    epoch: int
    seq: int
    ack: int
    target_epoch: int
    digest: int
    op_id: int
    status: int
    last: int
    nonce: int
    echo: int
    target_task: int


@dataclass
class Sent:
    """One sequence number of a channel, as its sender made it."""

    row: int
    digest: int
    arrived_ns: int | None = None
    acked_ns: int | None = None
    """When the receiver first sent an acknowledgement of it."""
    known_ns: int | None = None
    """When the sender first took one."""
    sure_ns: int | None = None
    """When it first took one that completes operations."""
    op_id: int = 0
    succeeded: bool = False
    """The receiver has sent an acknowledgement that completes operations."""
    refused: bool = False
    """An error RESULT refuses it."""


@dataclass
class Channel:
    """One direction between two nodes, for one incarnation of both."""

    receiver: Receiver
    source: int
    target: int
    """The nodes that send and receive."""
    target_epoch: int = 0
    """The receiver's incarnation."""
    sent: dict[int, Sent] = field(default_factory=dict)
    top: int | None = None
    acked: int | None = None
    succeeded: int | None = None
    """Up to where the receiver has sent acknowledgements, and some that complete operations."""
    known: int | None = None
    sure: int | None = None
    """Up to where the sender has taken the same."""
    errors: list[int] = field(default_factory=list)
    """Sequence numbers of error RESULTs that have been sent and are not known to be acknowledged."""
    unsure: list[int] = field(default_factory=list)
    """Rows of frames that are UNSURE for no reason that was seen; an error RESULT that still waits may be one."""
    errors_known_ns: int | None = None
    sure_again: bool = False
    """A frame that is not UNSURE has left since then."""
    top_ns: int = 0
    """When `top` was sent."""
    unseen: set[int] = field(default_factory=set)
    """Numbers below `top` that no port has shown."""
    again: int | None = None
    """The number that was sent again last."""
    same_ns: int | None = None
    """When the sender last took an ACK that says nothing new."""
    resent: int | None = None
    """The highest number that was sent again. Behind it, frames wait in their places until more are allowed."""


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
    acked_ns: dict[int, int]
    """Row of a first frame -> when its receiver first sent an acknowledgement of it."""
    sure_ns: dict[int, int]
    """Row of a first frame -> when its sender took an acknowledgement of it that completes operations."""
    refused: dict[int, int]
    """Row of an error RESULT -> that of the frame which it refuses."""
    filling: set[int]
    """Rows of first frames that may ask for an ACK at once: they took, or may have taken, the last place for requests,
    or are the second sending of a frame that no port has shown."""


def check_channels(
    frames: pl.DataFrame,
    *,
    exact_time: bool,
    contentions: Mapping[int, Contention],
    own_ns: Mapping[int, int],
    end_ns: Mapping[int, int],
    gone_ns: Mapping[tuple[int, int], int] | None = None,
    congested: Mapping[int, Congested] | None = None,
) -> Channels:
    """`frames`: MBCF with row, time_ns, view (sent, received). `exact_time`: the capture shows how long frames wait;
    by node, `contentions` say when it could send, `own_ns` how long it may take by itself to send an ACK, and `end_ns`
    until when it ran. `gone_ns`: when nodes that are processes, by their epochs, had ended at the earliest;
    `congested`: when their sockets may have been full."""
    walk = _Walk(exact_time, contentions, own_ns, frozenset(end_ns), gone_ns or {}, congested or {})
    # A frame that arrives at the very moment another one leaves had not been seen when that was made.
    ordered = frames.filter(pl.col("view").is_in(["sent", "received"])).sort(
        "time_ns", "view", "row", descending=[False, True, False]
    )
    for line in ordered.select(pl.col(_COLUMNS).fill_null(0)).iter_rows():
        walk.frame(_Sighting._make(line))
    walk.ends(end_ns)
    return walk.result()


class _Walk:
    """Goes through the frames of all channels in the order of time."""

    def __init__(
        self,
        exact_time: bool,
        contentions: Mapping[int, Contention],
        own_ns: Mapping[int, int],
        kernels: frozenset[int],
        gone_ns: Mapping[tuple[int, int], int],
        congested: Mapping[int, Congested],
    ) -> None:
        self.gone_ns, self.congested = gone_ns, congested
        self.exact, self.contentions, self.own_ns, self.kernels = exact_time, contentions, own_ns, kernels
        self.leaving: set[tuple[int, int]] = set()
        """Nodes, with their epochs, that are processes whose task has ended: they end, too."""
        self.channels: dict[tuple[int, int, int, int], Channel] = {}
        self.epochs: dict[int, int] = {}
        self.asked: dict[tuple[int, int], int] = {}
        """Nonces of the latest SYN, and (with the epoch that is to return it) of the latest SYNACK, by both nodes."""
        self.bases: dict[tuple[int, int], int] = {}
        """What the latest SYN says that will not be sent again, by both nodes."""
        self.tried: dict[tuple[int, int], int] = {}
        """SYNs since anything else was sent, by both nodes."""
        self.busy: set[tuple[int, int]] = set()
        """Nodes and peers: the node has sent more than SYNs since the latest."""
        self.heard: dict[tuple[int, int, int], int] = {}
        """The latest nonces that came, by node, peer, and the part of the handshake that brought them."""
        self.challenged: dict[tuple[int, int, int], int] = {}
        self.believed: dict[tuple[int, int], int] = {}
        """By node and peer: the peer's epoch that has returned a nonce."""
        self.faults: list[Finding] = []
        self.first: list[int] = []
        self.again: list[int] = []
        self.accepted: list[int] = []
        self.received: dict[int, int] = {}
        self.sent_ns: dict[int, int] = {}
        self.acked_ns: dict[int, int] = {}
        self.sure_ns: dict[int, int] = {}
        self.refused: dict[int, int] = {}
        self.filling: set[int] = set()

    def channel(self, source: int, target: int, epoch: int, target_epoch: int) -> Channel:
        key = (source, target, epoch, target_epoch)
        found = self.channels.get(key)
        if found is None:
            own, wire = self.own_ns.get(target, SLACK_NS), self.contentions.get(target, NEVER_BUSY)
            receiver = Receiver(max(SLACK_NS, own), own, wire.idle_ns)
            found = self.channels[key] = Channel(receiver, source, target, target_epoch)
        return found

    def frame(self, frame: _Sighting) -> None:
        # A SYN names no incarnation of the other node: it is for the one that is there.
        target_epoch = frame.target_epoch or self.epochs.get(frame.target, 0)
        forth = self.channel(frame.source, frame.target, frame.epoch, target_epoch)
        back = self.channel(frame.target, frame.source, target_epoch, frame.epoch) if frame.target_epoch else None
        if frame.view == "sent":
            self.sends(frame, forth, back)
        else:
            self.receives(frame, forth, back)

    def sends(self, frame: _Sighting, forth: Channel, back: Channel | None) -> None:
        row, time, op, seq = frame.row, frame.time, frame.op, frame.seq
        if self.epochs.get(frame.source) != frame.epoch or op != SYN:
            self.busy.add((frame.source, frame.target))
        self.epochs[frame.source] = frame.epoch
        if op == CLOSE and frame.target_task == 0 and frame.source not in self.kernels:
            self.leaving.add((frame.source, frame.epoch))
        if op >= FIRST_SEQUENCED:
            fresh = self.leaves(forth, row, time, frame.flags, seq, frame.digest)
            if fresh is not None:
                fresh.op_id = frame.op_id
                if op not in (CLOSE, RESULT):
                    self.fills(forth, row, time, frame.source, seq, frame.flags)
                if op == RESULT:
                    self.answers(forth, back, frame)
        elif op == SYN:
            self.asked[frame.source, frame.target] = frame.nonce
            self.begins(frame)
            self.opens(forth, seq, time)
        else:
            if op == SYNACK:
                self.challenged[frame.source, frame.target, frame.target_epoch] = frame.nonce
            if op in _HANDSHAKE and forth.top is None:
                forth.top, forth.top_ns = seq, time
            heard = self.heard.get((frame.source, frame.target, SYN if op == SYNACK else SYNACK))
            if op in (SYNACK, OPENED) and frame.echo != heard:
                self.fault("mbcf.echo", f"the nonce that came, {heard}", str(frame.echo), row)
            base = self.bases.get((frame.source, frame.target))
            if op == OPENED and base != seq:
                self.fault("mbcf.seq", f"{base}, as its SYN says", str(seq), row)
        if op not in _UNACKNOWLEDGING:
            self.certainty(forth, row, time, seq, frame.flags)
            if back is not None:
                self.acknowledges(back, row, time, op, frame.ack, bool(frame.flags & UNSURE))

    def receives(self, frame: _Sighting, forth: Channel, back: Channel | None) -> None:
        op, time = frame.op, frame.time
        how = ""
        if op in _HANDSHAKE:
            self.heard[frame.target, frame.source, op] = frame.nonce
            self.shakes(frame)
            forth.receiver.begin(frame.seq)
        elif not self.believes(frame):
            return
        elif op == PROBE:
            forth.receiver.asked(time)
        elif op >= FIRST_SEQUENCED and back is not None:
            how = self.arrives(forth, frame.row, time, frame.flags, frame.seq)
        # What a frame behind a gap acknowledges frees places, and completes nothing: an error may be in that gap.
        taken = op not in _UNACKNOWLEDGING or (op == SYNACK and frame.nonce == 0)
        if back is not None and taken:
            if op == ACK and frame.ack == back.known:
                back.same_ns = time
            sure = not frame.flags & UNSURE and op != SYNACK and how != "gap"
            self.takes(back, forth, time, frame.ack, sure)

    def shakes(self, frame: _Sighting) -> None:
        """Whether a part of the handshake shows that its sender lives: it returns the nonce that it was given last."""
        here, there = frame.target, frame.source
        if frame.target_epoch != self.epochs.get(here):
            return
        if frame.op == OPENED and frame.echo == self.challenged.get((here, there, frame.epoch)):
            self.believed[here, there] = frame.epoch
        if frame.op == SYNACK and frame.nonce and frame.echo == self.asked.get((here, there)):
            self.believed[here, there] = frame.epoch

    def believes(self, frame: _Sighting) -> bool:
        """Whether the receiver takes anything of a frame."""
        known = self.believed.get((frame.target, frame.source))
        return known == frame.epoch and frame.target_epoch == self.epochs.get(frame.target)

    def begins(self, frame: _Sighting) -> None:
        """A SYN: until the node has sent anything else to its peer, it begins where the one before did. When it has
        tried as often as it does, it gives up what was to follow, and begins behind that."""
        between = (frame.source, frame.target)
        before = self.bases.get(between)
        quiet = before is not None and between not in self.busy
        if before is not None and quiet and before != frame.seq:
            given_up = self.tried[between] % TRIES == 0 and after(frame.seq, before) and frame.seq - before <= WINDOW
            if not given_up:
                self.fault("mbcf.seq", f"{before}, as the SYN before", str(frame.seq), frame.row)
        self.tried[between] = self.tried.get(between, 0) + 1 if quiet else 1
        self.bases[between] = frame.seq
        self.busy.discard(between)

    def opens(self, channel: Channel, base: int, time: int) -> None:
        """A SYN: what was given up behind `base` will be used again, for other frames. What was given up before `base`
        and has not been sent never is."""
        for seq in [seq for seq in channel.sent if after(seq, base)]:
            del channel.sent[seq]
        channel.errors = [seq for seq in channel.errors if not after(seq, base)]
        channel.unseen = {seq for seq in channel.unseen if not after(seq, base)}
        ahead = 0 if channel.top is None else (base - channel.top) % (_MOST + 1)
        if channel.top is None or after(channel.top, base) or 0 < ahead <= WINDOW:
            channel.top, channel.top_ns = base, time

    def leaves(self, channel: Channel, row: int, time: int, flags: int, seq: int, digest: int) -> Sent | None:
        """A sequenced frame is sent; returns it where that is for the first time."""
        known = channel.sent.get(seq)
        if known is None:
            self.begins_at(channel, row, time, flags, seq)
            known = channel.sent[seq] = Sent(row, digest)
            if seq in channel.unseen:
                channel.unseen.discard(seq)
            else:
                channel.top, channel.top_ns = seq, time
            self.first.append(row)
            self.sent_ns[row] = time
            return known
        self.again.append(row)
        channel.resent = _later(channel.resent, seq)
        if not flags & RETX:
            self.fault("mbcf.retx", "RETX on what was sent before", f"{seq} again without it", row, known.row)
        if digest != known.digest:
            self.fault("mbcf.content", "the same again", f"{seq} with another content", row, known.row)
        behind = channel.again is not None and seq == following(channel.again)
        channel.again = seq
        self.cause(channel, known, seq, row, time, behind=behind)
        return None

    def begins_at(self, channel: Channel, row: int, time: int, flags: int, seq: int) -> None:
        """A number is seen for the first time: it is the next one, and was not sent before, unless Linux discarded what
        is missing."""
        again = bool(flags & RETX)
        if seq in channel.unseen:
            if again:
                self.filling.add(row)
            else:
                self.fault("mbcf.retx", "RETX on what was sent before", f"{seq} again without it", row)
            return
        low = channel.top
        full = low is not None and self.may_discard(channel.source, channel.top_ns, time)
        if low is not None and seq != following(low):
            if full and after(seq, low) and (seq - low) % (_MOST + 1) <= WINDOW:
                missing = following(low)
                while missing != seq:
                    channel.unseen.add(missing)
                    missing = following(missing)
            else:
                self.fault("mbcf.sequence", f"sequence number {following(low)}", str(seq), row)
        if again and full:
            self.filling.add(row)
        elif again:
            self.fault("mbcf.retx", "RETX only on what was sent before", f"RETX on the first {seq}", row)

    def may_discard(self, node: int, since: int, until: int) -> bool:
        """Whether what a node handed to Linux between two instants may have found no room."""
        return self.congested.get(node, NEVER_CONGESTED).meets(since, until)

    def fills(self, channel: Channel, row: int, time: int, node: int, seq: int, flags: int) -> None:
        """Whether a request took the last place: one after another all before it are not acknowledged."""
        if row in self.filling:
            return
        first = channel.sent.get((seq - REQUEST_PLACES) % _MOST + 1)
        if first is None:
            if channel.resent is not None:
                self.filling.add(row)
            return
        if first.known_ns is None:
            self.filling.add(row)
            if not flags & ACK_NOW:
                text = f"without, {REQUEST_PLACES} frames are not acknowledged"
                self.fault("mbcf.ack_now", "ACK_NOW on the last request of a window", text, row)
        elif channel.resent is not None and not after(seq, channel.resent + 2 * REQUEST_PLACES):
            self.filling.add(row)
        elif not self.exact or self.waited(node, first.known_ns, time):
            self.filling.add(row)  # it may have waited, for the wire or its host, since before that acknowledgement

    def waited(self, node: int, since: int, time: int) -> bool:
        """Whether what `node` made at `since` may leave at `time`: by its own work, and behind what takes the wire."""
        own, wire = self.own_ns.get(node, SLACK_NS), self.contentions.get(node, NEVER_BUSY)
        return wire.idle_ns(since, time) <= own

    def crosses(self, channel: Channel, known: int, time: int) -> bool:
        """Whether what leaves at `time` may have been made before what its sender took at `known`."""
        return time <= known + CROSSING_NS or self.waited(channel.source, known, time)

    def cause(self, channel: Channel, known: Sent, seq: int, row: int, time: int, *, behind: bool) -> None:
        """Why a frame was sent again: the wire, which an ACK may also wait for, or a mistake of one of the two nodes.
        The host's delays look alike. `behind`: it follows the frame that was sent again before it."""
        if not self.exact or self.has_left(channel):
            return
        if known.known_ns is not None:
            if self.crosses(channel, known.known_ns, time):
                return  # it was made before the ACK came
            self.fault(
                "mbcf.retransmission",
                "a frame or ACK that did not arrive",
                f"{seq} was acknowledged before",
                row,
                known.row,
            )
            return
        until = self.alive(channel, time)
        if known.arrived_ns is not None and known.arrived_ns + CROSSING_NS < until and known.acked_ns is None:
            if channel.target in self.contentions and self.waited(channel.target, known.arrived_ns, until):
                return  # the ACK is behind what the receiver had handed to its adapter
            if self.may_discard(channel.target, known.arrived_ns, until):
                return  # Linux had no room for the ACK
            if self.waits(channel, until) and (behind or self.repeats(channel, known)):
                return  # its own ACK is not due, and the row that goes again has another cause
            text = f"{seq} had arrived {time - known.arrived_ns} ns before and was not acknowledged"
            self.fault("mbcf.retransmission", "a frame or ACK that did not arrive", text, row, known.row)

    def waits(self, channel: Channel, until: int) -> bool:
        """Whether the receiver's next acknowledgement is not due yet: it waits while frames follow one another."""
        due = channel.receiver.due_ns()
        return due is None or until <= due + channel.receiver.own_ns

    def repeats(self, channel: Channel, known: Sent) -> bool:
        """Whether the sender has taken an ACK that says nothing new since it sent a frame."""
        return channel.same_ns is not None and self.sent_ns[known.row] <= channel.same_ns

    def has_left(self, channel: Channel) -> bool:
        """Whether the receiver's incarnation has ended its task, or another one has followed."""
        node, epoch = channel.target, channel.target_epoch
        return (node, epoch) in self.leaving or self.epochs.get(node, epoch) != epoch

    def alive(self, channel: Channel, time: int) -> int:
        """`time`, or when the receiver's process had ended before."""
        return min(time, self.gone_ns.get((channel.target, channel.target_epoch), time))

    def answers(self, channel: Channel, back: Channel | None, frame: _Sighting) -> None:
        """A RESULT is sent: of a frame that came, by its number and op_id."""
        row = frame.row
        named = back.sent.get(frame.last) if back is not None else None
        if frame.status > 0:
            channel.errors.append(frame.seq)
            channel.unsure.clear()
            channel.sure_again = False
        if named is None or named.op_id != frame.op_id or named.row not in self.received:
            text = f"frame {frame.last} with op_id {frame.op_id} names none"
            self.fault("mbcf.result", "an answer to a frame that came", text, row)
        elif frame.status > 0 and not named.refused:
            named.refused = True
            self.refused[row] = named.row
            if named.succeeded:
                text = "acknowledged without UNSURE before its error was sent"
                self.fault("mbcf.unsure", "no success of what is refused", text, row, named.row)

    def certainty(self, channel: Channel, row: int, time: int, seq: int, flags: int) -> None:
        """UNSURE is on what may arrive before an error RESULT, and on nothing else."""
        due = any(seq == 0 or after(error, seq) for error in channel.errors)
        if due and not flags & UNSURE:
            text = f"none, while the error {channel.errors[0]} is not acknowledged"
            self.fault("mbcf.unsure", "UNSURE", text, row)
        elif flags & UNSURE and not due:
            known = channel.errors_known_ns
            if known is None or channel.sure_again or (self.exact and not self.crosses(channel, known, time)):
                channel.unsure.append(row)
        elif not due and channel.errors_known_ns is not None:
            channel.sure_again = True

    def arrives(self, channel: Channel, row: int, time: int, flags: int, seq: int) -> str:
        """A sequenced frame reaches its node: what becomes of it."""
        self.overdue(channel, row, time)
        how = channel.receiver.arrive(time, seq, bool(flags & ACK_NOW))
        if how != "accepted":
            return how
        self.accepted.append(row)
        known = channel.sent.get(seq)
        if known is None:
            self.fault("mbcf.sequence", "only what was sent", f"{seq} arrived, but was not sent", row)
        elif known.arrived_ns is None:
            known.arrived_ns = time
            self.received[known.row] = time
        return how

    def takes(self, channel: Channel, reverse: Channel, time: int, ack: int, sure: bool) -> None:
        """The sender of `channel` takes an acknowledgement; `reverse`: where the frame came that brought it."""
        for passed in self._backwards(ack, channel.known, channel):
            passed.known_ns = time
        channel.known = _later(channel.known, ack)
        if sure:
            for passed in self._backwards(ack, channel.sure, channel):
                passed.sure_ns = self.sure_ns[passed.row] = time
            channel.sure = _later(channel.sure, ack)
        if channel.errors:
            channel.errors = [seq for seq in channel.errors if after(seq, ack)]
            if not channel.errors:
                channel.errors_known_ns = time
                reverse.receiver.errors_known(time)

    def acknowledges(self, channel: Channel, row: int, time: int, op: int, ack: int, unsure: bool) -> None:
        self.overdue(channel, row, time)
        for passed in self._backwards(ack, channel.acked, channel):
            passed.acked_ns = self.acked_ns[passed.row] = time
        channel.acked = _later(channel.acked, ack)
        if not unsure:
            for passed in self._backwards(ack, channel.succeeded, channel):
                passed.succeeded = True
            channel.succeeded = _later(channel.succeeded, ack)
        wrong = channel.receiver.sent(time, ack, op == ACK, unsure, asks=op == PROBE)
        if wrong and (self.exact or "acknowledges" in wrong):
            self.fault("mbcf.ack", "an acknowledgement that is due", wrong, row)

    def overdue(self, channel: Channel, row: int | None, time: int) -> None:
        if not self.exact or self.has_left(channel):
            return
        until = self.alive(channel, time)
        due = channel.receiver.late(until)
        if due is not None and not self.may_discard(channel.target, due, until):
            text = f"none, {time - due} ns after it was due"
            self.fault("mbcf.ack", "an acknowledgement that is due", text, *([] if row is None else [row]))

    def ends(self, end_ns: Mapping[int, int]) -> None:
        """The run ends: an acknowledgement that was due before is not to come."""
        for (source, target, epoch, target_epoch), channel in self.channels.items():
            alive = (self.epochs.get(source), self.epochs.get(target)) == (epoch, target_epoch)
            if alive and target in end_ns:
                self.overdue(channel, None, end_ns[target])

    def _backwards(self, high: int, low: int | None, channel: Channel) -> Iterator[Sent]:
        """What was sent up to `high` and behind `low`, the latest first."""
        seq = high
        for _ in range(REACH):
            if seq == low or (low is not None and not after(seq, low)):
                return
            found = channel.sent.get(seq)
            if found is None:
                return
            yield found
            seq = _MOST if seq == 1 else seq - 1

    def fault(self, name: str, expected: str, seen: str, *rows: int) -> None:
        self.faults.append(Finding(None, name, expected, seen, rows))

    def result(self) -> Channels:
        for channel in self.channels.values():
            for row in channel.unsure:
                self.fault(
                    "mbcf.unsure", "UNSURE only where an error may be on its way", "UNSURE without an error", row
                )
        return Channels(
            as_table(self.faults), self.first, self.again, self.accepted, self.received, self.sent_ns, self.acked_ns,
            self.sure_ns, self.refused, self.filling,
        )  # fmt: skip


def _later(one: int | None, other: int) -> int:
    return other if one is None or after(other, one) else one
