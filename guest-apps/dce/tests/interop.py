#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our programs against Scapy's DCE RPC, both ways, and what tshark says: interop.py FOLDER-OF-APPS GOLDEN-TEST."""

import math
import socket
import struct
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from loopback import App, free_port
from scapy.layers.dcerpc import (
    DceRpc4,
    NDRConformantArray,
    NDRConfVarStrNullField,
    NDRFullEmbPointerField,
    NDRIEEEDoubleField,
    NDRIEEEFloatField,
    NDRPacket,
    NDRPacketField,
    NDRPointer,
    NDRSignedIntField,
    NDRVaryingArray,
)
from scapy.layers.inet import IP, UDP
from scapy.utils import wrpcap
from scapy_peer import (
    ACK,
    CANCEL,
    CANCEL_ACK,
    FACK,
    IDEMPOTENT,
    NOCALL,
    PING,
    REQUEST,
    RESPONSE,
    TWELVE,
    Client,
    order_of,
    serve_call,
)

ORDERS = ("little", "big")


def pattern(seq: int, size: int) -> bytes:
    return bytes((seq * 131 + i * 7 + (i >> 8)) & 0xFF for i in range(size))


def check_server(apps: Path) -> None:
    """Scapy calls our server."""
    port = free_port()
    for order in ORDERS:
        options = {"port": port, "interface_sizes": [16, 5000], "byte_order": order, "resend_ms": 1000}
        server = App(apps / "dce-server", options)
        server.wait_ready()
        for client_order in ORDERS:
            client = Client(port, client_order)
            answer = client.call(0, [b""], IDEMPOTENT)
            assert (answer.ptype, answer.seqnum, client.seen) == (RESPONSE, 0, [RESPONSE])
            assert answer.endian == (1 if order == "little" else 0)
            # The activity is known by now; another one is asked who it is, and only once.
            client = Client(port, client_order)
            answer = client.call(1, [pattern(0, 16)])
            assert (answer.ptype, client.seen) == (RESPONSE, [REQUEST, RESPONSE])
            answer = client.call(2, [pattern(1, 5000)[:4016], pattern(1, 5000)[4016:]])
            assert (answer.ptype, answer.seqnum, client.seen[2:]) == (RESPONSE, 1, [FACK, RESPONSE])
            answer = client.call(2001, [pattern(2, 5000)[:4016], pattern(2, 5000)[4016:]])
            first, fack = bytes(answer.payload), struct.pack(client.order + "BBHIIHH", 1, 0, 32, 65507, 4096, 0, 0)
            client.send(FACK, fack, opnum=2001, fragnum=0)
            assert first + bytes(client.receive().payload) == pattern(2, 5000)
            client.send(PING, opnum=2001)  # as if the end had not come: what was not acknowledged is kept
            again = client.receive()
            assert (again.ptype, again.fragnum, again.serial_lo) == (RESPONSE, 1, 2)
            client.send(ACK, opnum=2001)
            client.send(PING, opnum=2001)
            assert client.receive().ptype == NOCALL
            client.send(CANCEL, struct.pack(client.order + "II", 0, 9), opnum=2001)
            assert client.receive().ptype == CANCEL_ACK
            fault = client.call(1, [b"too short"])
            assert struct.unpack(order_of(fault) + "I", bytes(fault.payload)) == (0x1C000007,)
            client.send(ACK, opnum=1)
            if client_order == order:  # silence, when all has been acknowledged
                client.socket.settimeout(1.5)
                try:
                    raise AssertionError(client.receive().summary())
                except TimeoutError:
                    pass
            reject = Client(port, client_order, uuid.uuid4()).call(0, [b""])
            assert struct.unpack(order_of(reject) + "I", bytes(reject.payload)) == (0x1C010003,)
        counters = server.stop()[-1]
        assert (counters["executed"], counters["bad_payload"], counters["undecodable"]) == (10, 0, 2), counters
        assert (counters["rejects"], counters["malformed"], counters["strays"]) == (2, 0, 0), counters


class Name(NDRPacket):
    ALIGNMENT = (4, 8)
    fields_desc = [
        NDRFullEmbPointerField(NDRConfVarStrNullField("text", "")),
        NDRSignedIntField("age", 0),
        NDRIEEEFloatField("weight", 0),
    ]


class Person(NDRPacket):
    fields_desc = [NDRPacketField("value", Name(), Name)]


class Points(NDRPacket):
    fields_desc = [NDRIEEEFloatField(f"x{place}", 0) for place in range(6)]


class Distance(NDRPacket):
    fields_desc = [NDRIEEEDoubleField("value", 0)]


def check_functions(apps: Path) -> None:
    """Scapy calls functions of ours with arguments that it has marshalled itself, and unmarshals the results."""
    port = free_port()
    coordinates = {f"x{place}": value for place, value in enumerate((0.0, 0.5, 1.0, 3.0, 2.5, 1.0))}
    for order in ORDERS:
        server = App(apps / "dce-server", {"port": port, "interface": "functions", "byte_order": order})
        server.wait_ready()
        for client_order in ORDERS:
            client = Client(port, client_order, TWELVE)
            own, theirs = ({"ndr64": False, "ndrendian": each} for each in (client_order, order))
            name = NDRPointer(
                referent_id=0x12345678,
                value=NDRConformantArray(max_count=64, value=[NDRVaryingArray(value=b"Nine char", **own)], **own),
                **own,
            )
            person = Person(value=Name(text=name, age=30, weight=70.5, **own), **own)
            answer = client.call(11, [bytes(person)], IDEMPOTENT)
            assert answer.ptype == RESPONSE, answer.summary()
            value = Person(bytes(answer.payload), **theirs).value
            assert (value.text.value.value[0].value, value.age, value.weight) == (b"Nine char", 30, 70.5)
            answer = client.call(12, [bytes(Points(**coordinates, **own))], IDEMPOTENT)
            assert Distance(bytes(answer.payload), **theirs).value == math.dist((0, 0.5, 1), (3, 2.5, 1))
            reject = client.call(13, [b""], IDEMPOTENT)
            assert struct.unpack(order_of(reject) + "I", bytes(reject.payload)) == (0x1C010002,)
            fault = client.call(3, [b"too long"], IDEMPOTENT)
            assert struct.unpack(order_of(fault) + "I", bytes(fault.payload)) == (0x1C000007,)
        counters = server.stop()[-1]
        assert counters["by_opnum"] == {"3": 2, "11": 2, "12": 2}, counters
        assert (counters["bad_payload"], counters["undecodable"]) == (0, 2), counters


def check_client(apps: Path) -> None:
    """Our client calls Scapy's server."""
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        server.settimeout(10)
        server.bind(("127.0.0.1", 0))
        for order in ORDERS:
            for client_order in ORDERS:
                options = {"server": "127.0.0.1", "port": server.getsockname()[1], "interface_sizes": [16, 5000]}
                options |= {"procedure": "echo", "sizes": [16, 5000], "byte_order": client_order, "ack_delay_ms": 50}
                client = App(apps / "dce-client", options)
                (first,) = serve_call(server, order, pattern(0, 16), ask=True)
                assert (first.server_boot, first.ahint, first.ihint, first.flags1) == (0, 0xFFFF, 0xFFFF, 0)
                assert bytes(first.payload) == pattern(0, 16)
                ack = DceRpc4(server.recv(65536))  # the end of the first batch
                assert (ack.ptype, ack.seqnum, ack.server_boot) == (ACK, 0, 0x1234), ack.summary()
                second = serve_call(server, order, pattern(1, 5000), ask=False)
                assert [(pdu.server_boot, pdu.ahint, pdu.seqnum) for pdu in second] == [(0x1234, 7, 1)] * 2
                assert b"".join(bytes(pdu.payload) for pdu in second) == pattern(1, 5000)
                assert DceRpc4(server.recv(65536)).ptype == ACK
                rows = [line for line in client.finish() if isinstance(line, list)]
                assert [row[3] for row in rows] == [1, 1], rows


def check_dissection(apps: Path) -> None:
    """tshark on a PDU of each type in both byte orders, as the golden test has them: nothing is malformed."""
    dump = subprocess.run([sys.argv[2], "dump"], capture_output=True, text=True, check=True).stdout
    pdus = [bytes.fromhex(line) for line in dump.splitlines()]
    assert {pdu[1] for pdu in pdus} == set(range(11)), sorted({pdu[1] for pdu in pdus})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.pcap"
        wrpcap(str(path), [IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=41027, dport=43000) / pdu for pdu in pdus])
        fields = ("dcerpc.pkt_type", "dcerpc.dg_seqnum", "_ws.malformed")
        command = ["tshark", "-r", path, "-T", "fields", *(word for field in fields for word in ("-e", field))]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == [f"{pdu[1]}\t{0x494A4B4C}\t" for pdu in pdus], lines


def main() -> None:
    apps = Path(sys.argv[1]).resolve()
    for check in (check_server, check_functions, check_client, check_dissection):
        check(apps)
        print(f"@T dce interop {check.__name__} ok")


if __name__ == "__main__":
    main()
