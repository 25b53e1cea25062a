# SPDX-License-Identifier: Apache-2.0
"""Steps whose client reached no server: all of its calls have failed, and the capture must show why.

A client tries once under the virtual clock. It was refused, its machine found no next hop, its connection or the
server's root object did not come in time, or the server has ended the connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import polars as pl

from sundial.judge import parties
from sundial.verify.findings import Finding
from sundial.verify.sockets import tcp
from sundial.verify.sockets.conversations import Conversation
from sundial.workloads.rpyc.expect import Version
from sundial.workloads.rpyc.verify_names import LATE, UNREACHED, Planned
from sundial.workloads.rpyc.verify_replay import Replay

REFUSED, NO_WAY = "ConnectionRefusedError", "OSError"
ENDED = ("EOFError", "ConnectionResetError", "BrokenPipeError")


class Opening:
    """A connection that its client has not used for a call, up to the server's root object."""

    def __init__(self, conversation: Conversation, version: Version, frames: pl.DataFrame) -> None:
        """`frames`: those of all connections."""
        self.conversation = conversation
        ways = conversation.ways
        over = {reply: way.finished or bool(conversation.reset_rows) for reply, way in ways.items()}
        data = {reply: way.data for reply, way in ways.items()}
        self.replay = Replay(version, [], data, over, by_server=conversation.ended_by_server)
        self.replay.run()
        self._frames = frames

    @cached_property
    def connected(self) -> bool:
        """Whether the client had an answer to its SYN: then it acknowledges that."""
        flags = pl.col("tcp_flags")
        own = (pl.col("conn") == self.conversation.number) & ~pl.col("reply") & (pl.col("view") == "sent")
        acknowledges = (flags & tcp.ACK != 0) & (flags & (tcp.SYN | tcp.RST) == 0)
        return self._frames.filter(own & acknowledges).height > 0

    @property
    def asked_ns(self) -> int:
        """When it last asked for something: with a SYN, or a request."""
        lines = self.replay.tracks[False].lines
        way = self.conversation.ways[False]
        return way.sent_ns(lines[-1].begin + 1) if lines else self.conversation.opened_ns

    def answered_by(self, at_ns: int) -> bool:
        """Whether all that it asked for had come by then."""
        asked, said = (len(self.replay.tracks[reply].lines) for reply in (False, True))
        lines = self.replay.tracks[True].lines
        came_ns = self.conversation.ways[True].arrived_ns(lines[asked - 1].end) if 0 < asked <= said else None
        return came_ns is not None and came_ns <= at_ns


def ended_ns(plan: Planned) -> int:
    """When a client gave up: it says so in all of its calls from then on."""
    return plan.batches[0].calls[0].start_ns


def is_opening(plan: Planned, conversation: Conversation, *, exact: bool) -> bool:
    """Whether a connection that no calls have may be that of a step."""
    address, port = plan.client
    if (conversation.client_machine, conversation.server) != (plan.machine, plan.server):
        return False
    if port:
        return conversation.client == (address, port)
    return not exact or conversation.opened_ns <= ended_ns(plan)


def check_unreached(
    plan: Planned, openings: Sequence[Opening], unresolved: Sequence[tuple[int, int]], *, exact: bool
) -> Iterator[Finding]:
    """What a client says of its calls, and whether its connections show why. `unresolved`: when ARP had no answer for
    its machine."""
    first, error = plan.batches[0].calls[0], UNREACHED + str(plan.unreached)
    for batch in plan.batches:
        counted = {name: batch.line.get(name) for name in ("exchanges", "tcp_retransmits")}
        yield from parties.check_unreached(batch, error, counted)
    if exact and len(openings) > 1:
        yield Finding(None, "rpyc.connection", "one attempt of a step that reached no server", str(len(openings)))
    for opening in openings:
        difference = opening.replay.difference
        if difference is not None and difference.begin < difference.end:
            rows = opening.conversation.ways[difference.reply].rows(difference.begin, difference.end)
            field = f"rpyc.{'reply' if difference.reply else 'request'}.{difference.field}"
            yield Finding(None, field, difference.expected, difference.seen, rows)
        if opening.connected != bool(plan.client[1]):
            expected = "a connection" if plan.client[1] else "none"
            yield Finding(first.id, "sample.error", f"one of a client that had {expected}", error)
    limit_ns = int(plan.options.get("total_timeout_ms") or 0) * 1_000_000
    if not _is_explained(plan, openings, unresolved, limit_ns, exact=exact):
        yield Finding(first.id, "sample.error", "none: no connection shows why", error)


def _is_explained(
    plan: Planned, openings: Sequence[Opening], unresolved: Sequence[tuple[int, int]], limit_ns: int, *, exact: bool
) -> bool:
    at_ns = ended_ns(plan)
    if plan.unreached == REFUSED:
        return any(each.conversation.refused for each in openings)
    if plan.unreached == NO_WAY:
        return any(begin <= at_ns or not exact for begin, _ in unresolved)
    if plan.unreached in ENDED:
        return any(each.conversation.ways[True].ended_ns is not None for each in openings)
    if plan.unreached != LATE:
        return False
    if not openings:
        return bool(unresolved)
    if not exact:
        return True
    return all(each.asked_ns + limit_ns <= at_ns and not each.answered_by(at_ns) for each in openings)
