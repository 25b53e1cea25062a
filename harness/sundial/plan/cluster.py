# SPDX-License-Identifier: Apache-2.0
"""Machines as nodes of memory-based communication: ids, and which node reaches which."""

from __future__ import annotations

from typing import Any

from sundial.model.network import Network, Node
from sundial.plan.seeds import epoch
from sundial.seams.job import Endpoint
from sundial.seams.job import Node as NodeForm


def node_id(node: Node) -> int:
    """The node id of a machine in MBCF: its position in the topology, counted from 1."""
    return node.index + 1


def endpoint(network: Network, node: Node, seed: int, *process: str | int) -> dict[str, Any]:
    """A process as a node of the cluster. What it sends after a restart must not be taken for that of the process
    before, hence an epoch for each.
    """
    made = Endpoint(
        device=node.nics[0].device,
        node=node_id(node),
        epoch=epoch(seed, node.name, *process),
        nodes=other_nodes(network, node),
    )
    return made.model_dump(mode="json")


def machine_node(network: Network, node: Node, seed: int) -> dict[str, Any]:
    """Fields of a job that make the machine itself a node."""
    return {"node": node_id(node), "epoch": epoch(seed, node.name), "nodes": other_nodes(network, node)}


def other_nodes(network: Network, node: Node) -> tuple[NodeForm, ...]:
    """Every other machine whose eth0 is reachable by frames from this one's."""
    reached = {nic.machine: nic for nic in network.neighbours(node.nics[0]) if nic.index == 0}
    return tuple(
        NodeForm(node=node_id(other), machine=other.name, mac=reached[other.name].mac)
        for other in network.nodes
        if other.name in reached
    )
