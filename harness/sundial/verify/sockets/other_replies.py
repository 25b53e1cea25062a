# SPDX-License-Identifier: Apache-2.0
"""Requests over UDP that were sent again because a reply to an earlier call came first.

A client that waits for a reply, and reads one with another xid, sends its request again at once (libtirpc's
`clnt_dg_call`). Its socket gives replies in the order in which they came, so those between the reply that ended one
call and the reply that ends the next are read during the next, and each of them makes one repetition. One that its
timer made may leave between such a reply and the repetition that this makes.
"""

from __future__ import annotations

from collections import defaultdict

import polars as pl

NEVER_NS = 1 << 62


def after_other_replies(
    frames: pl.DataFrame, sent: pl.DataFrame, whole: pl.DataFrame, uncaused: pl.DataFrame
) -> pl.DataFrame:
    """Requests with that cause: call, first_ns.

    `frames` with call and flow; `sent`: datagrams that were sent; `whole`: those that arrived whole; `uncaused`: call
    and first_ns of repetitions without another cause.
    """
    lacking = set(uncaused.select("call", "first_ns").iter_rows())
    flows = frames.select("call", "flow").drop_nulls().unique("call")
    asked = _times(sent.filter(~pl.col("reply")), "first_ns")
    answered = _times(whole.filter("reply"), "last_ns")
    of_flow = defaultdict(list)
    for call, flow in flows.iter_rows():
        if call in asked:
            of_flow[flow].append(call)
    found: list[tuple[int, int]] = []
    for calls in of_flow.values():
        found += _of_client(sorted(calls, key=lambda call: asked[call][0]), asked, answered, lacking)
    return pl.DataFrame(found, schema={"call": sent.schema["call"], "first_ns": sent.schema["first_ns"]}, orient="row")


def _times(datagrams: pl.DataFrame, time: str) -> dict[int, list[int]]:
    table = datagrams.sort(time).group_by("call", maintain_order=True).agg(time)
    return dict(table.iter_rows())


def _of_client(
    calls: list[int], asked: dict[int, list[int]], answered: dict[int, list[int]], lacking: set[tuple[int, int]]
) -> list[tuple[int, int]]:
    """`calls` of one socket, in their order."""
    found = []
    waiting: list[int] = []
    begins = [*(asked[call][0] for call in calls[1:]), NEVER_NS]
    for call, until in zip(calls, begins, strict=True):
        own = answered.get(call, [])
        in_time = bool(own) and own[0] < until
        ended = own[0] if in_time else until
        again = asked[call][1:]
        for came in [each for each in waiting if each < ended]:
            again = [at for at in again if at > came]
            if len(again) > 1 and (call, again[0]) not in lacking and (call, again[1]) in lacking:
                again = again[1:]
            found += [(call, at) for at in again[:1]]
            again = again[1:]
        waiting = sorted([*(each for each in waiting if each >= ended), *own[in_time:]])
    return found
