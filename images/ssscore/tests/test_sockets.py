# SPDX-License-Identifier: Apache-2.0
"""The booted image's IP, UDP and portmapper, against a peer that is nothing but frames written here."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.guest import PATIENCE_S, Guest, run_pair
from testing.nodes import node_job

pytestmark = pytest.mark.vm

NODE, PEER = 1, 2
NODE_MAC, PEER_MAC = (bytes((2, 0x53, 0x44, 0, 0, host)) for host in (NODE, PEER))
NODE_IP, PEER_IP = (bytes((10, 0, 0, host)) for host in (NODE, PEER))
ICMP, UDP = 1, 17
ECHO_REPLY, UNREACHABLE, ECHO_REQUEST = 0, 3, 8
PORTMAPPER, CLOSED, OWN_PORT = 111, 9999, 700
PMAP_PROGRAM, PMAP_VERSION = 100000, 2
PMAP_SET, PMAP_UNSET, PMAP_GETPORT, PMAP_DUMP, PMAP_CALLIT = 1, 2, 3, 4, 5
ECHO_PROGRAM, ECHO_VERSION = 0x20001998, 1
ECHO_NULL, ECHO_OPAQUE = 0, 1
BINDER = {"app": "portmapper", "options": {}}
SERVER = {"app": "echo-server", "options": {"transports": ["udp", "tcp"]}}


def checksum(data: bytes) -> int:
    total = sum(
        struct.unpack(
            f">{len(data) // 2}H", data if len(data) % 2 == 0 else data + b"\0"
        )
    )
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


class Peer:
    """The other end of the machine's only wire."""

    def __init__(self, wire: socket.socket, machine: Path) -> None:
        self._wire, self._machine = wire, str(machine)

    def send(self, protocol: int, payload: bytes) -> None:
        header = (
            struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0)
            + PEER_IP
            + NODE_IP
        )
        header = header[:10] + struct.pack(">H", checksum(header)) + header[12:]
        self._wire.sendto(
            NODE_MAC + PEER_MAC + b"\x08\x00" + header + payload, self._machine
        )

    def packets(self) -> Iterator[tuple[int, bytes]]:
        """Protocol and payload of each IPv4 packet that comes."""
        self._wire.settimeout(PATIENCE_S)
        while True:
            frame = self._wire.recv(2048)
            if frame[12:14] == b"\x08\x00":
                (length,) = struct.unpack(">H", frame[16:18])
                yield frame[23], frame[34 : 14 + length]

    def send_datagram(self, port: int, data: bytes) -> None:
        self.send(UDP, struct.pack(">HHHH", OWN_PORT, port, 8 + len(data), 0) + data)

    def call(
        self, program: int, version: int, procedure: int, arguments: bytes, port: int
    ) -> bytes:
        """The whole reply to a call without credentials."""
        self.send_datagram(
            port,
            struct.pack(">10I", 77, 0, 2, program, version, procedure, 0, 0, 0, 0)
            + arguments,
        )
        reply = next(data[8:] for protocol, data in self.packets() if protocol == UDP)
        assert reply[:8] == struct.pack(">II", 77, 1)
        return reply

    def ask_portmapper(self, procedure: int, *words: int) -> bytes:
        """The results of an accepted call."""
        arguments = struct.pack(f">{len(words)}I", *words)
        reply = self.call(PMAP_PROGRAM, PMAP_VERSION, procedure, arguments, PORTMAPPER)
        assert reply[8:24] == struct.pack(">4I", 0, 0, 0, 0), (
            "accepted, no verifier, success"
        )
        return reply[24:]

    def mappings(self) -> set[tuple[int, int, int, int]]:
        words = self.ask_portmapper(PMAP_DUMP)
        found = set()
        while words[:4] == struct.pack(">I", 1):
            found.add(struct.unpack(">4I", words[4:20]))
            words = words[20:]
        assert words == struct.pack(">I", 0)
        return found


@contextlib.contextmanager
def machine(
    folder: Path, image: Path, **fields: object
) -> Iterator[tuple[Guest, Peer]]:
    """A node that has done its steps, and its peer."""
    ends = folder / "node.sock", folder / "peer.sock"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire,
        Guest(folder / "g", image, node_job(NODE, PEER, **fields)) as guest,
    ):
        wire.bind(str(ends[1]))
        guest.start(ends)
        guest.wait_for("done")
        yield guest, Peer(wire, ends[0])


@pytest.fixture(scope="module")
def peer(bootable: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """Of a node that serves, and that no test changes."""
    with machine(tmp_path_factory.mktemp("node"), bootable, services=[BINDER, SERVER]) as (_, found):
        yield found


def test_it_answers_a_ping(peer: Peer) -> None:
    for size in (0, 56, 1400):
        rest = struct.pack(">HH", 5, size) + bytes(range(256)) * 6
        request = bytes((ECHO_REQUEST, 0, 0, 0)) + rest[: 4 + size]
        peer.send(
            ICMP, request[:2] + struct.pack(">H", checksum(request)) + request[4:]
        )
        reply = next(data for protocol, data in peer.packets() if protocol == ICMP)
        assert (reply[0], checksum(reply), reply[4:]) == (
            ECHO_REPLY,
            0,
            request[4:],
        )


def test_a_port_that_nobody_has_is_unreachable(peer: Peer) -> None:
    peer.send_datagram(CLOSED, b"is anybody there")
    answer = next(data for protocol, data in peer.packets() if protocol == ICMP)
    assert answer[:2] == bytes((UNREACHABLE, 3))
    assert struct.pack(">HH", OWN_PORT, CLOSED) in answer


def test_a_client_learns_that_a_port_is_unreachable(
    bootable: Path, tmp_path: Path
) -> None:
    """By what its peer answers: a call whose time is over ends with another error."""
    options = {
        "server": "10.0.0.2",
        "port": CLOSED,
        "transport": "udp",
        "procedure": "null",
        "calls": 3,
        "sizes": [0],
    }
    steps = [{"app": "echo-client", "options": options}]
    client, _ = run_pair(
        tmp_path, bootable, node_job(NODE, PEER, steps=steps), node_job(PEER, NODE)
    )
    ((_, rows),) = client.batches()
    assert [row["error"] for row in rows] == ["RPC: Unable to receive"] * 3


def test_the_portmapper_tells_what_is_served(peer: Peer) -> None:
    served = peer.mappings()
    ports = {
        protocol: port
        for program, _, protocol, port in served
        if program == ECHO_PROGRAM
    }
    assert {
        protocol for program, _, protocol, _ in served if program == PMAP_PROGRAM
    } == {socket.IPPROTO_TCP, UDP}
    assert set(ports) == {socket.IPPROTO_TCP, UDP}
    (port,) = struct.unpack(
        ">I", peer.ask_portmapper(PMAP_GETPORT, ECHO_PROGRAM, ECHO_VERSION, UDP, 0)
    )
    assert port == ports[UDP]
    assert peer.call(ECHO_PROGRAM, ECHO_VERSION, ECHO_NULL, b"", port)[8:] == bytes(
        16
    )


def test_the_portmapper_calls_for_others(peer: Peer) -> None:
    ports = {
        program: port
        for program, _, protocol, port in peer.mappings()
        if protocol == UDP
    }
    argument = struct.pack(">I", 4) + b"abcd"
    words = struct.unpack(">2I", argument)
    answer = peer.ask_portmapper(
        PMAP_CALLIT, ECHO_PROGRAM, ECHO_VERSION, ECHO_OPAQUE, len(argument), *words
    )
    assert (
        answer == struct.pack(">II", ports[ECHO_PROGRAM], len(argument)) + argument
    )


def test_only_tasks_of_the_node_register(peer: Peer) -> None:
    before = peer.mappings()
    for procedure in (PMAP_SET, PMAP_UNSET):
        assert peer.ask_portmapper(
            procedure, ECHO_PROGRAM, ECHO_VERSION, UDP, 4711
        ) == struct.pack(">I", 0)
    assert peer.ask_portmapper(
        PMAP_SET, ECHO_PROGRAM + 1, 1, UDP, 4711
    ) == struct.pack(">I", 0)
    assert peer.mappings() == before


def test_what_a_task_has_registered_goes_with_it(
    bootable: Path, tmp_path: Path
) -> None:
    steps = [{"app": "kill", "options": {"task": "echo-server"}}]
    with machine(tmp_path, bootable, services=[BINDER, SERVER], steps=steps) as (
        guest,
        peer,
    ):
        guest.wait_until(
            lambda: {program for program, _, _, _ in peer.mappings()} == {PMAP_PROGRAM},
            "it is still registered",
        )
