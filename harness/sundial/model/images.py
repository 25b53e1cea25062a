# SPDX-License-Identifier: Apache-2.0
"""What a machine may boot: the registry that topologies and scenarios are checked against."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ImageKind:
    """A guest image by name, with the workloads (`app`) its runner knows and the roles it can play."""

    name: str
    description: str
    apps: frozenset[str]
    roles: frozenset[str]


IMAGES: dict[str, ImageKind] = {
    image.name: image
    for image in (
        ImageKind(
            "linux",
            "distribution cloud kernel, busybox init, Sun RPC and raw socket programs, iperf3",
            apps=frozenset({"sunrpc", "raw", "iperf3"}),
            roles=frozenset({"host", "bridge"}),
        ),
    )
}
