# SPDX-License-Identifier: Apache-2.0
"""What a machine may boot: the registry that topologies and scenarios are checked against."""

from __future__ import annotations

from dataclasses import dataclass

from sundial.units import SIZE, Quantity

_MIB = 2**20
_MS = 10**6


@dataclass(frozen=True)
class ImageKind:
    """A guest image by name: the roles it can play, what a machine needs for it, and what it can do."""

    name: str
    description: str
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
    platform: str
    """Family of guest software, which decides what workloads find in it: linux or sss-core."""
    binder: str
    """The service that tells Sun RPC's clients where programs are: rpcbind, or portmapper."""
    node_is_process: bool = False
    """A node of memory-based communication is a process; otherwise the machine is one."""
    keeps_replies: bool = False
    """Its Sun RPC server can keep replies, which gives at most once over UDP, and can end at a given call."""
    fixed_sockets: bool = False
    """The buffers of its sockets are fixed, and its TCP sends at once (TCP_NODELAY)."""
    restarts_services: bool = False
    """A service that has ended can be restarted."""
    one_client_thread: bool = False
    """Its Sun RPC client has one thread."""


IMAGES: dict[str, ImageKind] = {
    image.name: image
    for image in (
        ImageKind(
            "linux",
            "distribution cloud kernel, busybox init, Sun RPC and raw socket programs, iperf3",
            roles=frozenset({"host", "bridge"}),
            memory=96 * _MIB,
            memory_sizes=SIZE.between("64 MiB", "4 GiB", example="128 MiB"),
            start_ns=300 * _MS,
            # Keeps a guest of the least memory below 150 MB; quickstart takes 5 % less with 32, 20 % more with 16.
            translations_mib=19,
            greeting=("sh", "-c", ":"),
            platform="linux",
            binder="rpcbind",
            node_is_process=True,
        ),
        ImageKind(
            "ssscore",
            "small kernel with memory-based communication, Sun RPC on it, lwIP",
            roles=frozenset({"host"}),
            memory=32 * _MIB,
            memory_sizes=SIZE.between("16 MiB", "1 GiB", example="32 MiB"),
            start_ns=20 * _MS,
            translations_mib=8,
            greeting=("tasks",),
            platform="sss-core",
            binder="portmapper",
            keeps_replies=True,
            fixed_sockets=True,
            restarts_services=True,
            one_client_thread=True,
        ),
    )
}
