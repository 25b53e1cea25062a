# SPDX-License-Identifier: Apache-2.0
"""To whom a machine sends a packet: its neighbour, or all on its network."""

from __future__ import annotations

import polars as pl

from sundial.verify.headers.ports import BROADCAST, PORT, next_hops


def test_what_is_for_all_on_a_network_goes_to_all_there_and_nowhere_else() -> None:
    plain = {**dict.fromkeys(("joins", "offloads", "static_arp", "forwards"), False), "mtu": 1500, "domain": 0}
    ports = pl.DataFrame(
        [
            {
                "end": f"lan|{name}",
                "port": name,
                "machine": name,
                "mac": mac,
                "address": address,
                **plain,
                **wide,
                "corrupts": False,
                "duplicates": False,
            }
            for name, mac, address, wide in (
                ("client", 1, "10.0.0.1", {"broadcast": "10.0.0.255"}),
                ("server", 2, "10.0.0.2", {"broadcast": "10.0.0.255"}),
            )
        ],
        schema=PORT,
    )
    targets = ["10.0.0.2", "10.0.0.255", "10.0.1.255"]
    packets = ports.filter(pl.col("machine") == "client").join(pl.DataFrame({"target": targets}), how="cross")
    found = dict(next_hops(packets, ports, {}).select("target", "hop").iter_rows())
    assert found == {"10.0.0.2": 2, "10.0.0.255": BROADCAST}
