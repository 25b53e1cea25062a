# SPDX-License-Identifier: Apache-2.0
"""Why a request went over UDP again.

The wire explains it when, at the moment the request was sent again, no whole answer had reached the client although the
server had answered every whole request that had reached it: then a request or an answer was lost, dropped, corrupted,
or still on its way. (That the wire tells of each frame which did not arrive is `conservation`'s matter.)

A request may have been made before the answer came, and have waited: behind others for its line (`contention`), or for
ARP, as does everything that a machine sends again before it has an address.

A request that had reached the server and was not answered yet explains it where the server had others all the while
(`busy_servers`), or its line was taken by what else it sent, but for the time of one turn: as long as this server takes
at most for a request that is alone and is not repeated. So does a server whose kernel may have dropped the answer
(`unsent`), or asked for the client's address (`without_questions`). A request that came while others filled the
receive buffer of its server's socket was lost. A datagram for whose fragments its machine may have had no
memory (`reassembly`) was lost as well. Some clients ask again when a reply to an earlier call comes (`other_replies`).
Without that the cause is at one of the ends: a server that is too slow or silent, a client that has its answer and asks
again.
Under the real clock a machine waits for the host, too, and the time it takes is not evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import polars as pl

from sundial.verify.contention import NEVER_BUSY, Contention
from sundial.verify.frames import turn
from sundial.verify.sockets import reassembly
from sundial.verify.sockets.busy_servers import Servers
from sundial.verify.sockets.other_replies import after_other_replies
from sundial.verify.sockets.protocol import Setting
from sundial.verify.sockets.udp import datagrams

RECEIVE_BUFFER = 212_992
"""Of a Linux socket (net.core.rmem_default). What arrives while more than that waits in it is dropped."""
ETHERNET_DATA, SMALL_MEMORY, LARGE_MEMORY = 1480, 4096, 17_408
"""A packet with no more data takes no more memory than the second; any other no more than the third."""

UNPROVEN_REAL_CLOCK: tuple[str, ...] = (
    "that a server was not slow before a retransmission: its machine also waits for the host",
)


def uncaused(
    frames: pl.DataFrame,
    sent: pl.DataFrame,
    arrived: pl.DataFrame,
    expected: pl.DataFrame,
    calls: pl.DataFrame,
    servers: Callable[[], Servers] | None,
    lines: Mapping[str, Contention],
    refused: pl.Series,
    impatient: Collection[str],
    settings: Sequence[Setting] = (),
    unsent: Mapping[str, Sequence[tuple[int, int]]] | None = None,
) -> pl.DataFrame:
    """Requests sent again that nothing explains: call, reply, asked, answered, received, rows.

    `frames`: UDP with `call`; `sent` and `arrived`: their datagrams; `expected`: the expected layout of each leg;
    `calls`: id, server and protocol; `servers`: what they were doing, None where their time is not evidence; `lines`:
    by port, when the wire in front of it was free; `refused`: rows of frames that adapters did not send; `impatient`:
    protocols whose clients ask again when a reply to an earlier call comes; `settings`: as `setting` of calls says;
    `unsent`: as of `messages.with_unsent`.
    """
    again = (
        sent.filter(~pl.col("reply"))
        .sort("call", "first_ns", maintain_order=True)
        .with_columns(number=turn("call"))
        .filter(pl.col("number") > 0)
    )
    if again.is_empty():
        return again.with_columns(asked=pl.lit(0), answered=pl.lit(0), received=pl.lit(0))
    put_together = _put_together(frames, arrived, expected)
    events = _events(frames, sent, put_together, expected, refused)
    moments = again.select("call", "number", "first_ns")
    before = events.join(moments, on="call").filter(pl.col("at") < pl.col("first_ns"))
    counts = before.group_by("call", "number").agg(pl.col("asked", "answered", "received").sum())
    table = again.join(counts, on=["call", "number"], how="left").with_columns(
        pl.col("asked", "answered", "received").fill_null(0)
    )
    greedy = table.filter(pl.col("received") > 0)
    greedy = greedy.filter(~waited(greedy, frames, events, lines))
    waiting = table.filter(pl.col("received") <= 0, pl.col("asked") > pl.col("answered"))
    slow = waiting.clear()
    if servers is not None:
        ports = frames.select("interface", row=pl.col("row").cast(pl.UInt32))
        slow = _without_cause(waiting, put_together, expected, calls, servers(), ports, lines, settings, unsent or {})
    found = pl.concat([greedy, slow]).sort("call", "number")
    if found.is_empty() or not impatient:
        return found
    of_them = calls.filter(pl.col("protocol").is_in(list(impatient))).select(call="id")
    whole = put_together.join(expected, on=["call", "reply", "layout"], how="semi")
    others = after_other_replies(frames.join(of_them, on="call", how="semi"), sent, whole)
    return found.join(others, on=["call", "first_ns"], how="anti", maintain_order="left")


def _put_together(frames: pl.DataFrame, arrived: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Without datagrams for which their machine may have had no memory: they have been lost as well."""
    return arrived.join(reassembly.refused(frames, arrived, expected).select("rows"), on="rows", how="anti")


def waited(
    greedy: pl.DataFrame, frames: pl.DataFrame, events: pl.DataFrame, lines: Mapping[str, Contention]
) -> pl.Series:
    """Which requests were sent on a line that was never free since a whole answer had come."""
    answered = events.filter(pl.col("received") > 0).group_by("call").agg(came=pl.col("at").min())
    ports = frames.select("interface", row=pl.col("row").cast(pl.UInt32))
    table = (
        greedy.select("call", "first_ns", row=pl.col("rows").list.first().cast(pl.UInt32))
        .join(answered, on="call", how="left", maintain_order="left")
        .join(ports, on="row", how="left", maintain_order="left")
    )
    never_free = [
        port in lines and lines[port].idle_ns(came, at) <= 0
        for port, came, at in table.select("interface", "came", "first_ns").iter_rows()
    ]
    return pl.Series(never_free, dtype=pl.Boolean)


def without_held_back(uncaused: pl.DataFrame, frames: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Without requests that were sent again while an adapter kept back a frame of their call: one that it had been
    given (`held`: row and since_ns), and that was not on the wire yet. `frames` with row, call and time_ns."""
    of_calls = frames.select(pl.col("row").cast(pl.UInt32), "call", until_ns="time_ns").join(held, on="row")
    meant = uncaused.with_row_index("place").join(of_calls.drop("row"), on="call")
    explained = meant.filter(pl.col("first_ns").is_between("since_ns", "until_ns"))["place"]
    return uncaused.with_row_index("place").filter(~pl.col("place").is_in(explained.implode())).drop("place")


def without_questions(
    uncaused: pl.DataFrame,
    frames: pl.DataFrame,
    calls: pl.DataFrame,
    asked: Mapping[str, Sequence[tuple[str, int, int]]],
    *,
    routed: bool,
) -> pl.DataFrame:
    """Without requests that were sent again while their server asked for the address of their client (`asked`: as of
    `headers.arp.asking`), for which its answer waited. `routed`: it may have asked for a router's. `frames` with row
    and source."""
    clients = frames.select(pl.col("row").cast(pl.UInt32), "source")
    table = (
        uncaused.with_row_index("place")
        .with_columns(row=pl.col("rows").list.first().cast(pl.UInt32))
        .join(clients, on="row", how="left")
        .join(calls.select("server", call="id"), on="call", how="left")
    )
    explained = [
        place
        for place, server, client, at_ns in table.select("place", "server", "source", "first_ns").iter_rows()
        if any((routed or address == client) and begin <= at_ns <= end for address, begin, end in asked.get(server, ()))
    ]
    return uncaused.with_row_index("place").filter(~pl.col("place").is_in(explained)).drop("place")


def _without_cause(
    waiting: pl.DataFrame,
    arrived: pl.DataFrame,
    expected: pl.DataFrame,
    calls: pl.DataFrame,
    servers: Servers,
    ports: pl.DataFrame,
    lines: Mapping[str, Contention],
    settings: Sequence[Setting],
    unsent: Mapping[str, Sequence[tuple[int, int]]],
) -> pl.DataFrame:
    """Those of `waiting` whose server had room and time for the request that it did not answer. `ports`: interface of
    rows."""
    whole = (
        arrived.filter(~pl.col("reply"))
        .join(expected, on=["call", "reply", "layout"], how="semi")
        .sort("call", "last_ns")
        .select("call", since_ns="last_ns", answered=turn("call"), row=pl.col("rows").list.first().cast(pl.UInt32))
        .join(ports, on="row", how="left", maintain_order="left")
        .drop("row")
    )
    table = (
        waiting.join(whole.cast({"answered": waiting.schema["answered"]}), on=["call", "answered"], how="left")
        .join(calls.select("server", "protocol", call="id"), on="call", how="left")
        .with_row_index("place")
    )
    columns = ["place", "server", "protocol", "call", "since_ns", "first_ns", "interface"]
    idle = []
    taken, buffers = _memory(arrived), _buffers(calls, settings)
    for place, server, protocol, call, since, at, port in table.select(columns).iter_rows():
        if since is not None and any(begin <= at and since <= end for begin, end in unsent.get(server, ())):
            continue
        held = 0 if since is None else sum(taken.get(each, 0) for each in servers.held(server, protocol, since))
        if held > buffers.get(call, RECEIVE_BUFFER):
            continue
        line, turn_ns = lines.get(port, NEVER_BUSY), servers.turn_ns(server, protocol)
        if since is None or servers.idle_ns(server, protocol, call, since, at, line) > turn_ns:
            idle.append(place)
    return table.filter(pl.col("place").is_in(idle)).select(waiting.columns)


def _memory(arrived: pl.DataFrame) -> dict[int, int]:
    """By call over UDP: the most that its request takes of a socket's receive buffer."""
    largest = pl.col("layout").str.extract_all(r":\d+").list.eval(pl.element().str.slice(1).cast(pl.Int64)).list.max()
    each = pl.when(largest > ETHERNET_DATA).then(LARGE_MEMORY).otherwise(SMALL_MEMORY)
    requests = arrived.filter(~pl.col("reply"))
    return dict(requests.group_by("call").agg((pl.col("count") * each).max()).iter_rows())


def _buffers(calls: pl.DataFrame, settings: Sequence[Setting]) -> dict[int, int]:
    """By call: the receive buffer of its server, where one was set; its client's may be the smaller one."""
    windows = {number: 2 * each.window for number, each in enumerate(settings) if each.window is not None}
    if not windows:
        return {}
    return {call: windows[number] for call, number in calls.select("id", "setting").iter_rows() if number in windows}


def _events(
    frames: pl.DataFrame, sent: pl.DataFrame, arrived: pl.DataFrame, expected: pl.DataFrame, refused: pl.Series
) -> pl.DataFrame:
    """What changes the counts of a call: call, at (ns), asked, answered, received.

    An answer that the server's adapter did not send was given all the same.
    """
    whole = arrived.join(expected, on=["call", "reply", "layout"], how="semi")
    dropped = datagrams(frames.filter(pl.col("row").is_in(refused.implode())))
    arrivals = whole.select("call", "reply", at="last_ns", count=pl.lit(1))
    answers = pl.concat([part.filter("reply").select("call", at="first_ns") for part in (sent, dropped)])
    zero, one = pl.lit(0), pl.lit(1)
    return pl.concat(
        [
            arrivals.filter(~pl.col("reply")).select("call", "at", asked="count", answered=zero, received=zero),
            answers.select("call", "at", asked=zero, answered=one, received=zero),
            arrivals.filter("reply").select("call", "at", asked=zero, answered=zero, received="count"),
        ]
    )
