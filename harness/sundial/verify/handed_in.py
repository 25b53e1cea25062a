# SPDX-License-Identifier: Apache-2.0
"""When machines handed in their frames, at the latest: the latency of their adapters before the first bit.

What a machine sends follows from what it had received by then, not from what came while its adapter fetched the frame.
So what holds a machine's frames against what it knew, or against its calls, has them at that instant. The laws of wires
have them at the instant at which they were on the wire.
"""

from __future__ import annotations

import polars as pl

from sundial.model.network import Network
from sundial.verify.frames import OUTBOUND


def latest_hand_in(frames: pl.DataFrame, network: Network | None) -> pl.DataFrame:
    """`frames`, with fate, where adapters send, refuse or collide, when the machine had made the frame."""
    return _moved(frames, network, -1)


def on_the_wire(frames: pl.DataFrame, network: Network | None) -> pl.DataFrame:
    """What `latest_hand_in` was made of."""
    return _moved(frames, network, 1)


def _moved(frames: pl.DataFrame, network: Network | None, sign: int) -> pl.DataFrame:
    nodes = () if network is None else network.nodes
    by_port = {nic.end: sign * node.adapter_latency_ns for node in nodes for nic in node.nics}
    if not any(by_port.values()):
        return frames
    sent = pl.col("fate").is_null() & (pl.col("direction") == OUTBOUND)
    port = (
        pl.when(sent).then(pl.col("interface").cast(pl.String)).when(pl.col("fate").is_not_null()).then("fate_adapter")
    )
    return frames.with_columns(
        time_ns=pl.col("time_ns") + port.replace_strict(by_port, default=0, return_dtype=pl.Int64)
    )
