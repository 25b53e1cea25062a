# SPDX-License-Identifier: Apache-2.0
"""What each of RPC's semantics is worth when the server dies: what the client assumes was done, compared with what was executed."""

from pathlib import Path
from typing import NamedTuple

import pytest
from testing.guest import ICOUNT
from testing.nodes import node_job, run_to_done

pytestmark = pytest.mark.vm

NODE, PEER = 1, 2
ADDRESS = "10.0.0.1"
TYPES = ("mbcf1", "mbcf2", "mbcf12", "mbcf3", "mbcf3a", "mbcf3b")
CALLS, DYING_CALL = 6, 3
PAUSE_NS = 400_000_000
"""The server tells its counters when it has been idle for half as long."""


class Seen(NamedTuple):
    """Of the calls over one type of server."""

    rows: list[dict]
    executed: int
    replayed: int

    @property
    def ok(self) -> int:
        return sum(row["ok"] for row in self.rows)

    @property
    def maybe(self) -> int:
        return sum(
            (row["error"] or "").endswith("; maybe executed") for row in self.rows
        )

    @property
    def retransmits(self) -> int:
        return sum(row["retransmits"] for row in self.rows)


def calls_over(
    transports: tuple[str, ...],
    folder: Path,
    image: Path,
    semantics: str,
    **server: object,
) -> dict[str, Seen]:
    """A client and a server that is restarted, on one node; a separate server for each transport."""
    serving = {"transports": list(transports), "semantics": semantics, **server}
    services = [
        {"app": "portmapper", "options": {}},
        {"app": "echo-server", "options": serving, "restart": True},
    ]
    steps: list[dict] = []
    for transport in transports:
        options = {
            "server": ADDRESS if transport == "udp" else NODE,
            "transport": transport,
            "procedure": "echo",
            "series": 0,
            "sizes": [64],
            "calls": CALLS,
            "warmup": 0,
            "semantics": semantics,
            "total_timeout_ms": 3000,
            **({} if semantics == "exactly_once" else {"retry_timeout_ms": 100}),
        }
        pause = {"app": "sleep", "options": {"ns": PAUSE_NS}}
        kill = {"app": "kill", "options": {"task": "echo-server"}}
        steps += [{"app": "echo-client", "options": options}, pause, kill, pause]
    what = node_job(NODE, PEER, clock="tsc", services=services, steps=steps)
    guest = run_to_done(folder / "g", image, what, ICOUNT)
    assert guest.lines("error") == [], guest.describe()
    assert guest.lines("done") == [{"type": "done", "status": 0}]
    counted = iter(counts(guest.samples()))
    batches = {header["transport"]: rows for header, rows in guest.batches()}
    return {
        transport: Seen(batches[transport], *next(counted)) for transport in transports
    }


def counts(lines: list) -> list[tuple[int, int]]:
    """Calls executed and replies repeated by the servers of each type, over all of their lives."""
    found: list[tuple[int, int]] = []
    last: dict[int, tuple[int, int]] = {}
    for line in lines:
        if not isinstance(line, dict):
            continue
        if line["type"] == "counters":
            last[line["task"]] = (line["executed"], line["replayed"])
        elif line["type"] == "step" and line["app"] == "kill":
            found.append(
                (
                    sum(one for one, _ in last.values()),
                    sum(two for _, two in last.values()),
                )
            )
            last = {}
    return found


def at_night(*values: object) -> object:
    """A case of a test that has one in the gate."""
    return pytest.param(*values, marks=pytest.mark.night)


@pytest.mark.parametrize("when", [at_night("before"), "during", at_night("after")])
@pytest.mark.parametrize("semantics", [at_night("exactly_once"), "at_most_once"])
def test_no_call_is_executed_twice_and_what_is_not_known_is_said(
    bootable: Path, tmp_path: Path, semantics: str, when: str
) -> None:
    for transport, seen in calls_over(
        TYPES, tmp_path, bootable, semantics, die={"when": when, "call": DYING_CALL}
    ).items():
        assert len(seen.rows) == CALLS
        assert seen.ok >= DYING_CALL - 1, transport
        assert seen.ok <= seen.executed <= seen.ok + seen.maybe, (transport, seen)
        if when != "after":
            assert seen.maybe > 0, transport


@pytest.mark.parametrize(
    ("when", "twice"), [at_night("before", False), ("during", True), at_night("after", False)]
)
def test_at_least_once_goes_on_with_the_server_that_has_come_back(
    bootable: Path, tmp_path: Path, when: str, twice: bool
) -> None:
    for transport, seen in calls_over(
        (*TYPES, "udp"),
        tmp_path,
        bootable,
        "at_least_once",
        die={"when": when, "call": DYING_CALL},
    ).items():
        assert seen.ok == CALLS, (transport, seen)
        assert seen.retransmits > 0, transport
        assert (seen.executed > CALLS) == twice, (transport, seen)


def test_a_reply_cache_over_udp_is_forgotten_with_its_server(
    bootable: Path, tmp_path: Path
) -> None:
    """The client cannot see that another one answers: at most once is as good as the server's memory."""
    die = {"when": "during", "call": DYING_CALL}
    seen = calls_over(("udp",), tmp_path, bootable, "at_most_once", die=die)["udp"]
    assert seen.ok == CALLS
    assert seen.executed > CALLS


@pytest.mark.night
def test_a_server_that_lives_executes_each_call_once(
    bootable: Path, tmp_path: Path
) -> None:
    for transport, seen in calls_over(
        TYPES, tmp_path, bootable, "exactly_once"
    ).items():
        assert (seen.ok, seen.executed, seen.retransmits) == (CALLS, CALLS, 0), (
            transport
        )
