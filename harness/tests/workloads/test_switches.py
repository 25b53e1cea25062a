# SPDX-License-Identifier: Apache-2.0
"""What programs say of their context switches: it is there, and a call that waited had one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sundial.observe import RunDirectory
from sundial.verify.findings import Finding
from sundial.workloads import switches
from sundial.workloads.switches import Speeds, check_batch, check_counters


@pytest.mark.parametrize(
    ("said", "waits", "expected"),
    [(3, True, None), (9, True, None), (2, True, "3 or more"), (0, False, None), (-1, False, "0 or more"),
     (None, False, "0 or more"), (True, False, "0 or more"), ("3", True, "3 or more")],
)  # fmt: skip
def test_of_a_batch(said: object, waits: bool, expected: str | None) -> None:
    found = list(check_batch("batch 0", {"context_switches": said}, 3, waits=waits))
    assert found == ([] if expected is None else [Finding(None, "batch 0 context_switches", expected, str(said))])


@pytest.mark.parametrize(
    ("said", "options", "found"),
    [
        ({"void": 2, "int": 0}, {}, []),
        ({"void": 1, "int": 0}, {}, [("s context_switches of void", "2 or more", "1")]),
        ({"void": 1, "int": 0}, {"waits": False}, []),
        ({"void": -1, "int": 0}, {"waits": False}, [("s context_switches of void", "0 or more", "-1")]),
        ({"void": 2}, {}, [("s context_switches", "of int, void", "void")]),
        ({"void": 2, "int": 0, "long": 0}, {}, [("s context_switches", "of int, void", "int, long, void")]),
        (None, {}, [("s context_switches", "of int, void", "None")]),
    ],
)
def test_of_a_server(said: Any, options: dict[str, bool], found: list[tuple[str, str, str]]) -> None:
    called = {"void": 3, "int": 1, "long": 0}
    seen = check_counters("s", {"context_switches": said}, called, **{"waits": True, **options})
    assert [each[1:4] for each in seen] == found


@pytest.mark.parametrize(
    ("clock", "client", "server", "waits"),
    [
        ("virtual", 125, 125, True),
        ("virtual", 125, 31.25, True),
        ("virtual", 31.25, 125, False),
        ("real", 125, 125, False),
    ],
)
def test_program_on_a_slower_machine_may_find_the_answer_there(
    monkeypatch: pytest.MonkeyPatch, clock: str, client: float, server: float, waits: bool
) -> None:
    machines = {"client": client, "server": server}
    nodes = [SimpleNamespace(name=name, mips=mips) for name, mips in machines.items()]
    monkeypatch.setattr(switches, "network_of", lambda run: SimpleNamespace(nodes=nodes))
    assert Speeds(cast(RunDirectory, SimpleNamespace(clock=clock))).waits("client", "server") == waits
