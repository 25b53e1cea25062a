# SPDX-License-Identifier: Apache-2.0
"""Every mistake in a topology is one line with file, line, field and what is allowed."""

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_topology
from tests.model.hosts import TWO_HOSTS

GOOD = (
    TWO_HOSTS
    + """\
segments:
  lan:
    kind: hub
    rate: 10 Mbit/s
    cable_delay: 25 ns
    ports: ["client:eth0", "server:eth0"]
"""
)
LINK = (
    TWO_HOSTS
    + """\
segments:
  wan:
    kind: link
    rate: 10 Mbit/s
    ports: ["client:eth0", "server:eth0"]
    impairments:
      both: {delay: 10 ms}
"""
)
BRIDGE = """\
description: Two hosts and a bridge
machines:
  client:
    interfaces:
      eth0: {address: 10.0.0.1/24}
  bridge:
    role: bridge
    interfaces:
      eth0: {}
      eth1: {netem: "delay 10ms"}
  server:
    interfaces:
      eth0: {address: 10.0.0.2/24}
segments:
  near: {kind: switch, rate: 100 Mbit/s, ports: ["client:eth0", "bridge:eth0"]}
  far: {kind: switch, rate: 100 Mbit/s, ports: ["bridge:eth1", "server:eth0"]}
"""
RATES = "a rate from 10 Mbit/s to 100 Mbit/s, such as '10 Mbit/s'"
ADAPTERS = "a time from 0 ns to 10 ms, such as '5 us'"
CABLES = "a time from 0 ns to 100 us, such as '25 ns'"
NAMES = "up to 32 lower-case letters, digits and single hyphens, beginning with a letter"
ADDRESSES = "an IPv4 host address with its prefix length from 8 to 30, such as '10.0.0.1/24'"
HUB_FIELDS = "ports, mtu, adapter, kind, rate, cable_delay, repeater_delay"
CLIENT_0 = 'ports: ["client:eth0"'

CASES = [
    # form
    (GOOD, "    rate: 10 Mbit/s", "    speed: 10 Mbit/s",
     [f"10: segments.lan: rate is missing; allowed: {RATES}", f"12: segments.lan.speed: unknown field; allowed: {HUB_FIELDS}"]),
    (GOOD, "rate: 10 Mbit/s", "rate: 10",
     [f"12: segments.lan.rate: '10' has no unit; allowed: {RATES}"]),
    (GOOD, "rate: 10 Mbit/s", "rate: 10 ms",
     [f"12: segments.lan.rate: '10 ms' has the wrong unit 'ms' (known: bit/s, kbit/s, Mbit/s, Gbit/s); allowed: {RATES}"]),
    (GOOD, "rate: 10 Mbit/s", "rate: 20 Mbit/s",
     ["12: segments.lan.rate: a hub has one of two rates; allowed: 10 Mbit/s, 100 Mbit/s"]),
    (GOOD, "25 ns", "-25 ns", [f"13: segments.lan.cable_delay: '-25 ns' is negative; allowed: {CABLES}"]),
    (GOOD, "25 ns", "1 s", [f"13: segments.lan.cable_delay: '1 s' is out of range; allowed: {CABLES}"]),
    (GOOD, "25 ns", '{"client:eth0": 1 kg}',
     [f"13: segments.lan.cable_delay.client:eth0: '1 kg' has the wrong unit 'kg' (known: ns, us, ms, s, min, h); allowed: {CABLES}"]),
    (GOOD, "25 ns", '{"client:eth0": 1 ns}',
     ["13: segments.lan.cable_delay: port 'server:eth0' is missing; allowed: one value for all ports, or one for each"]),
    (GOOD, "25 ns", "20 us",
     ["13: segments.lan.cable_delay: a round trip over the two longest cables, carrier sense at both ends and the jam do not fit "
      "into the slot time: late collisions; allowed: a round trip of at most 46 us, the repeater included"]),
    (GOOD, "kind: hub", "kind: ring", ["11: segments.lan.kind: 'ring' is not known; allowed: atm, hub, link, switch, vmmc"]),
    (GOOD, "    kind: hub\n", "", ["10: segments.lan: kind is missing; allowed: atm, hub, link, switch, vmmc"]),
    (GOOD, "kind: hub", "kind: hub\n    kind: hub",
     ['12: is not YAML: found duplicate key "kind" with value "hub" (original value: "hub")']),
    (GOOD, "machines:", "machines: ]", ["2: is not YAML: expected the node content, but found ']'"]),
    (GOOD, GOOD, "- a list\n", ["1: is not a mapping of fields; allowed: 'field: value' lines"]),
    (GOOD, "  client:\n", "  Client:\n", [f"3: machines.Client: 'Client' is not allowed here; allowed: {NAMES}"]),
    (GOOD, "description:", "name: other\ndescription:", ["1: name: 'other' is not the file's name; allowed: net"]),
    (GOOD, "machines:", "clock: wall\nmachines:", ["2: clock: 'wall' is not known; allowed: virtual, real"]),
    (GOOD, "machines:", "defaults: {offloads: sometimes}\nmachines:",
     ["2: defaults.offloads: 'sometimes' is neither true nor false; allowed: true, false"]),
    (GOOD, "machines:", "defaults: {mips: 100}\nmachines:",
     ["2: defaults.mips: 100 mips is not a power of two of ns an instruction; "
      "allowed: 1000, 500, 250, 125, 62.5, 31.25, 15.625, 7.8125, 3.90625, 1.953125, 0.9765625"]),
    (GOOD, "machines:", "defaults: {adapter: {latency: -1 us}}\nmachines:",
     [f"2: defaults.adapter.latency: '-1 us' is negative; allowed: {ADAPTERS}"]),
    (GOOD, "machines:", "defaults: {adapter: {latency: 10.001 ms}}\nmachines:",
     [f"2: defaults.adapter.latency: '10.001 ms' is out of range; allowed: {ADAPTERS}"]),
    (GOOD, "machines:", "defaults: {adapter: {latency: 0.5 ns}}\nmachines:",
     [f"2: defaults.adapter.latency: '0.5 ns' is not a whole number of ns; allowed: {ADAPTERS}"]),
    (GOOD, "  client:\n", "  client:\n    adapter: {latency: 5}\n",
     [f"4: machines.client.adapter.latency: '5' has no unit; allowed: {ADAPTERS}"]),
    (GOOD, "  client:\n", "  client:\n    adapter: {latency: 5 Mbit/s}\n",
     [f"4: machines.client.adapter.latency: '5 Mbit/s' has the wrong unit 'Mbit/s' (known: ns, us, ms, s, min, h); allowed: {ADAPTERS}"]),
    (GOOD, "  client:\n", "  client:\n    adapter: 5 us\n",
     ["4: machines.client.adapter: is not a mapping of fields; allowed: latency"]),
    (GOOD, "  client:\n", "  client:\n    adapter: {ring_frames: 5}\n",
     ["4: machines.client.adapter.ring_frames: unknown field; allowed: latency"]),
    (GOOD, "machines:", "defaults: {mtu: 67}\nmachines:",
     ["2: defaults.mtu: 67 is out of range; allowed: a whole number from 68 to 18174"]),
    (GOOD, "machines:", "defaults: {memory: 1 KiB}\nmachines:",
     ["2: defaults.memory: '1 KiB' is not a whole number of MiB; allowed: a size in whole MiB from 1 MiB to 64 GiB, such as '96 MiB'"]),
    (GOOD, "machines:", "defaults: {memory: 123460 KiB}\nmachines:",
     ["2: defaults.memory: '123460 KiB' is not a whole number of MiB; allowed: a size in whole MiB from 1 MiB to 64 GiB, such as '96 MiB'"]),
    (GOOD, "machines:", "defaults: {memory: 65 GiB}\nmachines:",
     ["2: defaults.memory: '65 GiB' is out of range; allowed: a size in whole MiB from 1 MiB to 64 GiB, such as '96 MiB'"]),
    (GOOD, "machines:", "defaults: {memory: 16 MiB}\nmachines:",
     ["2: defaults.memory: 16 MiB for 'client', which boots linux; allowed: a size in whole MiB from 96 MiB to 4 GiB, such as '96 MiB'"]),
    # addresses
    (GOOD, "10.0.0.2/24", "10.0.0.2",
     [f"8: machines.server.interfaces.eth0.address: '10.0.0.2' is not an address; allowed: {ADDRESSES}"]),
    (GOOD, "10.0.0.2/24", "10.0.0.255/24",
     [f"8: machines.server.interfaces.eth0.address: '10.0.0.255/24' is not a host's address; allowed: {ADDRESSES}"]),
    (GOOD, "10.0.0.2/24", "10.0.0.1/24",
     ["8: machines.server.interfaces.eth0.address: address 10.0.0.1 is used twice (also by client:eth0); allowed: each address once"]),
    (GOOD, "10.0.0.2/24", "10.0.1.2/24",
     ["8: machines.server.interfaces.eth0.address: 10.0.1.2/24 is in another subnet than client:eth0 on segment 'lan'; "
      "allowed: an address in 10.0.0.0/24"]),
    (GOOD, "{address: 10.0.0.1/24}", '{address: 10.0.0.1/24, mac: "02:53:44:00:00:02"}',
     ["8: machines.server.interfaces.eth0.mac: MAC address 02:53:44:00:00:02 is used twice (also by client:eth0); allowed: each address once"]),
    (GOOD, "{address: 10.0.0.1/24}", '{address: 10.0.0.1/24, mac: "01:53:44:00:00:02"}',
     ["5: machines.client.interfaces.eth0.mac: '01:53:44:00:00:02' is a group address or zero; "
      "allowed: a unicast MAC address, such as '02:00:00:00:00:01'"]),
    (GOOD, "{address: 10.0.0.1/24}", "{}",
     ["5: machines.client.interfaces.eth0: address is missing; allowed: such as '10.0.0.1/24'"]),
    # ends and ports
    (GOOD, CLIENT_0, 'ports: ["klient:eth0"',
     ["5: machines.client.interfaces.eth0: interface client:eth0 is not connected; allowed: list it in the ports of one segment",
      "14: segments.lan.ports.0: 'klient:eth0' names no machine; allowed: client, server"]),
    (GOOD, CLIENT_0, 'ports: ["client:eth1"',
     ["5: machines.client.interfaces.eth0: interface client:eth0 is not connected; allowed: list it in the ports of one segment",
      "14: segments.lan.ports.0: machine 'client' has no interface 'eth1'; allowed: client:eth0"]),
    (GOOD, CLIENT_0, 'ports: ["client:eth0", "client:eth0"',
     ["14: segments.lan.ports.1: port 'client:eth0' is used twice (also in segment 'lan'); allowed: each port once"]),
    (GOOD, CLIENT_0, 'ports: ["client"',
     ["14: segments.lan.ports.0: 'client' is not allowed here; allowed: MACHINE:INTERFACE, such as 'client:eth0'"]),
    (GOOD, 'ports: ["client:eth0", "server:eth0"]', "ports: []", ["14: segments.lan.ports: has 0 entries; allowed: 2 or more"]),
    (GOOD, "      eth0: {address: 10.0.0.1/24}", "      eth1: {address: 10.0.0.1/24}",
     ["4: machines.client.interfaces: interface numbers have a gap; allowed: eth0",
      "5: machines.client.interfaces.eth1: interface client:eth1 is not connected; allowed: list it in the ports of one segment",
      "14: segments.lan.ports.0: machine 'client' has no interface 'eth0'; allowed: client:eth1"]),
    (GOOD, "  client:\n", "  client:\n    image: plan9\n", ["4: machines.client.image: there is no image 'plan9'; allowed: linux, linux-python, linux-python-current, linux-python-paper, ssscore"]),
    (GOOD, "{address: 10.0.0.1/24}", "{address: 10.0.0.1/24, mtu: 1501}",
     ["5: machines.client.interfaces.eth0.mtu: MTU 1501 of client:eth0 is above that of segment 'lan'; allowed: 68 to 1500"]),
    # links
    (LINK, '"server:eth0"]', '"server:eth0", "third:eth0"]',
     ["13: segments.wan.ports.2: 'third:eth0' names no machine; allowed: client, server",
      "13: segments.wan.ports: a link with 3 ports; allowed: exactly 2"]),
    (LINK, "{delay: 10 ms}", "{jitter: 1 ms}",
     ["15: segments.wan.impairments.both.jitter: jitter has no effect without delay; allowed: write delay too"]),
    (LINK, "{delay: 10 ms}", "{loss: 0.1}",
     ["15: segments.wan.impairments.both.loss: '0.1' has no unit; allowed: a percentage from 0 % to 100 %, such as '0.1 %'"]),
    (LINK, "{delay: 10 ms}", "{loss: 1 %, gemodel: {p: 1 %, r: 10 %}}",
     ["15: segments.wan.impairments.both.gemodel: loss and gemodel exclude each other; allowed: one of the two"]),
    (LINK, "both: {delay: 10 ms}", '"third:eth0": {delay: 10 ms}',
     ["15: segments.wan.impairments.third:eth0: 'third:eth0' is not a port of this segment; allowed: client:eth0, server:eth0"]),
    # bridges
    (BRIDGE, "eth0: {}", "eth0: {address: 10.0.0.3/24}",
     ["9: machines.bridge.interfaces.eth0.address: an interface of a bridge has no address; allowed: leave it out"]),
    (BRIDGE, "delay 10ms", "delay 10ms; reboot",
     ["10: machines.bridge.interfaces.eth1.netem: 'delay 10ms; reboot' is not allowed here; "
      "allowed: the words after 'netem' in a tc command line, such as 'delay 10ms loss 1%'"]),
    (BRIDGE, "{address: 10.0.0.2/24}", '{address: 10.0.0.2/24, netem: "loss 1%"}',
     ["13: machines.server.interfaces.eth0.netem: only a bridge runs tc-netem; allowed: role: bridge"]),
    (BRIDGE, "10.0.0.2/24", "10.0.0.1/24",
     ["13: machines.server.interfaces.eth0.address: address 10.0.0.1 is used twice (also by client:eth0); allowed: each address once"]),
    (BRIDGE, '"bridge:eth1", "server:eth0"]}', '"bridge:eth1", "bridge:eth2", "server:eth0"]}',
     ["16: segments.far.ports.1: machine 'bridge' has no interface 'eth2'; allowed: bridge:eth0, bridge:eth1"]),
    (BRIDGE, '["client:eth0", "bridge:eth0"]', '["client:eth0", "bridge:eth0", "bridge:eth1"]',
     ["16: segments.far.ports.0: port 'bridge:eth1' is used twice (also in segment 'near'); allowed: each port once"]),
]  # fmt: skip


@pytest.mark.parametrize(("base", "old", "new", "lines"), CASES, ids=[f"{case[2][:40]!r}" for case in CASES])
def test_mistake(tmp_path: Path, base: str, old: str, new: str, lines: list[str]) -> None:
    assert base.count(old) >= 1
    path = tmp_path / "net.yaml"
    path.write_text(base.replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        load_topology(str(path))
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines() == [f"{path}:{line}" for line in lines]


@pytest.mark.parametrize("text", [GOOD, LINK, BRIDGE])
def test_the_bases_are_sound(tmp_path: Path, text: str) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(text)
    assert load_topology(str(path)).name == "net"


def test_a_loop_of_bridges_is_refused(tmp_path: Path) -> None:
    second = BRIDGE.replace(
        "  server:\n", "  second:\n    role: bridge\n    interfaces: {eth0: {}, eth1: {}}\n  server:\n"
    )
    second = second.replace('"bridge:eth0"]', '"bridge:eth0", "second:eth0"]').replace(
        '["bridge:eth1"', '["bridge:eth1", "second:eth1"'
    )
    path = tmp_path / "net.yaml"
    path.write_text(second)
    with pytest.raises(BadInput, match=r"'second:eth1' closes a loop of bridges: frames would loop forever"):
        load_topology(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    with pytest.raises(BadInput) as caught:
        load_topology(str(missing))
    assert str(caught.value) == f"{missing}: no such file"
    missing.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput) as caught:
        load_topology(str(missing))
    assert str(caught.value) == f"{missing}: is not text in UTF-8"
    with pytest.raises(BadInput, match=r"there is no topology 'nowhere'; allowed: lane-office, office"):
        load_topology("nowhere")
