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
(`dropped_answer`), or asked for the client's address (`asking`). A request that came while others filled the
receive buffer of its server's socket was lost. A datagram for whose fragments its machine may have had no
memory (`reassembly`) was lost as well. Some clients ask again when a reply to an earlier call comes (`other_replies`).
Without that the cause is at one of the ends: a server that is too slow or silent, a client that has its answer and asks
again.
Under the real clock a machine waits for the host, too, and the time it takes is not evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

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
    ports = frames.select("interface", row=pl.col("row").cast(pl.UInt32))
    greedy = unexplained(
        table.filter(pl.col("received") > 0), [partial(waited, ports=ports, events=events, lines=lines)]
    )
    waiting = table.filter(pl.col("received") <= 0, pl.col("asked") > pl.col("answered"))
    whole = put_together.join(expected, on=["call", "reply", "layout"], how="semi")
    if servers is None or waiting.is_empty():
        slow = waiting.clear()
    else:
        had = servers()
        slow = unexplained(
            with_requests(waiting, whole, calls, ports),
            [
                partial(dropped_answer, unsent=unsent or {}),
                partial(
                    full_buffer,
                    servers=had,
                    taken=memory(put_together),
                    buffers=receive_buffers(calls, settings),
                ),
                partial(busy_server, servers=had, lines=lines),
            ],
        )
    found = pl.concat([greedy, slow.select(greedy.columns)]).sort("call", "number")
    if found.is_empty() or not impatient:
        return found
    of_them = calls.filter(pl.col("protocol").is_in(list(impatient))).select(call="id")
    others = after_other_replies(frames.join(of_them, on="call", how="semi"), sent, whole, found)
    return found.join(others, on=["call", "first_ns"], how="anti", maintain_order="left")


Cause = Callable[[pl.DataFrame], Collection[int]]
"""Of requests that were sent again (one a row, with `place`) those that it explains, by `place`."""


def unexplained(requests: pl.DataFrame, causes: Iterable[Cause]) -> pl.DataFrame:
    """`requests` that none of the causes explains. Each gets what those before it left."""
    for cause in causes:
        if requests.is_empty():
            break
        table = requests.with_row_index("place")
        requests = table.filter(~pl.col("place").is_in(list(cause(table)))).drop("place")
    return requests


def _put_together(frames: pl.DataFrame, arrived: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Without datagrams for which their machine may have had no memory: they have been lost as well."""
    return arrived.join(reassembly.refused(frames, arrived, expected).select("rows"), on="rows", how="anti")


def with_requests(waiting: pl.DataFrame, whole: pl.DataFrame, calls: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """Adds server and protocol, and of the first request that the server has not answered since_ns, when it was whole
    there, and interface, where it came. `whole`: datagrams; `ports`: interface of rows."""
    requests = (
        whole.filter(~pl.col("reply"))
        .sort("call", "last_ns")
        .select("call", since_ns="last_ns", answered=turn("call"), row=pl.col("rows").list.first().cast(pl.UInt32))
        .join(ports, on="row", how="left", maintain_order="left")
        .drop("row")
        .cast({"answered": waiting.schema["answered"]})
    )
    return waiting.join(requests, on=["call", "answered"], how="left").join(
        calls.select("server", "protocol", call="id"), on="call", how="left"
    )


def waited(
    requests: pl.DataFrame, ports: pl.DataFrame, events: pl.DataFrame, lines: Mapping[str, Contention]
) -> list[int]:
    """Its line was never free since a whole answer had come. `ports`: interface of rows."""
    answered = events.filter(pl.col("received") > 0).group_by("call").agg(came=pl.col("at").min())
    table = (
        requests.select("place", "call", "first_ns", row=pl.col("rows").list.first().cast(pl.UInt32))
        .join(answered, on="call", how="left")
        .join(ports, on="row", how="left")
    )
    return [
        place
        for place, port, came, at in table.select("place", "interface", "came", "first_ns").iter_rows()
        if port in lines and lines[port].idle_ns(came, at) <= 0
    ]


def dropped_answer(requests: pl.DataFrame, unsent: Mapping[str, Sequence[tuple[int, int]]]) -> list[int]:
    """Its server may have dropped the answer (`unsent`, as of `unsent.Unsent`)."""
    came = requests.filter(pl.col("since_ns").is_not_null()).select("place", "server", "since_ns", "first_ns")
    return [
        place
        for place, server, since, at in came.iter_rows()
        if any(begin <= at and since <= end for begin, end in unsent.get(server, ()))
    ]


def full_buffer(
    requests: pl.DataFrame, servers: Servers, taken: Mapping[int, int], buffers: Mapping[int, int]
) -> list[int]:
    """It was lost, for requests that the server had filled its socket's receive buffer. By call, what a request takes
    of it at most, and its size."""
    came = requests.filter(pl.col("since_ns").is_not_null())
    return [
        place
        for place, server, protocol, call, since in came.select(
            "place", "server", "protocol", "call", "since_ns"
        ).iter_rows()
        if sum(taken.get(each, 0) for each in servers.held(server, protocol, since)) > buffers.get(call, RECEIVE_BUFFER)
    ]


def busy_server(requests: pl.DataFrame, servers: Servers, lines: Mapping[str, Contention]) -> list[int]:
    """Its server had others all the while, or its line was taken, but for the time of one turn."""
    columns = ["place", "server", "protocol", "call", "since_ns", "first_ns", "interface"]
    return [
        place
        for place, server, protocol, call, since, at, port in requests.filter(pl.col("since_ns").is_not_null())
        .select(columns)
        .iter_rows()
        if servers.idle_ns(server, protocol, call, since, at, lines.get(port, NEVER_BUSY))
        <= servers.turn_ns(server, protocol)
    ]


def held_back(requests: pl.DataFrame, frames: pl.DataFrame, held: Callable[[], pl.DataFrame]) -> Collection[int]:
    """An adapter kept back a frame of its call meanwhile: one that it had been given (`held`: row and since_ns), and
    that was not on the wire yet. `frames` with row, call and time_ns."""
    of_calls = frames.select(pl.col("row").cast(pl.UInt32), "call", until_ns="time_ns").join(held(), on="row")
    meant = requests.join(of_calls.drop("row"), on="call")
    return set(meant.filter(pl.col("first_ns").is_between("since_ns", "until_ns"))["place"])


def asking(
    requests: pl.DataFrame,
    frames: pl.DataFrame,
    calls: pl.DataFrame,
    asked: Mapping[str, Sequence[tuple[str, int, int]]],
    *,
    routed: bool,
) -> list[int]:
    """Its server asked for the address of its client (`asked`: as of `headers.arp.asking`), for which the answer
    waited. `routed`: it may have asked for a router's. `frames` with row and source."""
    clients = frames.select(pl.col("row").cast(pl.UInt32), "source")
    table = (
        requests.with_columns(row=pl.col("rows").list.first().cast(pl.UInt32))
        .join(clients, on="row", how="left")
        .join(calls.select("server", call="id"), on="call", how="left")
    )
    return [
        place
        for place, server, client, at_ns in table.select("place", "server", "source", "first_ns").iter_rows()
        if any((routed or address == client) and begin <= at_ns <= end for address, begin, end in asked.get(server, ()))
    ]


def memory(arrived: pl.DataFrame) -> dict[int, int]:
    """By call over UDP: the most that its request takes of a socket's receive buffer."""
    largest = pl.col("layout").str.extract_all(r":\d+").list.eval(pl.element().str.slice(1).cast(pl.Int64)).list.max()
    each = pl.when(largest > ETHERNET_DATA).then(LARGE_MEMORY).otherwise(SMALL_MEMORY)
    requests = arrived.filter(~pl.col("reply"))
    return dict(requests.group_by("call").agg((pl.col("count") * each).max()).iter_rows())


def receive_buffers(calls: pl.DataFrame, settings: Sequence[Setting]) -> dict[int, int]:
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
