# SPDX-License-Identifier: Apache-2.0
"""Machines that lose their power: what is refused, what is planned, and what is found at the ports of a wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.plan.build import plan_run
from sundial.plan.paths import RunPaths
from sundial.verify.plan import _beginning_and_end
from tests.fates import adapter_off, lost, machine_off, severed
from tests.segments.test_line_laws import check, segment
from tests.segments.test_timeline_laws import ENDS, changed, changing
from tests.segments.wires import OUT, Frame, Tape

SCENARIO = """\
description: A service and a job
topology: {topology}
deadline: 20 s
timeline:
{events}
workloads:
  - app: command
    ports: {{web: {{tcp: 80}}}}
    programs:
      web: {{on: server, role: service, argv: [httpd], ready: {{tcp: web}}}}
      get: {{on: client, argv: [wget], after: [web]}}
"""
OFF = "at: 1 s, power_off: server"


def _load(folder: Path, *events: str, topology: str = "two-hosts-switched", more: str = "", **how: Any) -> Experiment:
    file = folder / "own.yaml"
    lines = "\n".join(f"  - {{{event}}}" for event in events)
    file.write_text(SCENARIO.format(events=lines, topology=topology) + more)
    (experiment,) = load_experiments(str(file), **how)
    return experiment


SUNRPC = "  - {app: sunrpc, transports: [udp], sizes: 64, calls: 1}\n"
REFUSED: list[tuple[tuple[str, ...], dict[str, Any], str, str]] = [
    (("at: 1 s, power_off: wob",), {}, "timeline.0.power_off", "there is no machine 'wob'"),
    (("at: 1 s, for: 1 s, power_off: server",), {}, "timeline.0.for", "lasts to the end of the run"),
    (("at: 1 s, power_off: server, loss: 1 %",), {}, "timeline.0.loss", "power_off has no loss"),
    (("at: 1 s, power_off: server, on: server",), {}, "timeline.0.on", "power_off has no on"),
    (("at: 0 s, power_off: server",), {}, "timeline.0.at", "does not run before 0 ns"),
    (("at: 99 s, power_off: server",), {}, "timeline.0.at", "the run is over by 21 s"),
    ((OFF, "at: 2 s, power_off: server"), {}, "timeline.1.power_off", "is off already, by timeline.0"),
    ((OFF, "at: 2 s, power_off: client"), {}, "timeline.1.power_off", "every machine with jobs is off"),
    ((OFF, "at: 1 s, pause: web"), {}, "timeline.1.pause", "'server' is off at 1 s"),
    (("after: {program: get, ends: true}, power_off: server",), {}, "timeline.0.after", "wires and machines change"),
    (("at: 1 s, power_on: server",), {}, "timeline.0.power_on", "'server' is not off"),
    ((OFF, "at: 2 s, power_on: server"), {}, "timeline.1.power_on", "a machine boots only once in a run"),
    (("at: 2 s, power_on: wob",), {}, "timeline.0.power_on", "there is no machine 'wob'"),
    ((OFF,), {"topology": "two-hosts-10base-t"}, "timeline.0.power_off", "'lan' is a hub"),
    ((OFF,), {"more": SUNRPC}, "timeline.0.power_off", "'server' has a part in sunrpc"),
    ((OFF,), {"clock": "real"}, "timeline.0.power_off", "only under clock: virtual"),
]


@pytest.mark.parametrize(("events", "how", "field", "what"), REFUSED)
def test_a_power_cut_that_cannot_be_is_refused(
    tmp_path: Path, events: tuple[str, ...], how: dict[str, Any], field: str, what: str
) -> None:
    with pytest.raises(BadInput) as caught:
        _load(tmp_path, *events, **how)
    first = caught.value.problems[0]
    assert first.field == field, str(caught.value)
    assert what in first.what


def test_the_plan_of_a_run_names_what_is_off_and_does_not_wait_for_it(tmp_path: Path) -> None:
    plan = plan_run(_load(tmp_path, OFF), RunPaths(tmp_path, tmp_path, tmp_path))
    machines = {each["name"]: each for each in plan.fabric["machines"]}
    assert machines["server"]["off_ns"] == 10**9
    assert "off_ns" not in machines["client"]
    (lan,) = plan.fabric["segments"]
    (change,) = lan["timeline"]
    place = [each["machine"] for each in lan["ports"]].index("server")
    assert change == {"at_ns": 10**9, "note": "timeline: power_off server", "off": [place]}
    assert plan.fabric["done_machines"] == ["client"]


def test_a_machine_listens_where_all_its_peers_lose_their_power(tmp_path: Path) -> None:
    """Without peers the program opens no socket, and never hears that a service is ready."""
    experiment = _load(tmp_path, OFF)
    numbers = {node.name: node.index for node in experiment.network.nodes}
    plan = plan_run(experiment, RunPaths(tmp_path, tmp_path, tmp_path))
    peers = {name: plan.jobs[name].steps[0].options["peers"] for name in ("server", "client")}
    assert peers == {"server": [numbers["client"]], "client": [numbers["client"]]}


CUT = [{"at": "1 ms", "power_off": "b"}]


def _tape(*frames: Frame) -> Tape:
    return changed(changing(CUT), list(frames))


def test_what_is_for_a_machine_that_is_off_is_lost_and_names_it() -> None:
    for at in (999_999, 1_000_000, 2_000_000):
        assert check(changing(CUT), _tape(Frame(at, 0, 60, 1)).wire()) == []


def test_a_frame_to_a_machine_that_is_off_without_its_cause_is_found() -> None:
    tape = _tape(Frame(1_500_000, 0, 60, 1))
    (fate,) = [row for row in tape.rows if not row["direction"]]
    assert fate["comment"] == machine_off("a:eth0", "b:eth0")
    others = (lost("a:eth0", "b:eth0"), severed("cut", "a:eth0", "b:eth0"), machine_off("b:eth0", "a:eth0"))
    for text in others:
        rows = [row if row["direction"] else {**row, "comment": text} for row in tape.rows]
        assert check(changing(CUT), Tape(ENDS, rows).wire())
    assert check(changing(CUT), Tape(ENDS, [row for row in tape.rows if row["direction"]]).wire())
    arrives = changed(segment("link", ENDS, rate="10 Mbit/s"), [Frame(1_500_000, 0, 60, 1)])
    assert check(changing(CUT), arrives.wire())
    before = changed(changing([{"at": "0 ns", "power_off": "b"}]), [Frame(500_000, 0, 60, 1)])
    assert check(changing(CUT), before.wire()), "the machine is on then"


@pytest.mark.parametrize(("at", "passes"), [(999_999, True), (1_000_000, False), (3_000_000, False)])
def test_a_frame_of_a_machine_that_is_off_is_found(at: int, passes: bool) -> None:
    plain = changed(segment("link", ENDS, rate="10 Mbit/s"), [Frame(at, 1, 60, 1)])
    found = check(changing(CUT), plain.wire())
    assert [each["field"] for each in found] == ([] if passes else ["time on the wire: frame of b"])


@pytest.mark.parametrize(
    ("at", "port", "passes"), [(1_000_000, "b:eth0", True), (999_999, "b:eth0", False), (1_000_000, "a:eth0", False)]
)
def test_only_the_adapter_of_a_machine_that_is_off_loses_its_ring(at: int, port: str, passes: bool) -> None:
    tape = Tape(ENDS)
    tape.fate(at, adapter_off(port), Frame(at, 1, 60, 1))
    assert (check(changing(CUT), tape.wire()) == []) == passes


def test_a_ring_loses_no_more_than_it_holds() -> None:
    written = changing(CUT, adapter={"ring_frames": 2})
    for frames, passes in ((2, True), (3, False)):
        tape = Tape(ENDS)
        for name in range(frames):
            tape.fate(1_000_000 + name, adapter_off("b:eth0"), Frame(1_000_000, 1, 60, name))
        assert (check(written, tape.wire()) == []) == passes


def test_a_switch_knows_machines_that_are_off() -> None:
    from sundial.model.timeline import Event, states_of
    from tests.segments.test_line_laws import PORTS

    written = segment("switch", PORTS[:2], rate="10 Mbit/s")
    states = states_of([Event.model_validate(each) for each in CUT], {"lan": written})
    off = written.with_timeline(states["lan"])
    tape = Tape(PORTS[:2])
    tape.add(2_000_000, 1, OUT, Frame(2_000_000, 1, 60, 1))
    assert "time on the wire: frame of b" in [each["field"] for each in check(off, tape.wire())]


HELLO = {"type": "hello", "machine": "server", "clock": "tsc", "clock_hz": 10**9}
ENDED = [{"type": "step", "step": 0, "app": "command", "status": 0}, {"type": "done", "status": 0}]


@pytest.mark.parametrize(
    ("records", "off", "passes"),
    [
        ([HELLO, *ENDED], False, True),
        ([HELLO], False, False),
        ([HELLO], True, True),
        ([], True, True),
        ([HELLO, *ENDED], True, True),
        ([HELLO, {**ENDED[0], "status": 1}], True, False),
        ([HELLO, {"type": "done", "status": 1}], True, False),
    ],
)
def test_a_machine_that_is_off_may_have_recorded_less(records: list[Any], off: bool, passes: bool) -> None:
    job = {"machine": "server", "clock": "tsc"}
    found = list(_beginning_and_end("server", job, [{"app": "command"}], records, (), False, off))
    assert (not found) == passes
