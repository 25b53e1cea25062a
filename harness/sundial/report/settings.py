# SPDX-License-Identifier: Apache-2.0
"""What besides size determines the packets of each curve: MTUs, and the options of the two ends in their jobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from sundial.errors import SundialError
from sundial.observe import Node, RunDirectory, open_run
from sundial.report import registry
from sundial.report.figures import PacketLine, of_curve
from sundial.report.tables import packets_in
from sundial.report.workload import Curve, Setting
from sundial.verify.sockets.calls import setting_of
from sundial.verify.workload import socket_protocols

DEFAULT_MTU = 1500


def settings(directory: Path, batches: pl.DataFrame, curves: list[Curve]) -> dict[Curve, Setting]:
    """A setting for each curve, from the jobs of its first batch's ends; defaults where they cannot be read."""
    try:
        run = open_run(directory)
    except SundialError:
        return {curve: Setting(curve) for curve in curves}
    found = {}
    for curve in curves:
        client, server, step = of_curve(batches, curve).select("client", "server", "node_step").row(0)
        near, far = run.nodes.get(client), run.nodes.get(server)
        found[curve] = Setting(curve, _mtu(near, far), _mtu(far, near), _options(run, curve[0], client, server, step))
    return found


def _options(run: RunDirectory, app: str, client: str, server: str, step: int | None) -> Any:
    protocol = next((each for each in socket_protocols().values() if each.client_app == app), None)
    if protocol is None:
        return None
    try:
        return setting_of(run, protocol, client, server, -1 if step is None else step).options
    except (KeyError, TypeError, ValueError):
        return None


def _mtu(node: Node | None, peer: Node | None) -> int:
    """MTU of the interface that a machine sends to its peer from."""
    address = next((item.address for item in peer.interfaces if item.address), None) if peer else None
    interface = node.towards(address) if node and address else None
    return interface.mtu if interface else DEFAULT_MTU


def verified_counts(verify: Mapping[str, Any] | None, curve: Curve) -> dict[int, tuple[int | None, int | None]]:
    """Expected packets (request, reply) by size as verification computed them for this very run."""
    found = {}
    for group in (verify or {}).get("groups") or []:
        if (group.get("app"), group.get("transport"), group.get("procedure")) == curve:
            legs = group.get("expected") or {}
            found[int(group.get("size") or 0)] = (packets_in(legs.get("request")), packets_in(legs.get("reply")))
    return found


def agrees(setting: Setting, counts: Mapping[int, tuple[int | None, int | None]]) -> bool:
    """Whether the arithmetic with this setting gives what verification expected, at every size that was run."""
    for size, pair in counts.items():
        legs = registry.legs(setting, size)
        if legs is None:
            return False
        for want, leg in zip(pair, legs, strict=True):
            if want is not None and not leg.fewest <= want <= leg.most:
                return False
    return True


def lines_of_counts(counts: Mapping[int, tuple[int | None, int | None]]) -> dict[str, PacketLine]:
    """Packet lines through verification's own numbers: right at the sizes that were run, steps between them unknown."""
    result = {}
    for index, direction in enumerate(("request", "reply")):
        points = [(size, pair[index]) for size, pair in sorted(counts.items())]
        known = [(size, count) for size, count in points if count is not None]
        if known:
            values = [count for _, count in known]
            result[direction] = PacketLine([size for size, _ in known], values, values)
    return result
