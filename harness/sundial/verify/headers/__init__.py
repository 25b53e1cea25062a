# SPDX-License-Identifier: Apache-2.0
"""Every field of Ethernet, ARP, IPv4, ICMP, IGMP, UDP and TCP of what machines sent, and that it arrives unchanged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import polars as pl

from sundial.model.program_events import KILL, RESTART
from sundial.observe import RunDirectory, octets_of
from sundial.verify.corruption import intact, through_ip
from sundial.verify.frames import cut_off
from sundial.verify.headers import arp, carriage, ethernet, forwarding, icmp, igmp, ip, tcp
from sundial.verify.headers.ports import next_hops, ports_of, sent_frames
from sundial.verify.segment import Hearing, hearing, network_of, nothing_held
from sundial.verify.unsent import Unsent

_HOP = ("end", "machine", "domain", "target")


def check_headers(
    run: RunDirectory,
    frames: pl.DataFrame,
    files: Sequence[tuple[Path, str]],
    own_types: Collection[int],
    unsent: Unsent,
    of_users: Mapping[str, Collection[int]] = MappingProxyType({}),
    held: Callable[[], pl.DataFrame] = nothing_held,
) -> pl.DataFrame:
    """Findings of all of them; where a user worked by hand only what becomes of frames, for what he sends is his own.

    `frames` with row, end and fate; `own_types`: EtherTypes of workloads; `unsent`: what machines may have dropped
    before; `of_users`: machines with programs of users, each with the EtherTypes that they send by themselves;
    `held`: as of `wires.held_back`.
    """
    ports = ports_of(run)
    read = partial(octets_of, files=files)
    network = network_of(run)
    heard = hearing(network) if network is not None else Hearing()
    carried = [
        ethernet.check_places(frames, ports),
        carriage.check_carriage(frames, ports, read, heard),
        carriage.check_order(frames, heard.keeps_order, heard.pairs),
    ]
    if run.by_hand:
        return pl.concat(carried)
    if network is not None:  # what its packets must be is the law of their segment
        frames = frames.filter(~pl.col("capture").is_in(network.mapped_captures))
    sent, taken = sent_frames(frames, ports, network), intact(frames)
    killed = network is not None and any(event.verb in (KILL, RESTART) for event in network.events)
    routes = {} if network is None else {node.name: node.routes for node in network.nodes}
    passed = forwarding.passed_on(frames, ports)
    packets = pl.concat([part.select(arp.PACKET) for part in (sent, passed)])
    routers = set(ports.filter("forwards")["machine"])
    asked = {name: each for name, each in unsent.unresolved.items() if name in routers}
    hops = next_hops(pl.concat([sent.select(_HOP), passed.select(_HOP)]), ports, routes, of_users)
    astray = arp.misled(packets, hops, frames, ports, read)
    made = sent
    for machine, types in of_users.items():
        if types:
            by_program = (pl.col("machine") == machine) & pl.col("eth_type").is_in(list(types))
            made = made.filter(~by_program.fill_null(False))
    return pl.concat(
        [
            *carried,
            ethernet.check_source(sent),
            ethernet.check_ethernet(made, ports, hops, own_types, astray),
            ethernet.check_padding(made, read(made)),
            arp.check_arp(
                frames,  # those that came corrupted, too: ARP has no checksum
                made,
                ports,
                read,
                # Without a topology it is not known which machines have static addresses.
                packets=packets.clear() if network is None else packets,
                held=held,
                exact_time=run.clock == "virtual",
            ),
            ip.check_ip(
                sent, hops, unsent.stretches, unsent.overflow.headless, cut_off(frames, length_ns(run)), of_users
            ),
            forwarding.check_forwarding(frames, passed, ports, hops, read, astray),
            igmp.check_igmp(sent, read, of_users),
            icmp.check_icmp(through_ip(frames), sent, read, asked),
            tcp.check_tcp(taken, sent, ports, read, _end_ns(run), killed=killed),
        ]
    )


def length_ns(run: RunDirectory) -> int | None:
    """When a run ended, if that is known."""
    end_ns = (run.counters or {}).get("virtual_ns")
    return end_ns if isinstance(end_ns, int) else None


def _end_ns(run: RunDirectory) -> int | None:
    """When a run of the virtual clock ended."""
    return length_ns(run) if run.clock == "virtual" else None
