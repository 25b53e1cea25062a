# SPDX-License-Identifier: Apache-2.0
"""Shared parts of several kinds' steps and services: bands of sizes, and options of both ends."""

from __future__ import annotations

from sundial.model.workload import Calling, Sized
from sundial.plan.seeds import series_seed, shuffled
from sundial.plan.workload import Options

Band = tuple[int, list[int]]
"""Calls for each size, and the sizes."""


def written(options: Options) -> Options:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def bands(workload: Sized, series: int, seed: int, *, sizeless: bool = False, most: int | None = None) -> list[Band]:
    """Bands of sizes with equal numbers of calls, in the order of the workload, at most `most` in a band.

    `sizeless`: for a procedure without argument, whose only size is 0.
    """
    sizes = [0] if sizeless else [size for size in workload.sizes if isinstance(size, int)]
    found: list[Band] = []
    for number, (least, calls) in enumerate(workload.calls):
        end = workload.calls[number + 1][0] if number + 1 < len(workload.calls) else None
        band = [size for size in sizes if size >= least and (end is None or size < end)]
        ordered = shuffled(band, series_seed(seed, series)) if workload.order == "seeded" else band
        step = most or max(1, len(ordered))
        found += [(calls, ordered[first : first + step]) for first in range(0, len(ordered), step)]
    return found


def call_options(
    workload: Calling, band: Band, *, server: str | int, transport: str, procedure: str | None, series: int
) -> Options:
    """Options of a step that calls by size, over any transport."""
    calls, sizes = band
    return {
        "server": server,
        "transport": transport,
        "procedure": procedure,
        "series": series,
        "sizes": sizes,
        "calls": calls,
        "warmup": workload.warmup,
        "connection": workload.connection,
        "threads": workload.threads,
        "total_timeout_ms": workload.total_timeout,
        "socket_buffer": workload.socket_buffer,
    }


def socket_options(workload: Calling, transport: str) -> Options:
    """Options of a step for one of the transports over sockets."""
    if transport == "udp":
        return {"retry_timeout_ms": workload.retry_timeout}
    return {"tcp_nodelay": workload.tcp_nodelay} if transport == "tcp" else {}


def served(workload: Calling, *names: str) -> Options:
    """Options of a server: its own if given, or else those of the workload."""
    own = {name: getattr(workload.serving, name, None) for name in names}
    return written({name: getattr(workload, name) if own[name] is None else own[name] for name in names})
