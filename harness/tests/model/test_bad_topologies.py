# SPDX-License-Identifier: Apache-2.0
"""What a topology and each kind of segment cannot do is one line with file, line, field and what is allowed."""

import re
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.check import check_clock
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.segments.atm.model import Atm
from tests.model.documents import refusal
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
ATM = (
    TWO_HOSTS
    + """\
segments:
  elan:
    kind: atm
    ports: ["client:eth0", "server:eth0"]
"""
)
BACKPLANE = """\
description: Two nodes on a backplane
defaults: {image: ssscore}
machines:
  a:
    interfaces: {eth0: {address: 10.0.0.1/24}, vmmc0: {}}
  b:
    interfaces: {eth0: {address: 10.0.0.2/24}, vmmc0: {}}
segments:
  lan: {kind: switch, rate: 100 Mbit/s, ports: ["a:eth0", "b:eth0"]}
  backplane:
    kind: vmmc
    ports: ["a:vmmc0", "b:vmmc0"]
"""
BASES = {"hub": GOOD, "link": LINK, "bridge": BRIDGE, "backplane": BACKPLANE, "atm": ATM}

RATES = "a rate from 10 Mbit/s to 100 Mbit/s, such as '10 Mbit/s'"
CABLES = "a time from 0 ns to 100 us, such as '25 ns'"
NAMES = "up to 32 lower-case letters, digits and single hyphens, beginning with a letter"
ADDRESSES = "an IPv4 host address with its prefix length from 8 to 30, such as '10.0.0.1/24'"
HUB_FIELDS = "ports, mtu, adapter, kind, rate, cable_delay, repeater_delay"
LOOSE = "5: machines.client.interfaces.eth0: interface client:eth0 is not connected; allowed: list it in the ports of one segment"
CLIENT_0 = 'ports: ["client:eth0"'

CASES = [
    ("hub", "    rate: 10 Mbit/s", "    speed: 10 Mbit/s", f"10: segments.lan: rate is missing; allowed: {RATES}" "\n" f"12: segments.lan.speed: unknown field; allowed: {HUB_FIELDS}"),
    ("hub", "rate: 10 Mbit/s", "rate: 10", f"12: segments.lan.rate: '10' has no unit; allowed: {RATES}"),
    ("hub", "rate: 10 Mbit/s", "rate: 10 ms", f"12: segments.lan.rate: '10 ms' has the wrong unit 'ms' (known: bit/s, kbit/s, Mbit/s, Gbit/s); allowed: {RATES}"),
    ("hub", "rate: 10 Mbit/s", "rate: 20 Mbit/s", "12: segments.lan.rate: is not a rate of a hub; allowed: 10 Mbit/s, 100 Mbit/s"),
    ("hub", "25 ns", "-25 ns", f"13: segments.lan.cable_delay: '-25 ns' is negative; allowed: {CABLES}"),
    ("hub", "25 ns", '{"client:eth0": 1 ns}', "13: segments.lan.cable_delay: port 'server:eth0' is missing; allowed: one value for all ports, or one for each"),
    ("hub", "25 ns", "20 us", "13: segments.lan.cable_delay: a round trip over the two longest cables, carrier sense at both ends and the jam exceed the slot time, so collisions would be late; allowed: a round trip of at most 46 us, including the repeater"),
    ("hub", "kind: hub", "kind: ring", "11: segments.lan.kind: 'ring' is unknown; allowed: atm, hub, link, switch, vmmc"),
    ("hub", "    kind: hub\n", "", "10: segments.lan: kind is missing; allowed: atm, hub, link, switch, vmmc"),
    ("hub", "kind: hub", "kind: hub\n    kind: hub", '12: is not YAML: found duplicate key "kind" with value "hub" (original value: "hub")'),
    ("hub", "machines:", "machines: ]", "2: is not YAML: expected the node content, but found ']'"),
    ("hub", GOOD, "- a list\n", "1: must be a mapping of fields; allowed: 'field: value' lines"),
    ("hub", "  client:\n", "  Client:\n", f"3: machines.Client: 'Client' is invalid; allowed: {NAMES}"),
    ("hub", "description:", "name: other\ndescription:", "1: name: 'other' differs from the file's name; allowed: net"),
    ("hub", "machines:", "defaults: {offloads: sometimes}\nmachines:", "2: defaults.offloads: 'sometimes' is not a truth value; allowed: true, false"),
    ("hub", "machines:", "defaults: {mips: 100}\nmachines:", "2: defaults.mips: 100 mips is not a power of two of ns an instruction; allowed: 1000, 500, 250, 125, 62.5, 31.25, 15.625, 7.8125, 3.90625, 1.953125, 0.9765625"),
    ("hub", "machines:", "defaults: {mips: 0.9765625}\nmachines:", "2: defaults.mips: 0.9765625 mips for 'client', which boots linux; allowed: at least 1.953125"),
    ("hub", "machines:", "defaults: {memory: 1 KiB}\nmachines:", "2: defaults.memory: '1 KiB' is not a whole number of MiB; allowed: a size in whole MiB from 1 MiB to 64 GiB, such as '96 MiB'"),
    ("hub", "machines:", "defaults: {memory: 16 MiB}\nmachines:", "2: defaults.memory: 16 MiB for 'client', which boots linux; allowed: a size in whole MiB from 96 MiB to 4 GiB, such as '96 MiB'"),
    ("hub", "10.0.0.2/24", "10.0.0.2", f"8: machines.server.interfaces.eth0.address: '10.0.0.2' is not an IPv4 address with prefix length; allowed: {ADDRESSES}"),
    ("hub", "10.0.0.2/24", "10.0.0.255/24", f"8: machines.server.interfaces.eth0.address: '10.0.0.255/24' is not a host's address; allowed: {ADDRESSES}"),
    ("hub", "10.0.0.2/24", "10.0.0.1/24", "8: machines.server.interfaces.eth0.address: address 10.0.0.1 is used twice (also by client:eth0); allowed: each address once"),
    ("hub", "10.0.0.2/24", "10.0.1.2/24", "8: machines.server.interfaces.eth0.address: 10.0.1.2/24 is not in the subnet of client:eth0 on segment 'lan'; allowed: an address in 10.0.0.0/24"),
    ("hub", "{address: 10.0.0.1/24}", '{address: 10.0.0.1/24, mac: "02:53:44:00:00:02"}', "8: machines.server.interfaces.eth0.mac: MAC address 02:53:44:00:00:02 is used twice (also by client:eth0); allowed: each address once"),
    ("hub", "{address: 10.0.0.1/24}", '{address: 10.0.0.1/24, mac: "01:53:44:00:00:02"}', "5: machines.client.interfaces.eth0.mac: '01:53:44:00:00:02' is not a unicast address; allowed: a unicast MAC address, such as '02:00:00:00:00:01'"),
    ("hub", "{address: 10.0.0.1/24}", "{}", "5: machines.client.interfaces.eth0: address is missing; allowed: such as '10.0.0.1/24'"),
    ("hub", CLIENT_0, 'ports: ["klient:eth0"', LOOSE + "\n14: segments.lan.ports.0: 'klient:eth0' is not a machine of this topology; allowed: client, server"),
    ("hub", CLIENT_0, 'ports: ["client:eth1"', LOOSE + "\n14: segments.lan.ports.0: machine 'client' has no interface 'eth1'; allowed: client:eth0"),
    ("hub", CLIENT_0, 'ports: ["client:eth0", "client:eth0"', "14: segments.lan.ports.1: port 'client:eth0' is used twice (also in segment 'lan'); allowed: each port once"),
    ("hub", CLIENT_0, 'ports: ["client"', "14: segments.lan.ports.0: 'client' is invalid; allowed: MACHINE:INTERFACE, such as 'client:eth0'"),
    ("hub", 'ports: ["client:eth0", "server:eth0"]', "ports: []", "14: segments.lan.ports: has 0 entries; allowed: 2 or more"),
    ("hub", "      eth0: {address: 10.0.0.1/24}", "      eth1: {address: 10.0.0.1/24}", "4: machines.client.interfaces: interface numbers have a gap; allowed: eth0\n5: machines.client.interfaces.eth1: interface client:eth1 is not connected; allowed: list it in the ports of one segment\n14: segments.lan.ports.0: machine 'client' has no interface 'eth0'; allowed: client:eth1"),
    ("hub", "  client:\n", "  client:\n    image: plan9\n", "4: machines.client.image: there is no image 'plan9'; allowed: linux, linux-python, linux-python-current, linux-python-paper, ssscore"),
    ("hub", "  client:\n    interfaces:\n      eth0: {address: 10.0.0.1/24}", "  client:\n    image: ssscore\n    interfaces:\n      eth0: {address: 10.0.0.1/24, offloads: true}", "6: machines.client.interfaces.eth0.offloads: client:eth0 has no offloads: it boots ssscore; allowed: false"),
    ("backplane", "{image: ssscore}", "{image: ssscore, offloads: true}", "2: defaults.offloads: a:eth0 has no offloads: it boots ssscore; allowed: false"),
    ("hub", "{address: 10.0.0.1/24}", "{address: 10.0.0.1/24, mtu: 1501}", "5: machines.client.interfaces.eth0.mtu: MTU 1501 of client:eth0 is above that of segment 'lan'; allowed: 68 to 1500"),
    ("link", '"server:eth0"]', '"server:eth0", "third:eth0"]', "13: segments.wan.ports.2: 'third:eth0' is not a machine of this topology; allowed: client, server\n13: segments.wan.ports: a link cannot have 3 ports; allowed: exactly 2"),
    ("link", "{delay: 10 ms}", "{jitter: 1 ms}", "15: segments.wan.impairments.both.jitter: jitter has no effect without delay; allowed: add delay"),
    ("link", "{delay: 10 ms}", "{delay: 10 ms, reorder: 0 %, gap: 9}", "15: segments.wan.impairments.both.gap: gap has no effect without reorder; allowed: add reorder"),
    ("link", "{delay: 10 ms}", "{delay: 0 ns, reorder: 1 %}", "15: segments.wan.impairments.both.reorder: reorder has no effect without delay; allowed: add delay"),
    ("link", "{delay: 10 ms}", "{loss: 0.1}", "15: segments.wan.impairments.both.loss: '0.1' has no unit; allowed: a percentage from 0 % to 100 %, such as '0.1 %'"),
    ("link", "{delay: 10 ms}", "{loss: 1 %, gemodel: {p: 1 %, r: 10 %}}", "15: segments.wan.impairments.both.gemodel: loss and gemodel exclude each other; allowed: one of the two"),
    ("link", "both: {delay: 10 ms}", '"third:eth0": {delay: 10 ms}', "15: segments.wan.impairments.third:eth0: 'third:eth0' is not a port of this segment; allowed: client:eth0, server:eth0"),
    ("bridge", "eth0: {}", "eth0: {address: 10.0.0.3/24}", "9: machines.bridge.interfaces.eth0.address: an interface of a bridge cannot have an address; allowed: leave it out"),
    ("bridge", "delay 10ms", "delay 500ns", "10: machines.bridge.interfaces.eth1.netem: '500ns' has a unit that tc refuses; allowed: times in s, ms or us"),
    ("bridge", "delay 10ms", "dely 10ms", "10: machines.bridge.interfaces.eth1.netem: 'dely' is not an option of tc-netem; did you mean 'delay'? allowed: limit, delay, latency, distribution, loss, drop, duplicate, corrupt, reorder, gap, rate, ecn, slot"),
    ("bridge", "delay 10ms", "delay 0us corrupt 2% reorder 0.5% gap 6", "10: machines.bridge.interfaces.eth1.netem: reorder has no effect without delay; allowed: add delay TIME"),
    ("bridge", "delay 10ms", "delay 1ms gap 6", "10: machines.bridge.interfaces.eth1.netem: gap has no effect without reorder; allowed: add reorder PERCENT"),
    ("bridge", "delay 10ms", "delay 1ms distribution normal", "10: machines.bridge.interfaces.eth1.netem: distribution has no effect without delay and jitter; allowed: add delay TIME JITTER"),
    ("bridge", "delay 10ms", "delay 1ms ecn", "10: machines.bridge.interfaces.eth1.netem: ecn has no effect without loss; allowed: add loss PERCENT"),
    ("bridge", "delay 10ms", "delay 10ms; reboot", "10: machines.bridge.interfaces.eth1.netem: 'delay 10ms; reboot' is invalid; allowed: the words after 'netem' in a tc command line, such as 'delay 10ms loss 1%'"),
    ("bridge", "{address: 10.0.0.2/24}", '{address: 10.0.0.2/24, netem: "loss 1%"}', "13: machines.server.interfaces.eth0.netem: only a bridge runs tc-netem; allowed: role: bridge"),
    ("bridge", "10.0.0.2/24", "10.0.0.1/24", "13: machines.server.interfaces.eth0.address: address 10.0.0.1 is used twice (also by client:eth0); allowed: each address once"),
    ("bridge", '"bridge:eth1", "server:eth0"]}', '"bridge:eth1", "bridge:eth2", "server:eth0"]}', "16: segments.far.ports.1: machine 'bridge' has no interface 'eth2'; allowed: bridge:eth0, bridge:eth1"),
    ("bridge", '["client:eth0", "bridge:eth0"]', '["client:eth0", "bridge:eth0", "bridge:eth1"]', "16: segments.far.ports.0: port 'bridge:eth1' is used twice (also in segment 'near'); allowed: each port once"),
    ("backplane", "image: ssscore", "image: linux", "5: machines.a.interfaces.vmmc0: image 'linux' has no driver for it; allowed: a machine that boots ssscore\n7: machines.b.interfaces.vmmc0: image 'linux' has no driver for it; allowed: a machine that boots ssscore"),
    ("backplane", "vmmc0: {}}\nseg", "vmmc0: {address: 10.0.1.2/24}}\nseg", "7: machines.b.interfaces.vmmc0.address: it carries stores, not packets; allowed: {}: nothing to set"),
    ("backplane", "eth0: {address: 10.0.0.1/24}, ", "", "5: machines.a.interfaces: vmmc0 needs eth0 for its notifications, and eth0 is missing; allowed: eth0 in addition\n9: segments.lan.ports.0: machine 'a' has no interface 'eth0'; allowed: a:vmmc0"),
    ("backplane", '"b:vmmc0"]', '"b:vmmc0", "a:vmmc0"]', "12: segments.backplane.ports.2: port 'a:vmmc0' is used twice (also in segment 'backplane'); allowed: each port once"),
    ("backplane", '["a:eth0", "b:eth0"]', '["a:eth0", "b:eth0", "b:vmmc0"]', "9: segments.lan.ports.2: 'b:vmmc0' cannot be a port of a segment of kind switch; allowed: eth0 to eth7\n12: segments.backplane.ports.1: port 'b:vmmc0' is used twice (also in segment 'lan'); allowed: each port once"),
    ("backplane", '"a:vmmc0"', '"a:eth0"', "5: machines.a.interfaces.vmmc0: interface a:vmmc0 is not connected; allowed: list it in the ports of one segment\n12: segments.backplane.ports.0: port 'a:eth0' is used twice (also in segment 'lan'); allowed: each port once"),
    ("backplane", "vmmc0: {}}\nseg", "vmmc0: {}}\n    adapter: {latency: 5 us}\nseg", "8: machines.b.adapter: b:vmmc0 has no descriptors to fetch; allowed: no latency"),
    ("backplane", "kind: vmmc", "word_latency: 347 ns", "12: segments.backplane.word_latency: is less than the time to write one word; allowed: at least 348 ns"),
    ("backplane", "kind: vmmc", "fifo: 6911 B", "12: segments.backplane.fifo: is too small for a packet of 1024 combined bytes followed by a page or message; allowed: at least 6912 B"),
    ("backplane", "kind: vmmc", "fifo: 8 KiB\n    combine_bytes: 4096", "12: segments.backplane.fifo: is too small for a packet of 4096 combined bytes followed by a page or message; allowed: at least 17664 B"),
    ("backplane", "kind: vmmc", "link_rate: 1500 Mbit/s", "12: segments.backplane.link_rate: does not give a whole number of ns a byte; allowed: 8 Gbit/s divided by a whole number"),
    ("backplane", "kind: vmmc", "link_rate: 100 Mbit/s", "12: segments.backplane.link_rate: is less than dma_rate, so a packet would be in memory before it has left; allowed: at least 184 Mbit/s (dma_rate)"),
    ("backplane", "kind: vmmc", "link_rate: 200 Mbit/s\n    word_latency: 1 us", "12: segments.backplane.link_rate: is too slow: the packet of one word takes longer than word_latency; allowed: a higher rate"),
    ("backplane", "kind: vmmc", "mtu: 576", "12: segments.backplane.mtu: a backplane carries stores, not frames; allowed: leave it out"),
    ("backplane", "kind: vmmc", "adapter: {ring_frames: 3}", "12: segments.backplane.adapter: a backplane carries stores, not frames; allowed: leave it out"),
]  # fmt: skip

EACH = "one value for all ports, or one for each"
PORTS = "client:eth0, server:eth0"
ATM_RULES = [
    ('line: {"client:eth0": oc-3c}', "line: port 'server:eth0' is missing", EACH),
    ('line: {"other:eth0": oc-3c, "client:eth0": oc-3c, "server:eth0": oc-3c}', "line.other:eth0: 'other:eth0' is not a port of this segment", PORTS),
    ("encapsulation: bridged\n    frame_size: 4544", "frame_size: frame_size has an effect only with encapsulation: lane", "encapsulation: lane"),
    ("encapsulation: routed\n    lane: {}", "lane: lane has an effect only with encapsulation: lane", "encapsulation: lane"),
    ("mtu: 1501", "mtu: MTU 1501 does not fit frames of 1516 octets", "68 to 1500"),
    ("mtu: 9181\n    encapsulation: routed", "mtu: MTU 9181 exceeds that of classical IP", "68 to 9180"),
    ('rx_latency: {"client:eth0": 1 us}', "rx_latency: port 'server:eth0' is missing", EACH),
    ("queue: {epd_above: 5}", "queue.epd_above: epd_above has no effect without early packet discard", "discard: epd"),
    ("queue: {discard: epd, epd_above: 1025}", "queue.epd_above: 1025 cells never wait in a queue of 1024", "1 to 1024"),
    ("queue: {cells: 8, vc_cells: 9}", "queue.vc_cells: 9 cells never wait in a queue of 8", "1 to 8"),
    ("lane: {vc_setup: 18 us}", "lane.vc_setup: 18 us is less than the time of the smallest frame", "at least 18.544 us"),
    ("line: atm-25\n    lane: {vc_setup: 50 us}", "lane.vc_setup: 50 us is less than the time of the smallest frame", "at least 60.675 us"),
    ('contracts: {"other:eth0": {rate: 1 Mbit/s}}', "contracts.other:eth0: 'other:eth0' is not a port of this segment", PORTS),
    ('contracts: {"client:eth0": {rate: 1 Mbit/s}}', "contracts.client:eth0: 1 Mbit/s with a tolerance of 0 ns drops every packet", "a tolerance of at least 842.338 us, or shaping to the rate of the contract"),
    ('encapsulation: bridged\n    contracts: {"client:eth0": {rate: 1 Mbit/s, tolerance: 421168 ns}}', "contracts.client:eth0: 1 Mbit/s with a tolerance of 421.168 us drops every packet", "a tolerance of at least 421.169 us, or shaping to the rate of the contract"),
    ("shaping: 150 Mbit/s", "shaping: 150 Mbit/s exceeds the rate of the line at client:eth0", "up to 149.76 Mbit/s"),
    ('line: atm-25\n    shaping: {"server:eth0": 26 Mbit/s}', "shaping.server:eth0: 26 Mbit/s exceeds the rate of the line at server:eth0", "up to 25.6 Mbit/s"),
    ('impairments: {"to other:eth0": {cell_loss: 1 %}}', "impairments.to other:eth0: 'other:eth0' is not a port of this segment", PORTS),
    ('impairments: {"from client:eth0": {cell_loss: 1 %, gemodel: {p: 1 %, r: 10 %}}}', "impairments.from client:eth0.gemodel: cell_loss and gemodel exclude each other", "one of the two"),
]  # fmt: skip
IMAGES = [
    ("machines.n1.memory=2 GiB", "machines.n1.memory: 2 GiB for 'n1', which boots ssscore; allowed: a size in whole MiB from 16 MiB to 1 GiB, such as '32 MiB'"),
    ("machines.linux.memory=32 MiB", "machines.linux.memory: 32 MiB for 'linux', which boots linux; allowed: a size in whole MiB from 96 MiB to 4 GiB, such as '96 MiB'"),
    ("defaults.memory=16 MiB", "defaults.memory: 16 MiB for 'linux', which boots linux; allowed: a size in whole MiB from 96 MiB to 4 GiB, such as '96 MiB'"),
    ("machines.n1.role=bridge", "machines.n1.role: image 'ssscore' cannot be a bridge; allowed: host"),
]  # fmt: skip


def write(folder: Path, text: str) -> str:
    path = folder / "net.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(("base", "old", "new", "lines"), CASES, ids=[f"{case[2][:40]!r}" for case in CASES])
def test_mistake(tmp_path: Path, base: str, old: str, new: str, lines: str) -> None:
    assert BASES[base].count(old) >= 1
    path = write(tmp_path, BASES[base].replace(old, f"{old}\n    {new}" if old == "kind: vmmc" else new, 1))
    assert refusal(lambda: load_topology(path)) == [f"{path}:{line}" for line in lines.split("\n")]


@pytest.mark.parametrize(("written", "what", "allowed"), ATM_RULES)
def test_atm(tmp_path: Path, written: str, what: str, allowed: str) -> None:
    path = write(tmp_path, f"{ATM}    {written}\n")
    (line,) = refusal(lambda: load_topology(path))
    number = 13 + [each.strip().split(":")[0] for each in written.split("\n")].index(re.split("[:.]", what)[0])
    assert line == f"{path}:{number}: segments.elan.{what}; allowed: {allowed}"


@pytest.mark.parametrize(
    "written",
    [
        'contracts: {"client:eth0": {rate: 1 Mbit/s, tolerance: 842338 ns}}',
        'contracts: {"client:eth0": {rate: 1 Mbit/s, action: tag}}',
        'contracts: {"client:eth0": {rate: 1 Mbit/s}}\n    shaping: 1 Mbit/s',
        'encapsulation: bridged\n    contracts: {"client:eth0": {rate: 1 Mbit/s, tolerance: 421169 ns}}',
    ],
)
def test_a_contract_that_the_smallest_packets_keep(tmp_path: Path, written: str) -> None:
    load_topology(write(tmp_path, f"{ATM}    {written}\n"))


@pytest.mark.parametrize(("override", "line"), IMAGES)
def test_memory_and_role_are_the_images(override: str, line: str) -> None:
    assert refusal(lambda: load_topology("sss-cluster", [override]))[0] == f"--set: {line}"


def test_a_machine_gets_the_memory_of_its_image() -> None:
    nodes = build_network(load_topology("sss-cluster")).nodes
    memory = {node.name: (node.image, node.memory >> 20) for node in nodes}
    assert memory == {**dict.fromkeys(("n1", "n2", "n3", "n4"), ("ssscore", 32)), "linux": ("linux", 96)}


@pytest.mark.parametrize("text", BASES.values(), ids=BASES)
def test_the_bases_are_sound(tmp_path: Path, text: str) -> None:
    assert load_topology(write(tmp_path, text)).name == "net"


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
    assert str(caught.value) == f"{missing}: does not exist"
    missing.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput) as caught:
        load_topology(str(missing))
    assert str(caught.value) == f"{missing}: is not text in UTF-8"
    with pytest.raises(BadInput, match=r"there is no topology 'nowhere'; allowed: lane-office, office"):
        load_topology("nowhere")


def atm(folder: Path, written: str) -> Atm:
    segment = load_topology(write(folder, f"{ATM}    {written}\n")).segments["elan"]
    assert isinstance(segment, Atm)
    return segment


@pytest.mark.parametrize(
    ("written", "mtu"),
    [
        ("line: oc-3c", 1500),
        ("frame_size: 1516", 1500),
        ("frame_size: 4544", 4528),
        ("frame_size: 9234", 9218),
        ("frame_size: 18190", 18174),
        ("encapsulation: bridged", 1500),
        ("encapsulation: bridged-fcs", 1500),
        ("encapsulation: routed", 9180),
        ("encapsulation: routed\n    mtu: 1500", 1500),
        ("mtu: 576", 576),
    ],
)
def test_mtu_follows_the_encapsulation(tmp_path: Path, written: str, mtu: int) -> None:
    assert atm(tmp_path, written).mtu == mtu


def test_fields_of_both_directions_hold_where_one_has_none_of_its_own(tmp_path: Path) -> None:
    written = 'impairments: {both: {cell_loss: 1 %}, "to server:eth0": {payload_bit: 2 %}}'
    segment = atm(tmp_path, written)
    there = segment.faults("to server:eth0")
    assert (str(there.cell_loss), str(there.payload_bit)) == ("0.01", "0.02")
    assert segment.faults("from server:eth0").payload_bit is None
    written = 'impairments: {both: {cell_loss: 1 %, header_bit: 2 %}, "to server:eth0": {gemodel: {p: 1 %, r: 10 %}}}'
    there = atm(tmp_path, written).faults("to server:eth0")
    assert (there.cell_loss, str(there.header_bit)) == (None, "0.02")
    assert there.gemodel is not None


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    segment = atm(tmp_path, 'line: {"client:eth0": atm-25, "server:eth0": 155 Mbit/s}\n    shaping: 2 Mbit/s')
    assert Atm.model_validate(segment.model_dump(mode="json")) == segment


def test_a_backplane_without_a_field_has_the_figures_of_the_machine(tmp_path: Path) -> None:
    topology = load_topology(write(tmp_path, BACKPLANE))
    network = build_network(topology)
    (mapped,) = (nic for nic in network.node("a").nics if nic.mapped)
    assert (mapped.device, mapped.index, mapped.address) == ("vmmc0", 1, None)
    assert [nic.device for nic in network.node("a").network_adapters] == ["eth0"]
    assert network.mapped_captures == ["wire/backplane.pcapng"]
    assert check_clock(topology, "virtual") == []
    (finding,) = check_clock(topology, "real")
    assert finding.path == ("segments", "backplane", "kind")


@pytest.mark.parametrize(("combine_bytes", "fifo"), [(8, "5560 B"), (1024, "6912 B"), (4096, "17664 B")])
def test_the_least_fifo_is_allowed(tmp_path: Path, combine_bytes: int, fifo: str) -> None:
    text = BACKPLANE.replace("kind: vmmc", f"kind: vmmc\n    combine_bytes: {combine_bytes}\n    fifo: {fifo}")
    load_topology(write(tmp_path, text))
