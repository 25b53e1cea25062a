# SPDX-License-Identifier: Apache-2.0
"""Programs that speak ONC RPC over a link that loses frames: all is decoded, and one wrong xid is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sundial.verify import verify_pcap
from tests.run.live import END_S
from tests.run.served import passed, status

pytestmark = pytest.mark.vm

TOPOLOGY = """\
description: Two hosts with Python on a link that loses 1 %
defaults: {image: linux-python}
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}}}
  server: {interfaces: {eth0: {address: 10.0.0.2/24}}}
segments:
  lan: {kind: link, rate: 100 Mbit/s, ports: ["client:eth0", "server:eth0"], impairments: {both: {loss: 1 %}}}
"""
SERVER = """\
import socket, struct, sys, threading
WRONG = int(sys.argv[1])
PROGRAM, UDP_PORT, TCP_PORT = 0x20000001, 40001, 40002
def answer(call):
    xid, kind, rpc, program, version, procedure = struct.unpack(">6I", call[:24])
    size = struct.unpack(">I", call[28:32])[0]
    rest = call[32 + (size + 3) // 4 * 4 + 8:]
    global WRONG
    if xid == WRONG:
        xid, WRONG = xid + 1000, 0
    head = struct.pack(">6I", xid, 1, 0, 0, 0, 0)
    if program == 100000 and procedure == 3:
        return head + struct.pack(">I", {17: UDP_PORT, 6: TCP_PORT}[struct.unpack(">4I", rest)[2]])
    if program not in (100000, PROGRAM):
        return struct.pack(">6I", xid, 1, 0, 0, 0, 1)
    return head + rest
def udp(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", port))
    while True:
        data, peer = s.recvfrom(65536)
        s.sendto(answer(data), peer)
def tcp(port):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port)); s.listen()
    while True:
        c, _ = s.accept()
        f = c.makefile("rb")
        while True:
            data, last = b"", 0
            while not last:
                m = f.read(4)
                if len(m) < 4: break
                m = struct.unpack(">I", m)[0]; last = m >> 31
                data += f.read(m & 0x7FFFFFFF)
            if not last: break
            r = answer(data)
            c.sendall(struct.pack(">I", len(r) | 1 << 31) + r)
        c.close()
for target, port in ((udp, 111), (udp, UDP_PORT), (tcp, TCP_PORT)):
    threading.Thread(target=target, args=(port,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
CLIENT = """\
import socket, struct, sys
server, xid = sys.argv[1], 7000
def call(program, procedure, args):
    global xid
    xid += 1
    return struct.pack(">10I", xid, 0, 2, program, 2 if program == 100000 else 1, procedure, 0, 0, 0, 0) + args
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5)
def ask(port, data):
    while True:
        s.sendto(data, (server, port))
        try:
            while True:
                got = s.recv(65536)
                if got[:4] == data[:4]: return got
        except TimeoutError: pass
P = 0x20000001
ports = []
for proto in (17, 6):
    got = ask(111, call(100000, 3, struct.pack(">4I", P, 1, proto, 0)))
    ports.append(struct.unpack(">I", got[24:])[0])
for size in [0, 4, 1400, 8000] * 10:
    ask(ports[0], call(P, 1, bytes(size)))
c = socket.create_connection((server, ports[1])); f = c.makefile("rb")
out = b""
for n in range(30):
    m = call(P, 1, bytes([n]) * 4 * n * n)
    a = len(m) // 3
    out += struct.pack(">I", a) + m[:a] + struct.pack(">I", (len(m) - a) | 1 << 31) + m[a:]
c.sendall(out)
for n in range(30):
    f.read(struct.unpack(">I", f.read(4))[0] & 0x7FFFFFFF)
c.close()
print("done")
"""


def _scenario(folder: Path, wrong: int) -> Path:
    (folder / "lossy.yaml").write_text(TOPOLOGY)
    python = "/usr/bin/python3.11"
    programs = {
        "serve": {
            "on": "server",
            "role": "service",
            "argv": [python, "/srv/server.py", wrong],
            "ready": {"line": "^ready"},
            "files": {"/srv/server.py": SERVER},
        },
        "ask": {
            "on": "client",
            "argv": [python, "/srv/client.py", "{server}"],
            "after": ["serve"],
            "files": {"/srv/client.py": CLIENT},
        },
    }
    workload = {"app": "command", "ports": {"mapper": {"udp": 111, "decode": "onc-rpc"}}, "programs": programs}
    document = {
        "description": "ONC RPC of two programs",
        "topology": str(folder / "lossy.yaml"),
        "workloads": [workload],
    }
    file = folder / "rpc.yaml"
    file.write_text(json.dumps(document))
    return file


def _verdict(run: Path) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads((run / "verify.json").read_text())
    return verdict


def test_calls_over_udp_and_tcp_are_decoded_at_the_ports_that_the_port_mapper_names(tmp_path: Path) -> None:
    output = passed(_scenario(tmp_path, 0), tmp_path / "run")
    (remark,) = _verdict(tmp_path / "run")["remarks"]
    assert f"decoded  {remark}" in output
    assert remark.endswith("named by answers: TCP 10.0.0.2:40002, UDP 10.0.0.2:40001")
    result = verify_pcap(tmp_path / "run" / "wire" / "lan.pcapng", protocol="onc-rpc")
    assert (result.verdict, result.calls) == ("pass", 72)
    assert result.remarks is not None
    assert remark.startswith(result.remarks[0])


def test_one_answer_with_another_xid_is_found(tmp_path: Path) -> None:
    run = tmp_path / "run"
    argv = ["run", str(_scenario(tmp_path, 7010)), "--out", str(run), "--no-report"]
    assert status(argv, tmp_path / "said", END_S) == 1
    (problem,) = _verdict(run)["problems"]
    assert (problem["field"], problem["rule"]) == ("decoded answer", "decoded.answer")
    assert f"reply 0x{8010:08x} of 10.0.0.2:40001" in problem["seen"]
    assert problem["frames"]
