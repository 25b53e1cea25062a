#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our programs against Scapy's DCE RPC, both ways, and what tshark says: interop.py FOLDER-OF-APPS GOLDEN-TEST."""

import socket
import struct
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from loopback import App, free_port
from scapy.layers.dcerpc import DceRpc4
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
    for check in (check_server, check_client, check_dissection):
        check(apps)
        print(f"@T dce interop {check.__name__} ok")


if __name__ == "__main__":
    main()
