# SPDX-License-Identifier: Apache-2.0
"""What clients say of the endpoint mapper, and the calls of those to which it named no port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from sundial.judge import parties
from sundial.workloads.dce.expect_pdu import Type
from sundial.workloads.dce.verify_binding import check_binding, check_ports
from sundial.workloads.dce.verify_client import NO_ANSWER, OK, Call, Client
from sundial.workloads.dce.verify_names import NO_PORT, Activity, activities, identity
from sundial.workloads.dce.verify_sides import Sides
from sundial.workloads.dce.verify_stream import EPM, EPT_MAP, Settings
from tests.workloads.dce.dialogue import ACTIVITY

PORT, S = 1027, 1_000_000_000
Line = dict[str, Any]


def binding(ends_s: list[float], status: str, came: Sequence[tuple[int, Type]] = (), **changes: object) -> list[str]:
    """Fields with findings. `ends_s`: of the questions, of which the last ends with `status`; `came`: PDUs and when."""
    last = len(ends_s) - 1
    machine = Client(Settings(), calls=[Call(number, EPM, EPT_MAP) for number in range(last + 1)])
    machine.ended = {place: (status if place == last else NO_ANSWER, int(end * S)) for place, end in enumerate(ends_s)}
    machine.counts["fragments"] = last + 1
    line: Line = {
        "start": 0, "end": int(ends_s[-1] * S), "ok": status == OK, "attempts": last + 1, "sent": last + 1,
        "port": PORT if status == OK else 0, "transport": "udp",
    }  # fmt: skip
    line |= {} if status == OK else {"error": "status 1c010001"}
    own = Activity(ACTIVITY, "client", "server", None, ("10.0.0.2", 135), Settings(), [], binding=line | changes)
    sides = Sides(own)
    for at_ns, kind in came:
        datagram: Any = SimpleNamespace(whole_ns=at_ns)
        pdu: Any = SimpleNamespace(type=kind, sequence=0)
        sides.client.arrived.append((0, datagram, pdu))
    found = check_binding(sides, [replace(machine)], PORT, 30 * S, exact=True)
    return [finding[1].removeprefix("nodes/client binding ") for finding in found]


def test_a_mapper_that_answers_and_one_that_does_not() -> None:
    answers = [(S, Type.RESPONSE), (S + 1, Type.NOCALL), (S + 2, Type.RESPONSE)]
    assert binding([1], OK, answers) == []
    assert binding([1], OK, [(S + 1, Type.RESPONSE)]) == ["end"]
    assert binding([1], OK) == []
    assert binding([10, 20.1], OK) == []
    assert binding([10, 20.1, 30.2], NO_ANSWER) == []


@pytest.mark.parametrize(
    ("status", "changes", "found"),
    [
        (OK, {"port": 1028}, "port"),
        (OK, {"ok": False}, "ok"),
        (NO_ANSWER, {"ok": True}, "ok"),
        (NO_ANSWER, {"port": PORT}, "port"),
        (NO_ANSWER, {"attempts": 2}, "attempts"),
        (NO_ANSWER, {"sent": 4}, "sent"),
        (NO_ANSWER, {"error": "status 1c010003"}, "error"),
        (NO_ANSWER, {"end": 30 * S}, "end"),
    ],
)
def test_what_a_client_says_of_its_questions(status: str, changes: Line, found: str) -> None:
    assert binding([10, 20.1, 30.2], status, **changes)[0] == found


def test_a_client_asks_until_its_time_is_over_and_no_longer() -> None:
    assert binding([10, 20.1], NO_ANSWER) == ["end"]
    assert binding([10, 30.1, 40.2], NO_ANSWER) == ["attempts"]


def ports(change: Callable[[Line, Line, list[Any]], None], *, asks: bool = True) -> list[str]:
    """Fields with findings of two calls of a client without a port. `change`: its binding, batch and second row."""
    named = identity(7, "client", 0, "activity", 0)
    bound: Line = {"type": "binding", "app": "dce-client", "step": 0, "port": 0, "ok": False}
    line: Line = {
        "step": 0, "server_port": 0, "activity": str(named), "counters": {"fragments": 0}, "procedure": "put", "size": 4
    }  # fmt: skip
    row = [1, 0, 0, NO_PORT]
    change(bound, line, row)
    calls = [
        {
            "id": number, "client": "client", "batch": 0, "call": number, "procedure": "put", "size": 4,
            "transport": "udp", "thread": 0, "warmup": False, "start_ns": 9, "end_ns": 9, "ok": False, "error": error,
            "xid": xid, "retransmits": again, "client_address": "10.0.0.1", "client_port": 40000,
            "server_address": "10.0.0.2", "server_port": line["server_port"], "app": "dce-client",
        }
        for number, (xid, again, error) in enumerate([(None, 0, NO_PORT), (row[1] or None, row[2], row[3])])
    ]  # fmt: skip
    table = pl.DataFrame(calls, schema_overrides={"xid": pl.UInt32})
    job = {"seed": 7, "steps": [{"app": "dce-client", "options": {} if asks else {"port": PORT}}]}
    run: Any = SimpleNamespace(jobs={"client": job})
    samples: Any = SimpleNamespace(
        batches={("client", 0): line}, records={"client": [bound] if asks else []}, table=table
    )
    if line["server_port"] == 0:
        assert [each for each in activities(run, samples, []) if not each.mapper] == []
        assert len(parties.batches(samples, table)) == 1
    return [finding[1] for finding in check_ports(run, samples, table)]


def test_calls_of_a_client_without_a_port_have_failed_unsent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sundial.workloads.dce.verify_names._mapper_activities", lambda *_: [])

    def nothing(bound: Line, line: Line, row: list[Any]) -> None: ...

    def counted(bound: Line, line: Line, row: list[Any]) -> None:
        line["counters"] = {"fragments": 1}

    def named(bound: Line, line: Line, row: list[Any]) -> None:
        bound["port"] = PORT

    def another(bound: Line, line: Line, row: list[Any]) -> None:
        line["activity"] = str(ACTIVITY)

    def numbered(bound: Line, line: Line, row: list[Any]) -> None:
        row[1] = 5

    def unanswered(bound: Line, line: Line, row: list[Any]) -> None:
        row[3] = NO_ANSWER

    def sent(bound: Line, line: Line, row: list[Any]) -> None:
        line["server_port"] = PORT

    where = "nodes/client batch 0"
    assert ports(nothing) == []
    assert ports(nothing, asks=False) == [f"{where} server_port"]
    assert ports(counted) == [f"{where} counters fragments"]
    assert ports(named) == [f"{where} server_port"]
    assert ports(another) == [f"{where} activity"]
    assert ports(numbered) == ["sample.xid"]
    assert ports(unanswered) == ["sample.error"]
    assert ports(sent) == [f"{where} server_port", "sample.error", "sample.error"]
