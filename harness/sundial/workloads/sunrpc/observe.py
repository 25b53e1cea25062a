# SPDX-License-Identifier: Apache-2.0
"""Sun RPC in captures: tshark's own dissector, on the ports of our servers.

A client may be bound to a reserved port that another dissector claims (853: DTLS), and tshark does not know our
programs, so both are said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from sundial.observe.pcap import Capture, Interface
from sundial.observe.workload import Dissection, Field, ServerPorts

_PREFERENCES = (
    "rpc.dissect_unknown_programs:TRUE",
    "rpc.desegment_rpc_over_tcp:TRUE",
    "rpc.defragment_rpc_over_tcp:TRUE",
)


class _SunRpc:
    """`rpc_xid`, `rpc_type` (0 call, 1 reply), program and procedure are those of the first message in a frame;
    `record_lengths` and `record_lasts` list all."""

    fields = (
        Field("rpc_xid", "rpc.xid", "number"),
        Field("rpc_type", "rpc.msgtyp", "number"),
        Field("rpc_program", "rpc.program", "word"),
        Field("rpc_procedure", "rpc.procedure", "word"),
        Field("record_lengths", "rpc.fraglen", "all"),
        Field("record_lasts", "rpc.lastfrag", "all"),
    )
    computed: Mapping[str, type[pl.DataType]] = {}

    def carried_by(self, capture: Capture, interface: Interface) -> bool:
        return True

    def options(self, ports: ServerPorts) -> Sequence[str]:
        rules = [f"{transport}.port=={port},rpc" for transport, numbers in ports.items() for port in numbers]
        return [f"-o {preference}" for preference in _PREFERENCES] + [f"-d {rule}" for rule in rules]

    def compute(self, capture: Capture, interface: Interface) -> Sequence[pl.Series]:
        return ()


KIND: Dissection = _SunRpc()
