# SPDX-License-Identifier: Apache-2.0
"""Ports with a decoder: the field, a made run with its followed ports, and what stays unproven."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.observe import RunDirectory, open_run, read_frames
from sundial.observe.octets import octets_of
from sundial.verify.corruption import with_corrupted
from sundial.verify.decoders.registry import DECODERS
from sundial.verify.decoders.traffic import Service
from sundial.verify.frames import with_places
from sundial.verify.sockets.conversations import Conversation, conversations
from sundial.workloads.command.model import Command, Port
from sundial.workloads.command.verify import KIND
from sundial.workloads.command.verify_decoded import Absences, Decoded, decode, services_of, unproven_of
from sundial.workloads.command.verify_records import Life, Ran
from tests.verify.bed import CLIENT, SERVER, Bed, Stream, rpc_call, rpc_reply

ENDS = {here: f"wire/lan.pcapng|{name}:eth0" for here, name in ((CLIENT, "client"), (SERVER, "server"))}
MACHINES = {CLIENT: "client", SERVER: "server"}
MAPPED = 40_002
NAMED = {"mapper": Port(udp=111, decode="onc-rpc")}
SCENARIO = """\
description: A port with a decoder
topology: two-hosts-switched
workloads:
  - app: command
    ports: {{rpc: {port}}}
    programs:
      one: {{on: client, argv: ["true"]}}
"""


def _load(folder: Path, port: str) -> Command:
    (folder / "own.yaml").write_text(SCENARIO.format(port=port))
    (experiment,) = load_experiments(str(folder / "own.yaml"))
    (workload,) = experiment.scenario.workloads
    assert isinstance(workload, Command)
    return workload


@pytest.mark.parametrize(
    ("port", "message"),
    [
        ("{tcp: 2049, decode: nfs}", "workloads.0.ports.rpc.decode: 'nfs' "),
        ("{icmp: true, decode: onc-rpc}", "workloads.0.ports.rpc.decode: ICMP echo has nothing to decode"),
        ("{udp: 443, decode: http2}", "workloads.0.ports.rpc.decode: http2 is not spoken over UDP"),
        ("{decode: onc-rpc}", "workloads.0.ports.rpc: a port has exactly one of tcp, udp, icmp and ethertype"),
    ],
)
def test_a_decoder_that_does_not_fit_is_one_line(port: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as raised:
        _load(tmp_path, port)
    (line,) = str(raised.value).splitlines()
    assert message in line
    assert "allowed: " in line


def test_the_model_offers_each_decoder(tmp_path: Path) -> None:
    for name, decoder in DECODERS.items():
        for transport in decoder.transports:
            assert _load(tmp_path, f"{{{transport}: 9, decode: {name}}}").ports["rpc"].decode == name
    with pytest.raises(BadInput) as raised:
        _load(tmp_path, "{tcp: 9, decode: all}")
    assert all(repr(name) in str(raised.value) or name in str(raised.value) for name in DECODERS)


def _getport(xid: int) -> bytes:
    return struct.pack(">14I", xid, 0, 2, 100000, 2, 3, 0, 0, 0, 0, 0x20000001, 1, 6, 0)


def _run(folder: Path, answer: int = MAPPED, xid: int = 8) -> RunDirectory:
    """A question for a port, whose first answer is lost, and two calls to it over TCP in one segment."""
    bed = Bed(folder)
    bed.send(CLIENT, bed.datagram(CLIENT, (700, 111), _getport(7)))
    mapped = struct.pack(">7I", 7, 1, 0, 0, 0, 0, answer)
    bed.send(SERVER, bed.datagram(SERVER, (111, 700), mapped), lose=(0,))
    bed.send(CLIENT, bed.datagram(CLIENT, (700, 111), _getport(7)))
    bed.send(SERVER, bed.datagram(SERVER, (111, 700), mapped))
    stream = Stream(bed, 4000, MAPPED, {CLIENT: 1000, SERVER: 5000})
    stream.open()
    calls, replies = (
        b"".join(struct.pack(">I", 1 << 31 | len(each)) + each for each in some)
        for some in ([rpc_call(8, 16), rpc_call(9, 3000)], [rpc_reply(9, 3000), rpc_reply(xid, 16)])
    )
    stream.write(CLIENT, calls, [2, 1300, len(calls) - 1302], lose=(1,))
    stream.write(SERVER, replies, [1448, len(replies) - 1448])
    stream.close()
    return open_run(bed.write())


def _decoded(run: RunDirectory, lives: Sequence[Life] = ()) -> Decoded:
    files = run.capture_files
    frames = with_places(read_frames(files, run.epoch_ns))
    frames = with_corrupted(frames, lambda rows: octets_of(rows, files))

    def to(services: Iterable[Service]) -> Sequence[Conversation]:
        ends = [(SERVER if each.address is None else each.address, each.port) for each in services]
        return conversations(
            run, frames, [end for end, each in zip(ends, services, strict=True) if each.transport == "tcp"]
        ).all

    program = Command.model_validate(
        {"app": "command", "programs": {"rpc": {"on": "server", "role": "service", "argv": ["rpc"]}}}
    ).programs["rpc"]
    ran = {"server": [Ran("server", "rpc", program, lives, {})]} if lives else {}
    return decode(run, frames, services_of(NAMED.values()), Absences(MACHINES, ran, {}), ENDS, to)


def test_answers_of_the_port_mapper_are_followed(tmp_path: Path) -> None:
    found = _decoded(_run(tmp_path / "run"))
    assert found.judged["onc-rpc"].findings == []
    assert set(found.services) == {Service("udp", None, 111), Service("tcp", SERVER, MAPPED)}
    read = "4 calls, 4 replies, 1 retransmission, 1 of them after a loss"
    assert found.remarks == [f"onc-rpc: {read}; named by answers: TCP {SERVER}:{MAPPED}"]


def test_another_xid_on_a_followed_port_is_found(tmp_path: Path) -> None:
    found = _decoded(_run(tmp_path / "run", xid=10)).judged["onc-rpc"].findings
    assert [each.field for each in found] == ["decoded answer", "decoded question"]
    assert all(each.rows for each in found)


def test_a_service_that_was_killed_owes_no_answer(tmp_path: Path) -> None:
    run = _run(tmp_path / "run", xid=10)
    found = _decoded(run, [Life(0, 0, 1, None, 9)]).judged["onc-rpc"].findings
    assert [each.field for each in found] == ["decoded answer"]
    found = _decoded(run, [Life(0, 0, 10**12, None, 15)]).judged["onc-rpc"].findings
    assert [each.field for each in found] == ["decoded answer", "decoded question"]


def test_a_port_that_is_not_named_is_not_followed(tmp_path: Path) -> None:
    found = _decoded(_run(tmp_path / "run", answer=MAPPED + 1))
    assert Service("tcp", SERVER, MAPPED) not in found.services
    assert found.judged["onc-rpc"].counts["call"] == 2


def test_what_has_a_decoder_leaves_the_list_of_what_is_unproven(tmp_path: Path) -> None:
    run = _run(tmp_path / "run")
    ports = {"web": {"tcp": 80}, "log": {"udp": 514}, "mapper": {"udp": 111}, "ping": {"icmp": True}}
    lines = {}
    for decoder in (None, "onc-rpc"):
        ports["mapper"]["decode"] = decoder
        run.document["scenario"] = json.loads(json.dumps({"workloads": [{"app": "command", "ports": ports}]}))
        lines[decoder] = unproven_of(run)
    assert KIND.unproven_of(run) == lines["onc-rpc"]
    assert len([line for line in lines[None] if "mapper (UDP 111)" in line]) == 2
    assert not [line for line in lines["onc-rpc"] if "mapper (" in line]
    assert len([line for line in lines["onc-rpc"] if "web (TCP 80)" in line]) == 1
    assert set(DECODERS["onc-rpc"].unproven) <= set(lines["onc-rpc"])
    assert not set(DECODERS["onc-rpc"].unproven) & set(lines[None])
