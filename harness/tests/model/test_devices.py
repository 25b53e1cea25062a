# SPDX-License-Identifier: Apache-2.0
"""Devices in topologies: what they join, their addresses, and every mistake as one line."""

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_topology
from sundial.model.network import DevicePort, Network, Nic, build_network

GOOD = """\
description: A hub, a bridge and an ATM switch
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}}}
  server: {interfaces: {eth0: {address: 10.0.0.2/24}}}
devices:
  edge: {kind: bridge, interfaces: [e0, a0]}
segments:
  hub: {kind: hub, rate: 10 Mbit/s, ports: ["client:eth0", "edge:e0"]}
  elan: {kind: atm, ports: ["edge:a0", "server:eth0"]}
"""
INTERFACES = "up to 15 lower-case letters and digits, beginning with a letter"
NAMES = "up to 32 lower-case letters, digits and single hyphens, beginning with a letter"
LISTED = "list it in the ports of one segment"
TIMES = "a time from 0 ns to 1 min, such as '10 ms'"

CASES = [
    ("kind: bridge, ", "", ["6: devices.edge: kind is missing; allowed: bridge"]),
    ("kind: bridge", "kind: router", ["6: devices.edge.kind: 'router' is unknown; allowed: bridge"]),
    ("edge: {kind", "Edge: {kind",
     [f"6: devices.Edge: 'Edge' is invalid; allowed: {NAMES}"]),
    ("edge: {kind: bridge, interfaces: [e0, a0]}", "{edge: none}",
     ["6: devices.edge: must be a mapping of fields; "
      "allowed: kind, interfaces, forwarding_latency, queue_frames, mac_table_entries, ageing"]),
    ("[e0, a0]", "[e0]", ["6: devices.edge.interfaces: has 1 entries; allowed: 2 or more"]),
    ("[e0, a0]", f"[{', '.join(f'e{number}' for number in range(17))}]",
     ["6: devices.edge.interfaces: has too many entries; allowed: up to 16"]),
    ("[e0, a0]", "[e0, A0]", [f"6: devices.edge.interfaces.1: 'A0' is invalid; allowed: {INTERFACES}"]),
    ("[e0, a0]", "[e0, a0, e0]", ["6: devices.edge.interfaces.2: 'e0' is written twice; allowed: each interface once"]),
    ("[e0, a0]", "[e0, a0, b0]",
     [f"6: devices.edge.interfaces.2: interface edge:b0 is not connected; allowed: {LISTED}"]),
    ("kind: bridge", "kind: bridge, forwarding_latency: 2 min",
     [f"6: devices.edge.forwarding_latency: '2 min' is out of range; allowed: {TIMES}"]),
    ("kind: bridge", "kind: bridge, queue_frames: 0",
     ["6: devices.edge.queue_frames: 0 is out of range; allowed: a whole number from 1 to 1000000"]),
    ("kind: bridge", "kind: bridge, mac_table_entries: 70000",
     ["6: devices.edge.mac_table_entries: 70000 is out of range; allowed: a whole number from 1 to 65536"]),
    ("kind: bridge", "kind: bridge, ageing: 300",
     ["6: devices.edge.ageing: '300' has no unit; allowed: a time from 1 ms to 24 h, such as '300 s'"]),
    ("kind: bridge", "kind: bridge, netem: loss",
     ["6: devices.edge.netem: unknown field; "
      "allowed: kind, interfaces, forwarding_latency, queue_frames, mac_table_entries, ageing"]),
    ("edge", "server",
     ["6: devices.server: 'server' is a machine's name; allowed: each name once",
      "8: segments.hub.ports.1: machine 'server' has no interface 'e0'; allowed: server:eth0",
      "9: segments.elan.ports.0: machine 'server' has no interface 'a0'; allowed: server:eth0"]),
    ('"edge:a0"', '"edge:a1"',
     [f"6: devices.edge.interfaces.1: interface edge:a0 is not connected; allowed: {LISTED}",
      "9: segments.elan.ports.0: device 'edge' has no interface 'a1'; allowed: edge:e0, edge:a0"]),
    ('"edge:a0"', '"core:a0"',
     [f"6: devices.edge.interfaces.1: interface edge:a0 is not connected; allowed: {LISTED}",
      "9: segments.elan.ports.0: 'core:a0' is not a machine or device of this topology;"
       " allowed: client, server, edge"]),
    ('"edge:a0"', '"edge:a0", "edge:e0"',
     ["9: segments.elan.ports.1: port 'edge:e0' is used twice (also in segment 'hub'); allowed: each port once"]),
    ("kind: atm", "kind: atm, frame_size: 4544",
     ["9: segments.elan.mtu: MTU 4528 differs from MTU 1500 of segment 'hub', joined by device 'edge'; "
      "allowed: 1500 on both"]),
    ("kind: atm", "kind: atm, encapsulation: routed, mtu: 1500",
     ["9: segments.elan.ports.0: 'edge:a0' belongs to a bridge: classical IP does not carry Ethernet headers;"
      " allowed: hosts"]),
    ("server: {interfaces: {eth0: {address: 10.0.0.2/24}}}",
     'server: {interfaces: {eth0: {address: 10.0.0.2/24, mac: "02:53:44:01:01:01"}}}',
     ["4: machines.server.interfaces.eth0.mac: MAC address 02:53:44:01:01:01 is used twice (also by edge:a0); "
      "allowed: each address once"]),
    ("10.0.0.2/24", "10.0.1.2/24",
     ["4: machines.server.interfaces.eth0.address: 10.0.1.2/24 is not in the subnet of client:eth0 "
      "on segment 'elan'; allowed: an address in 10.0.0.0/24"]),
    ("  hub: {kind: hub", '  loop: {kind: switch, rate: 10 Mbit/s, ports: ["edge:b0", "second:a0"]}\n  hub: {kind: hub',
     ["8: segments.loop.ports.0: device 'edge' has no interface 'b0'; allowed: edge:e0, edge:a0",
      "8: segments.loop.ports.1: 'second:a0' is not a machine or device of this topology;"
       " allowed: client, server, edge"]),
]  # fmt: skip


def written(path: Path, text: str) -> Network:
    path.write_text(text)
    return build_network(load_topology(str(path)))


@pytest.mark.parametrize(("old", "new", "lines"), CASES, ids=[case[1][:40] or case[0][:40] for case in CASES])
def test_mistake(tmp_path: Path, old: str, new: str, lines: list[str]) -> None:
    assert old in GOOD
    path = tmp_path / "net.yaml"
    text = GOOD.replace(old, new) if old == "edge" else GOOD.replace(old, new, 1)
    with pytest.raises(BadInput) as caught:
        written(path, text)
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines() == [f"{path}:{line}" for line in lines]


def test_a_loop_of_devices_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    text = GOOD.replace("[e0, a0]}", "[e0, a0]}\n  second: {kind: bridge, interfaces: [e0, a0]}")
    text = text.replace('"edge:e0"]', '"edge:e0", "second:e0"]').replace('["edge:a0"', '["edge:a0", "second:a0"')
    with pytest.raises(BadInput) as caught:
        written(path, text)
    assert str(caught.value) == (
        f"{path}:10: segments.elan.ports.1: 'second:a0' closes a loop of bridges: frames would loop forever; "
        "allowed: segments and bridges that form a tree"
    )


def test_two_ports_of_a_device_on_one_segment_are_a_loop(tmp_path: Path) -> None:
    text = GOOD.replace("[e0, a0]", "[e0, a0, a1]").replace('"edge:a0", ', '"edge:a0", "edge:a1", ')
    with pytest.raises(BadInput, match=r"elan\.ports\.1: 'edge:a1' closes a loop of bridges"):
        written(tmp_path / "net.yaml", text)


def test_a_machine_that_bridges_has_no_proxy_client(tmp_path: Path) -> None:
    text = GOOD.replace("devices:\n  edge: {kind: bridge, interfaces: [e0, a0]}\n", "")
    text = text.replace("segments:", "  edge: {role: bridge, interfaces: {eth0: {}, eth1: {}}}\nsegments:")
    text = text.replace("edge:e0", "edge:eth0").replace("edge:a0", "edge:eth1")
    with pytest.raises(
        BadInput, match=r"'edge:eth1' belongs to a bridge: LAN emulation supports bridges only as devices"
    ):
        written(tmp_path / "net.yaml", text)
    assert written(tmp_path / "net.yaml", text.replace("kind: atm", "kind: atm, encapsulation: bridged")).devices == ()


def test_a_device_joins_segments(tmp_path: Path) -> None:
    network = written(tmp_path / "net.yaml", GOOD)
    assert network.domains == {"hub": 0, "elan": 0}
    client, server = network.nic("client:eth0"), network.nic("server:eth0")
    assert network.route("client", "server") == (client, server)
    assert network.neighbours(client) == [server]
    assert network.plug("client:eth0") is client
    (edge,) = network.devices
    assert (edge.name, edge.kind, edge.index) == ("edge", "bridge", 0)
    assert edge.ports == (
        DevicePort("edge", "e0", 0, "02:53:44:01:00:01", "hub", 1),
        DevicePort("edge", "a0", 1, "02:53:44:01:01:01", "elan", 0),
    )
    assert network.plug("edge:a0") == edge.ports[1]
    with pytest.raises(KeyError):
        network.plug("edge:x")


@pytest.mark.parametrize(
    ("segment", "interface", "mtu"),
    [
        ("kind: atm, encapsulation: routed", "", 9180),
        ("kind: atm, frame_size: 18190", "", 18174),
        ("kind: atm, frame_size: 18190", ", mtu: 9000", 9000),
        ("kind: switch, rate: 10 Mbit/s, mtu: 576", "", 576),
        ("kind: switch, rate: 10 Mbit/s", "", 1500),
    ],
)
def test_an_interface_has_its_segments_mtu(tmp_path: Path, segment: str, interface: str, mtu: int) -> None:
    text = f"""\
description: Two hosts
machines:
  client: {{interfaces: {{eth0: {{address: 10.0.0.1/24{interface}}}}}}}
  server: {{interfaces: {{eth0: {{address: 10.0.0.2/24}}}}}}
segments:
  lan: {{{segment}, ports: ["client:eth0", "server:eth0"]}}
"""
    nic = written(tmp_path / "net.yaml", text).plug("client:eth0")
    assert isinstance(nic, Nic)
    assert nic.mtu == mtu
