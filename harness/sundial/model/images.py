# SPDX-License-Identifier: Apache-2.0
"""What a machine may boot: the registry that topologies and scenarios are checked against."""

from __future__ import annotations

from dataclasses import dataclass

from sundial.units import SIZE, Quantity

_MIB = 2**20
_MS = 10**6


@dataclass(frozen=True)
class ImageKind:
    """A guest image by name: the workloads (`app`) it knows, the roles it can play, and what a machine needs for it."""

    name: str
    description: str
    apps: frozenset[str]
    roles: frozenset[str]
    memory: int
    """Main memory of a machine that does not say, in bytes."""
    memory_sizes: Quantity
    """What a machine may say."""
    start_ns: int
    """Time for services to come up on a machine of 125 mips, before the first step."""
    translations_mib: int
    """QEMU's cache of translated code: what the guest's code needs, for it is most of a small guest's memory."""
    greeting: tuple[str, ...]
    """A command that does nothing; a machine that is up answers it."""
    node_is_process: bool
    """A node of memory-based communication is a process of the machine, and not its kernel."""


IMAGES: dict[str, ImageKind] = {
    image.name: image
    for image in (
        ImageKind(
            "linux",
            "distribution cloud kernel, busybox init, Sun RPC and raw socket programs, iperf3",
            apps=frozenset({"sunrpc", "raw", "iperf3", "mbcf"}),
            roles=frozenset({"host", "bridge"}),
            memory=96 * _MIB,
            memory_sizes=SIZE.between("64 MiB", "4 GiB", example="128 MiB"),
            start_ns=300 * _MS,
            # Keeps a guest of the least memory below 150 MB; quickstart takes 5 % less with 32, 20 % more with 16.
            translations_mib=19,
            greeting=("sh", "-c", ":"),
            node_is_process=True,
        ),
        ImageKind(
            "ssscore",
            "small kernel with memory-based communication, Sun RPC on it, lwIP",
            apps=frozenset({"sunrpc", "mbcf"}),
            roles=frozenset({"host"}),
            memory=32 * _MIB,
            memory_sizes=SIZE.between("16 MiB", "1 GiB", example="32 MiB"),
            start_ns=20 * _MS,
            translations_mib=8,
            greeting=("tasks",),
            node_is_process=False,
        ),
    )
}
