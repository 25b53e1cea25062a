# SPDX-License-Identifier: Apache-2.0
"""Requests that were sent again: those for which the wire is the reason, and those for which it is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sundial.verify import Verification, verify_run
from tests.fates import cells, corrupted, given_up
from tests.verify.bed import CLIENT, MAC, RAW_PORT, RPC_PORT, SERVER, Bed, Record, raw_payload, rpc_call, rpc_reply
from tests.verify.seal import seal
from tests.verify.test_headers import arp

SECOND = 1_000_000_000


class Talk:
    """One call on a bed, Sun RPC or raw: requests and replies one by one, then its sample."""

    def __init__(self, directory: Path, protocol: str, size: int) -> None:
        self.bed, self.protocol, self.size = Bed(directory / "run"), protocol, size
        app, self.ports = ("raw-client", (700, RAW_PORT)) if protocol == "raw" else ("echo-client", (700, RPC_PORT))
        self.bed.batch(app, "udp", size, self.ports[1], 700)
        self.start, self.requests = self.bed.now - 1, 0

    def request(self, **loss: Any) -> None:
        message = raw_payload(5, self.size, self.requests) if self.protocol == "raw" else rpc_call(5, self.size)
        self.bed.send(CLIENT, self.bed.datagram(CLIENT, self.ports, message), **loss)
        self.requests += 1

    def reply(self, **loss: Any) -> None:
        message = raw_payload(5, self.size) if self.protocol == "raw" else rpc_reply(5, self.size)
        self.bed.send(SERVER, self.bed.datagram(SERVER, self.ports[::-1], message), **loss)

    def wait(self) -> None:
        self.bed.now += SECOND

    def verify(self, services: Sequence[object] = ()) -> Verification:
        """`services`: of the server's job."""
        self.bed.sample(self.start, 5, retransmits=self.requests - 1)
        path = self.bed.write() / "run.json"
        scenario = {"name": "test", "expect": {"retransmissions": "explained", "failures": "none"}}
        path.write_text(json.dumps({**json.loads(path.read_text()), "scenario": scenario}))
        if services:
            (path.parent / "nodes" / "server" / "job.json").write_text(json.dumps({"services": services}))
        return verify_run(seal(path.parent) if services else path.parent)


# In the gate each workload and each number of packets once.
@pytest.fixture(
    params=[
        pytest.param(("sunrpc", 16), marks=pytest.mark.night),
        ("sunrpc", 2000),
        ("raw", 16),
        pytest.param(("raw", 2000), marks=pytest.mark.night),
    ],
    ids=lambda p: f"{p[0]}-{p[1]}",
)
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Talk:
    return Talk(tmp_path, *request.param)


def test_a_lost_request_is_a_cause(talk: Talk) -> None:
    for _ in range(2):
        talk.request(lose=(0,))
        talk.wait()
    talk.request()
    talk.reply()
    assert talk.verify().problems == []


@pytest.mark.parametrize(("call", "found"), [(1, []), (2, ["request.retransmissions"])])
def test_a_server_that_is_killed_in_the_call_is_a_cause(tmp_path: Path, call: int, found: list[str]) -> None:
    talk = Talk(tmp_path, "sunrpc", 16)
    talk.request()
    talk.wait()
    talk.request()
    talk.reply()
    die = {"when": "during", "call": call}
    service = {"app": "echo-server", "options": {"die": die}, "restart": True}
    assert [each["field"] for each in talk.verify(services=[service]).problems] == found


def test_a_lost_reply_is_a_cause(talk: Talk) -> None:
    for _ in range(2):
        talk.request()
        talk.reply(lose=(0,))
        talk.wait()
    talk.request()
    talk.reply()
    assert talk.verify().problems == []


def test_a_reply_that_is_late_is_a_cause(talk: Talk) -> None:
    talk.request()
    talk.reply()
    for record in talk.bed.records[-2:]:
        if record.interface == 0:
            record.at += 2 * SECOND
    talk.wait()
    talk.request()
    talk.wait()
    talk.reply()
    assert talk.verify().problems == []


def test_a_corrupted_request_that_arrives_is_a_cause(talk: Talk) -> None:
    talk.request()
    first = next(record for record in talk.bed.records if record.interface == 1)
    first.frame = first.frame[:40] + bytes([first.frame[40] ^ 1]) + first.frame[41:]
    comment = corrupted(0, 40, "client:eth0", "server:eth0")
    talk.bed.records.append(Record(first.at - 100, 2, 0, first.frame, comment))
    talk.wait()
    talk.request()
    talk.reply()
    assert talk.verify().problems == []


@pytest.mark.parametrize("behind", [False, True])
def test_copies_of_fragments_make_a_second_request_only_if_all_come_behind_the_first(
    tmp_path: Path, behind: bool
) -> None:
    talk = Talk(tmp_path, "raw", 2000)
    talk.request(twice=(0, 1))
    copies = [record for record in talk.bed.records if record.interface == 1 and record.at % 1000 == 300]
    for record in copies if behind else ():
        record.at += 2_000
    talk.reply(lose=(0,))
    talk.wait()
    talk.request()
    talk.reply()
    seen = [each["seen"] for each in talk.verify().problems]
    assert seen == (["2 whole requests, 1 replies, 0 of them whole at the client"] if behind else [])


def test_a_reply_dropped_before_it_was_seen_at_its_port_is_a_cause(talk: Talk) -> None:
    talk.request()
    before = len(talk.bed.records)
    talk.reply(lose=(0, 1))
    # A frame that its adapter gave up after 16 collisions is not on the wire: only its fate is captured.
    talk.bed.records[before:] = [record for record in talk.bed.records[before:] if record.interface == 2]
    for record in talk.bed.records[before:]:
        record.comment = given_up("server:eth0")
    talk.wait()
    talk.request()
    talk.reply()
    assert talk.verify().problems == []


def problem(talk: Talk) -> tuple[str, str, str]:
    (only,) = talk.verify().problems
    assert only["frames"]
    return only["field"], only["expected"], only["seen"]


def test_a_server_that_does_not_answer_in_time_is_none(talk: Talk) -> None:
    talk.request()
    talk.wait()
    talk.request()
    talk.reply()
    assert problem(talk) == (
        "request.retransmissions",
        "a request or reply that did not arrive before",
        "1 whole requests, 0 replies, 0 of them whole at the client",
    )


@pytest.mark.parametrize("late", [False, True])
def test_a_reply_that_waits_for_its_clients_address_is_a_cause(talk: Talk, late: bool) -> None:
    """The first question of ARP is lost. `late`: nothing was asked while the request waited for its answer."""
    ask, answer = arp(1, SERVER, CLIENT, b"\xff" * 6), arp(2, CLIENT, SERVER, MAC[SERVER])
    if late:
        talk.request(lose=(0,))
        talk.wait()
    talk.request()
    if not late:
        talk.bed.send(SERVER, [ask], lose=(0,))
    talk.wait()
    talk.request()
    talk.bed.send(SERVER, [ask])
    talk.bed.send(CLIENT, [answer])
    talk.reply()
    fields = [each["field"] for each in talk.verify().problems]
    assert ("request.retransmissions" in fields) == late


def test_a_reply_that_a_queue_dropped_is_one_answer(talk: Talk) -> None:
    """It was seen at the server's port and has a fate further on: the second request had none."""
    talk.request()
    before = len(talk.bed.records)
    talk.reply(lose=(0,))
    for record in talk.bed.records[before:]:
        if record.interface == 2:
            record.comment = cells(1, 3, "queue full", "towards", "client:eth0")
    talk.wait()
    talk.request()
    talk.wait()
    talk.request()
    talk.reply()
    found = {(each["field"], each["seen"]) for each in talk.verify().problems}
    assert ("request.retransmissions", "2 whole requests, 1 replies, 0 of them whole at the client") in found


def test_a_client_that_has_its_answer_and_asks_again_has_none(talk: Talk) -> None:
    talk.request()
    talk.reply()
    talk.wait()
    talk.request()
    talk.reply()
    assert problem(talk)[2] == "1 whole requests, 1 replies, 1 of them whole at the client"


def test_a_loss_excuses_the_next_request_alone(talk: Talk) -> None:
    talk.request(lose=(0,))
    talk.wait()
    talk.request()
    talk.wait()
    talk.request()
    talk.reply()
    assert problem(talk)[2] == "1 whole requests, 0 replies, 0 of them whole at the client"
