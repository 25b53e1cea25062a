# SPDX-License-Identifier: Apache-2.0
"""What the processes of one run need of the host's limits, which is found out before anything starts."""

from __future__ import annotations

from sundial import limits
from sundial.model.images import IMAGES
from sundial.model.network import Network

FILES = 32
FILES_A_MACHINE = 8
"""Measured in the process of the harness: 25 for two machines, 46 for six."""
QEMU_BYTES = 512 << 20
"""Of a QEMU's address space, without what is the guest's: measured 450 MiB."""


def require_for(network: Network) -> None:
    """Returns where the limits let this topology run. Raises HostLacks."""
    local = [node for node in network.nodes if node.host is None]
    machines = (node.memory + (IMAGES[node.image].translations_mib << 20) + QEMU_BYTES for node in local)
    files = FILES + FILES_A_MACHINE * len(network.nodes)
    limits.require(files, max(limits.LEAST_ADDRESS_BYTES, *machines, 0))
