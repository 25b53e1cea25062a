# SPDX-License-Identifier: Apache-2.0
"""A client and a server of connectionless DCE RPC on Scapy's DceRpc4, which shares no code with ours."""

import logging
import socket
import struct
import uuid

from scapy.layers.dcerpc import DceRpc4

logging.getLogger("scapy").setLevel(logging.ERROR)  # bodies of this interface are bytes to it

REQUEST, PING, RESPONSE, FAULT, WORKING, NOCALL, REJECT, ACK, CANCEL, FACK, CANCEL_ACK = range(11)
LAST, FRAGMENT, NO_FACK, IDEMPOTENT = 2, 4, 8, 0x20
SUNDIAL = uuid.UUID("ca5ae9fd-9763-4fe8-aa55-b03fea95bd80")
TWELVE = uuid.UUID("6bd58979-092c-4428-b8fa-492950ea8eab")
CONV = uuid.UUID("333a2276-0000-0000-0d00-00809c000000")
ORDERS = {"little": (1, "<"), "big": (0, ">")}


def order_of(pdu: DceRpc4) -> str:
    return "<" if pdu.endian == 1 else ">"


class Client:
    """Calls one after the other; what has come is in `seen`, by type."""

    def __init__(self, port: int, order: str, interface: uuid.UUID = SUNDIAL) -> None:
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.settimeout(10)
        self.to = ("127.0.0.1", port)
        self.endian, self.order = ORDERS[order]
        self.fields = {"object": uuid.UUID(int=0), "if_id": interface, "act_id": uuid.uuid4(), "if_vers": 1}
        self.boot = 0
        self.seq = -1
        self.seen: list[int] = []

    def send(self, ptype: int, body: bytes = b"", **fields: int) -> None:
        pdu = DceRpc4(ptype=ptype, endian=self.endian, server_boot=self.boot, seqnum=self.seq, **self.fields, **fields)
        self.socket.sendto(bytes(pdu / body) if body else bytes(pdu), self.to)

    def receive(self) -> DceRpc4:
        """The next packet that is not a question; questions are answered."""
        while True:
            data, sender = self.socket.recvfrom(65536)
            pdu = DceRpc4(data)
            self.seen.append(pdu.ptype)
            if pdu.ptype != REQUEST:
                self.boot = pdu.server_boot
                return pdu
            assert (pdu.if_id, pdu.opnum, len(data)) == (CONV, 0, 100)
            same = {name: getattr(pdu, name) for name in ("object", "if_id", "act_id", "if_vers", "seqnum", "opnum")}
            answer = struct.pack(self.order + "II", self.seq, 0)
            self.socket.sendto(bytes(DceRpc4(ptype=RESPONSE, endian=self.endian, **same) / answer), sender)

    def call(self, opnum: int, bodies: list[bytes], flags: int = 0) -> DceRpc4:
        """Sends the fragments, each after the fack of the one before."""
        self.seq += 1
        for number, body in enumerate(bodies):
            last = number == len(bodies) - 1
            fragment = (FRAGMENT | (LAST | NO_FACK if last else 0)) if len(bodies) > 1 else 0
            self.send(REQUEST, body, flags1=flags | fragment, opnum=opnum, fragnum=number, serial_lo=number)
            if not last:
                fack = self.receive()
                assert (fack.ptype, fack.fragnum) == (FACK, number), fack.summary()
                body = struct.unpack(order_of(fack) + "BBHIIHH", bytes(fack.payload))
                assert body == (1, 0, 32, 65507, 4096, number, 0), body
        return self.receive()


def serve_call(server: socket.socket, order: str, results: bytes, ask: bool) -> list[DceRpc4]:
    """Receives a request, asks who its client is, answers in fragments of 1000 bytes, and waits for the end."""
    endian, sign = ORDERS[order]
    got: dict[int, DceRpc4] = {}
    while not got or len(got) <= max(got) or (got[max(got)].flags1 & (FRAGMENT | LAST)) == FRAGMENT:
        data, client = server.recvfrom(65536)
        pdu = DceRpc4(data)
        assert (pdu.ptype, pdu.if_id) == (REQUEST, SUNDIAL), pdu.summary()
        got[pdu.fragnum] = pdu
        same = {name: getattr(pdu, name) for name in ("object", "if_id", "act_id", "if_vers", "seqnum", "opnum")}
        same |= {"endian": endian, "server_boot": 0x1234, "ahint": 7}
        if pdu.flags1 & FRAGMENT and not pdu.flags1 & NO_FACK:
            fack = struct.pack(sign + "BBHIIHH", 1, 0, 32, 65507, 4096, pdu.serial_lo, 0)
            server.sendto(bytes(DceRpc4(ptype=FACK, fragnum=pdu.fragnum, **same) / fack), client)
    if ask:
        question = uuid.UUID(bytes=pdu.act_id.bytes)
        body = (question.bytes_le if sign == "<" else question.bytes) + struct.pack(sign + "I", 0x1234)
        conv = {"object": uuid.UUID(int=0), "if_id": CONV, "act_id": uuid.uuid4(), "if_vers": 3, "seqnum": 5}
        other = socket.socket(type=socket.SOCK_DGRAM)  # from another port, as the OSF runtime does
        other.settimeout(10)
        other.sendto(bytes(DceRpc4(ptype=REQUEST, flags1=IDEMPOTENT, endian=endian, **conv) / body), client)
        answer = DceRpc4(other.recv(65536))
        assert (answer.ptype, answer.seqnum, answer.act_id) == (RESPONSE, 5, conv["act_id"]), answer.summary()
        assert struct.unpack(order_of(answer) + "II", bytes(answer.payload)) == (pdu.seqnum, 0)
        other.close()
    pieces = [results[at : at + 1000] for at in range(0, len(results), 1000)] or [b""]
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        flags = (FRAGMENT | (LAST | NO_FACK if last else 0)) if len(pieces) > 1 else 0
        answer = DceRpc4(ptype=RESPONSE, flags1=flags, fragnum=number, serial_lo=number, **same)
        server.sendto(bytes(answer / piece) if piece else bytes(answer), client)
        if not last:
            fack = DceRpc4(server.recv(65536))
            assert (fack.ptype, fack.fragnum, len(fack.payload)) == (FACK, number, 16), fack.summary()
    return [got[number] for number in sorted(got)]
