# SPDX-License-Identifier: Apache-2.0
"""What LAN emulation's services send, and when: they have a message whole, wait `service_latency`, and send on a line
of their own. What they send follows from what they got (af-lane-0021, 4.5 to 4.8); its form is `verify_lane`'s.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sundial.expect.atm import UNITS_PER_PS
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import (
    CONFIGURATION,
    CONTROL,
    DISTRIBUTE,
    MULTICAST,
    MULTICAST_SEND,
    NOWHERE,
    services_port,
)
from sundial.segments.atm.verify_lines import NS, Times, stamp
from sundial.segments.atm.verify_output import Copies
from sundial.segments.atm.verify_pdus import Pdus
from sundial.segments.atm.verify_turns import in_turn
from sundial.verify.frames import INBOUND
from sundial.verify.wire import Mask, Numbers, queue_starts

_ANSWER, _OPCODE, _TRANSACTION = 4, 5, 8
"""Places in an LE control frame: high octet of the opcode, which is 0 of a request, low octet, transaction of four
octets."""


def sent_by_services(segment: Atm, pdus: Pdus, copies: Copies, got: Numbers, ready: Times) -> Copies:
    """What LES, LECS and BUS sent, a copy for each port that it went to, one behind another on their line; `got`: the
    copies that came to them, each whole when it is `ready`."""
    # What is done on an arrival is done at a whole ps.
    ready = Times(*(-(-each // UNITS_PER_PS) * UNITS_PER_PS for each in (ready.likely, ready.low, ready.high)))
    ready += segment.lan_emulation.service_latency * NS
    parts = [_sendings(copies, got), _answers(segment, pdus, copies, got, ready)]
    sendings = pl.concat(parts)
    order = np.lexsort((sendings["cause"].to_numpy(), ready.likely[sendings["cause"].to_numpy()]))
    sendings = sendings[order]
    cause, pdu = sendings["cause"].to_numpy(), sendings["pdu"].to_numpy()
    cells = pdus.cells[pdu]
    cell_time = segment.lan_emulation.service_line.cell_time_units
    busy = cells * cell_time
    at = ready.take(cause)
    to, vci = sendings["to"].to_numpy(), sendings["vci"].to_numpy()
    delays = to[:0]
    if segment.interleave == "cells":
        left, delays = _in_turn(at, _channel(segment, vci, to), cells, cell_time)
    else:
        left = _in_order(at, busy)
    train = np.cumsum(cells) - cells if len(delays) else np.full(len(to), -1)
    every = to == NOWHERE
    count = np.where(every, len(segment.ports), 1)
    which = np.repeat(np.arange(len(to)), count)
    number = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    vci = vci[which]
    sender = np.full(len(which), services_port(segment))
    left = left.take(which)
    joins = left + (cell_time + segment.cell_latency * NS)
    return Copies(
        pdu[which], sender, np.where(every[which], number, to[which]), vci, vci, cells[which],
        np.full(len(which), cell_time), left, joins, train[which], delays,
    )  # fmt: skip


def _channel(segment: Atm, vci: Numbers, to: Numbers) -> Numbers:
    """The services' channels in their order: to each port configuration and control, then those to all."""
    own = 2 * to + (vci == CONTROL)
    return np.asarray(np.where(to == NOWHERE, 2 * len(segment.ports) + (vci == MULTICAST), own))


def _in_order(at: Times, work: Numbers) -> Times:
    """One behind the other: when each begins. Where it is not known which comes first, each while there are any."""
    likely, low, high = (queue_starts(np.maximum.accumulate(each), work) for each in (at.likely, at.low, at.high))
    if not len(work):
        return Times(likely, low, high)
    ends, run = _runs(at, work)
    overtakes = np.append(False, at.low[1:] < np.maximum.accumulate(at.high)[:-1])
    unsure = _any(overtakes, run)[run]
    return Times(likely, np.where(unsure, at.low, low), np.where(unsure, ends[run] - work, high))


def _in_turn(at: Times, channel: Numbers, cells: Numbers, cell_time: int) -> tuple[Times, Numbers]:
    """Cells of each channel in turn: when each PDU begins, and how much later than one behind the other its cells
    leave. Where it is not known to the unit what comes first, each leaves while there are any."""
    begin = np.cumsum(cells) - cells
    likely = in_turn(at.likely, channel, cells, cell_time)
    if not len(begin):
        return at, likely
    first = likely[begin]
    place = np.arange(len(likely)) - np.repeat(begin, cells)
    delays = likely - np.repeat(first, cells) - place * cell_time
    work = cells * cell_time
    ends, run = _runs(at, work)
    low, high = at.low - delays[begin + cells - 1], ends[run] - work
    unsure = _any(at.low != at.high, run)[run]
    return Times(first, np.where(unsure, np.minimum(low, first), first),
                 np.where(unsure, np.maximum(high, first), first)), delays  # fmt: skip


def _runs(at: Times, work: Numbers) -> tuple[Numbers, Numbers]:
    """Stretches between which the line is idle for certain: when each is over at the latest, and which each PDU is
    in."""
    done = queue_starts(np.maximum.accumulate(at.high), work) + work
    earliest = np.minimum.accumulate(at.low[::-1])[::-1]
    run = np.cumsum(np.append(True, earliest[1:] >= done[:-1])) - 1
    return done[np.append(np.flatnonzero(np.diff(run)), len(run) - 1)], run


def _any(which: Mask, run: Numbers) -> Mask:
    """Whether there is one in each stretch."""
    found = np.zeros(int(run[-1]) + 1, np.bool_)
    found[run[which]] = True
    return found


_SENDING = {"cause": pl.Int64, "pdu": pl.Int64, "vci": pl.Int64, "to": pl.Int64}
"""`cause`: the place among what the services got; `to`: NOWHERE for every port."""


def _sendings(copies: Copies, got: Numbers) -> pl.DataFrame:
    """The BUS sends what it got to every port."""
    cause = np.flatnonzero(copies.sent_vci[got] == MULTICAST_SEND)
    return pl.DataFrame(
        {"cause": cause, "pdu": copies.pdu[got][cause], "vci": np.full(len(cause), MULTICAST),
         "to": np.full(len(cause), NOWHERE)}, schema=_SENDING
    )  # fmt: skip


def _answers(segment: Atm, pdus: Pdus, copies: Copies, got: Numbers, ready: Times) -> pl.DataFrame:
    """LECS and LES send on a message as it came, or answer a request of equal opcode and transaction. What they sent is
    what ports received or lost."""
    services = services_port(segment)
    messages = np.isin(pdus.vci, (CONFIGURATION, CONTROL, DISTRIBUTE))
    came = messages & (pdus.direction == INBOUND)
    fate = pdus.fate & messages
    towards = pdus.fates["fate_to"]
    end = towards.replace_strict(segment.ports, list(range(len(segment.ports))), default=services).cast(pl.Int64)
    to = np.where(fate, end.to_numpy(), pdus.port)
    seen = np.flatnonzero(came | (fate & (to != services)))
    cause = np.flatnonzero(np.isin(copies.sent_vci[got], (CONFIGURATION, CONTROL)))
    sources = copies.pdu[got][cause]
    known = pl.DataFrame(
        {"at": stamp(ready.low[cause]), "cause": cause, "content": pdus.content[sources],
         "opcode": pdus.sent.take(sources).number(_OPCODE, 1),
         "asks": pdus.sent.take(sources).number(_ANSWER, 1) == 0,
         "transaction": pdus.sent.take(sources).number(_TRANSACTION, 4), "end": copies.sender[got][cause]}
    ).sort("at")  # fmt: skip
    asked = pl.DataFrame(
        {"at": pdus.time_ns[seen], "pdu": seen, "content": pdus.content[seen], "vci": pdus.vci[seen],
         "opcode": pdus.sent.take(seen).number(_OPCODE, 1),
         "transaction": pdus.sent.take(seen).number(_TRANSACTION, 4), "end": to[seen]}
    ).sort("at")  # fmt: skip
    passed_on = asked.join_asof(known.select("at", "cause", "content"), on="at", by="content", check_sortedness=False)
    keys = ["opcode", "transaction", "end"]
    requests = known.filter("asks").select("at", *keys, "cause")
    answered = asked.join_asof(requests, on="at", by=keys, check_sortedness=False)
    both = passed_on.with_columns(
        cause=pl.coalesce("cause", answered["cause"]),
        to=pl.when(pl.col("vci") == DISTRIBUTE).then(NOWHERE).otherwise("end"),
    ).drop_nulls("cause")
    # A message on control distribute is one, at however many ports it is seen.
    return both.unique(["cause", "vci", "to"], keep="first", maintain_order=True).select(
        pl.col(name).cast(dtype) for name, dtype in _SENDING.items()
    )
