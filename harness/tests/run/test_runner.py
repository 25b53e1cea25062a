# SPDX-License-Identifier: Apache-2.0
"""Whole runs on fakes: what is written, what is raised, and that nothing is left."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sundial.errors import BadInput, InternalError, Interrupted, RunFailed
from sundial.machines.fake import FakeMachine
from sundial.machines.hypervisor import MachineState, MonitorError
from sundial.machines.shm import MemberProgress, SharedProgress
from sundial.model.load import load_experiments
from sundial.plan.build import plan_run
from sundial.plan.paths import RunPaths
from sundial.plan.request import Standing
from sundial.run import bringup, rig, runner
from sundial.run.supervisor import FabricStands, JobDone
from sundial.run.watchdog import Watchdog
from tests.run.stage import Stage

MEMBER = MemberProgress(5, 1, waits=True, finished=False, joined=True)
CALL = "[0,1000,2500,1,0,7,null]\n"
BATCH = {
    "type": "batch",
    "step": 0,
    "app": "echo-client",
    "series": 0,
    "transport": "udp",
    "procedure": "echo",
    "size": 16,
    "thread": 0,
    "server": "10.0.0.2",
    "server_port": 1025,
    "client_port": 700,
    "warmup": 0,
    "columns": ["call", "start", "end", "ok", "retransmits", "xid", "error"],
}


def read(folder: Path) -> dict[str, object]:
    document = json.loads((folder / "run.json").read_text())
    assert isinstance(document, dict)
    return document


def write_samples(stage: Stage) -> None:
    samples = stage.partial() / "nodes" / "client" / "samples.jsonl"
    samples.write_text(json.dumps(BATCH, separators=(",", ":")) + "\n" + CALL)


@pytest.mark.parametrize(
    ("workload", "batches"),
    [
        ("{app: grpc, series: 2}", 24),
        ("{app: rpyc, functions: [void, person, distance], containers: [list, tuple]}", 3 + 1),
        ("{app: raw, transports: [tcp, udp], functions: [void, int], calls: 1}", 4),
        ("{app: sunrpc, transports: [udp], sizes: [16, 32, 64], calls: 1}", 3),
    ],
)
def test_a_batch_for_each_size_or_function(tmp_path: Path, workload: str, batches: int) -> None:
    path = tmp_path / "calls.yaml"
    path.write_text(f"description: d\ntopology: two-hosts-python\nworkloads:\n  - {workload}\n")
    (experiment,) = load_experiments(str(path))
    paths = RunPaths(capture=tmp_path, sockets=tmp_path, shm=tmp_path)
    assert runner.expected_batches(plan_run(experiment, paths)) == batches


def test_a_run_that_ends_well(stage: Stage) -> None:
    def act(stage: Stage) -> None:
        assert read(stage.partial())["status"] == "interrupted"
        write_samples(stage)
        (stage.partial() / "wire" / "lan.pcapng").write_bytes(b"capture")
        stage.fabric.heard(JobDone("client", 0))
        stage.fabric.finish(5_000_000_000)

    stage.act = act
    result = runner.run(stage.request(), stage.words, session=stage.session)
    assert result.path == stage.captures / "quickstart-two-hosts-10base-t-7-001"
    assert result.virtual_ns == 5_000_000_000
    document = read(result.path)
    assert document["status"] == "complete"
    assert document["error"] is None
    assert document["captures"] == {"wire/lan.pcapng": hashlib.sha256(b"capture").hexdigest()}
    assert document["command"] == ["sundial", "run", "quickstart"]
    assert document["seed"] == 7
    assert document["clock"] == "real"
    nodes = document["nodes"]
    assert isinstance(nodes, dict)
    assert nodes["client"]["interfaces"][0]["segment"] == "lan"
    assert json.loads((result.path / "nodes" / "client" / "job.json").read_text())["machine"] == "client"
    assert "-netdev" in (result.path / "nodes" / "server" / "domain.xml").read_text()
    assert (result.path / "samples.parquet").is_file()
    assert all(machine.state() is MachineState.GONE for machine in stage.hypervisor.machines.values())
    assert stage.leftovers() == []


def test_what_the_caller_does_while_machines_run_ends_before_samples_are_collected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of its own imports there; the samples' reader is imported when they are collected."""
    happened: list[object] = []

    @contextlib.contextmanager
    def meanwhile() -> Iterator[None]:
        happened.append([machine.state() for machine in stage.hypervisor.machines.values()])
        write_samples(stage)
        stage.fabric.heard(JobDone("client", 0))
        stage.fabric.finish(5_000_000_000)
        yield
        happened.append("left")

    monkeypatch.setattr(bringup, "collect_samples", lambda folder: happened.append("collected"))
    stage.act = lambda stage: None
    runner.run(replace(stage.request(), while_running=meanwhile), stage.words, session=stage.session)
    assert happened == [[MachineState.RUNNING, MachineState.RUNNING], "left", "collected"]


def test_a_run_with_stops_goes_where_it_is_told_each_time_that_it_stands(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = SharedProgress(5, 0, aborted=False, machines=(MEMBER, replace(MEMBER, own_ns=6)), fabric=MEMBER)
    monkeypatch.setattr(runner, "read_progress", lambda folder: progress)
    seen: list[Standing] = []

    class Stops:
        first_ns = 5

        def stand(self, standing: Standing) -> int | None:
            seen.append(standing)
            return 9 if len(seen) == 1 else None

    def act(stage: Stage) -> None:
        stage.fabric.heard(FabricStands(5))
        stage.fabric.heard(FabricStands(9))
        write_samples(stage)
        stage.fabric.heard(JobDone("client", 0))
        stage.fabric.finish(5_000_000_000)

    stage.act = act
    result = runner.run(replace(stage.request(), stops=Stops()), stage.words, session=stage.session)
    assert stage.fabric.instants == [5, 9, None]
    assert [standing.at_ns for standing in seen] == [5, 9]
    assert sorted(seen[0].clocks_ns.items()) in ([("client", 5), ("server", 6)], [("client", 6), ("server", 5)])
    assert read(result.path)["status"] == "complete"


def test_what_a_stop_raises_ends_the_run_and_leaves_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stops:
        first_ns = 5

        def stand(self, standing: Standing) -> int | None:
            raise Interrupted("enough")

    progress = SharedProgress(5, 0, aborted=False, machines=(MEMBER, MEMBER), fabric=MEMBER)
    monkeypatch.setattr(runner, "read_progress", lambda folder: progress)
    stage.act = lambda stage: stage.fabric.heard(FabricStands(5))
    with pytest.raises(Interrupted, match="enough"):
        runner.run(replace(stage.request(), stops=Stops()), stage.words, session=stage.session)
    assert all(machine.state() is MachineState.GONE for machine in stage.hypervisor.machines.values())
    assert stage.leftovers() == []


def test_a_second_run_gets_the_next_number(stage: Stage) -> None:
    first = runner.run(stage.request(), stage.words, session=stage.session)
    second = runner.run(stage.request(), stage.words, session=stage.session)
    assert [first.path.name[-3:], second.path.name[-3:]] == ["001", "002"]
    assert stage.leftovers() == []


def kill_client(stage: Stage) -> None:
    (stage.partial() / "nodes" / "client" / "console.log").write_text("runner up\nlast words\n")
    stage.hypervisor.machines["client"].end("failed")


def panic(stage: Stage) -> None:
    text = "boot\nKernel panic - not syncing: sysrq triggered crash\n"
    (stage.partial() / "nodes" / "server" / "console.log").write_text(text)
    stage.hypervisor.machines["server"].end("shut down")


BACKTRACE = ("PANIC: page fault at 0x8 in task 3 (init)", *(f"  ffffffff8010{n:04x} frame+{n:#x}" for n in range(20)))


def sss_panic(stage: Stage) -> None:
    """The trace comes after the line that is noticed; then the machine powers itself off."""
    console = stage.partial() / "nodes" / "client" / "console.log"
    console.write_text(f"client: up\n{BACKTRACE[0]}\n")
    time.sleep(2 * runner.TICK_S)
    console.write_text("\n".join(["client: up", *BACKTRACE, ""]))
    stage.hypervisor.machines["client"].end("shut down")


def fail_a_program(stage: Stage) -> None:
    samples = stage.partial() / "nodes" / "client" / "samples.jsonl"
    with samples.open("a") as lines:
        lines.write('{"type":"step","step":0,"app":"raw-client","status":4}\n')
    stage.fabric.heard(JobDone("client", 1))
    stage.fabric.finish(5_000_000_000)


def crash_app(stage: Stage) -> None:
    line = '{"type":"error","app":"echo-server","message":"killed by signal 11"}\n'
    (stage.partial() / "nodes" / "server" / "samples.jsonl").write_text(line)
    stage.fabric.heard(JobDone("server", 1))
    stage.fabric.finish(5_000_000_000)


@pytest.mark.parametrize(
    ("act", "machine", "message", "tail"),
    [
        (kill_client, "client", "client: the machine ended before the run: failed", ("runner up", "last words")),
        (
            panic,
            "server",
            "server: its kernel panicked: Kernel panic - not syncing: sysrq",
            ("Kernel panic - not syncing: sysrq triggered crash",),
        ),
        (sss_panic, "client", "client: its kernel panicked: PANIC: page fault at 0x8 in task 3", BACKTRACE),
        (fail_a_program, "client", "client: its job failed: raw-client ended with status 4", ()),
        (crash_app, "server", "server: echo-server failed: killed by signal 11", ()),
        (lambda stage: stage.fabric.end(-9), "fabric", "fabric: was killed by SIGKILL", ()),
        (lambda stage: stage.fabric.end(5), "fabric", "fabric: the disk is full", ()),
    ],
)
def test_a_fault_is_named_and_what_was_finished_is_kept(
    stage: Stage, act: Callable[[Stage], None], machine: str, message: str, tail: tuple[str, ...]
) -> None:
    def faulty(stage: Stage) -> None:
        write_samples(stage)
        act(stage)

    stage.act = faulty
    with pytest.raises(RunFailed) as raised:
        runner.run(stage.request(), stage.words, session=stage.session)
    assert raised.value.exit_code == 4
    assert raised.value.machine == machine
    assert str(raised.value).startswith(message)
    assert (raised.value.console_tail or ())[: len(tail)] == tail
    assert (raised.value.console_tail is None) == (machine == "fabric")
    (folder,) = stage.captures.iterdir()
    document = read(folder)
    assert document["status"] == "failed"
    assert str(folder.name) in str(raised.value.hint) or "space" in str(raised.value.hint)
    assert (folder / "samples.parquet").is_file()
    assert CALL in (folder / "nodes" / "client" / "samples.jsonl").read_text()
    assert stage.leftovers() == []


def test_a_run_that_comes_to_its_deadline_waits_for_its_machines_and_fails(stage: Stage) -> None:
    def late(stage: Stage) -> None:
        write_samples(stage)
        stage.fabric.finish(601_000_000_000, "client")

    stage.act = late
    with pytest.raises(RunFailed, match="client: the scenario's deadline of 300 s passed; still waiting for client"):
        runner.run(stage.request(), stage.words, session=stage.session)
    (folder,) = stage.captures.iterdir()
    assert read(folder)["status"] == "failed"
    assert (folder / "samples.parquet").is_file()


@pytest.mark.parametrize("works", [True, False])
def test_kvm_is_used_where_it_works_and_run_json_says_so(stage: Stage, works: bool) -> None:
    stage.session.runs_kvm = lambda kernel, cache: works
    result = runner.run(stage.request(), stage.words, session=stage.session)
    kind = "kvm" if works else "qemu"
    assert read(result.path)["accelerator"] == ("kvm" if works else "tcg")
    for xml in stage.hypervisor.xml.values():
        assert f'" type="{kind}">\n  <name>' in xml
        assert ("-plugin" in xml) is not works


def test_nothing_that_moves_is_a_hang(stage: Stage) -> None:
    def hello(stage: Stage) -> None:
        for machine in ("client", "server"):
            (stage.partial() / "nodes" / machine / "samples.jsonl").write_text('{"type":"hello"}\n')

    stage.act = hello
    with pytest.raises(RunFailed, match=r"hung: no progress for \d s, all others wait for client"):
        runner.run(stage.request(), stage.words, session=stage.session, watchdog=Watchdog(2.5))
    assert stage.leftovers() == []


def test_a_fabric_that_does_not_answer_is_blamed_itself(stage: Stage) -> None:
    def hello(stage: Stage) -> None:
        stage.fabric.silent = True
        for machine in ("client", "server"):
            (stage.partial() / "nodes" / machine / "samples.jsonl").write_text('{"type":"hello"}\n')

    stage.act = hello
    with pytest.raises(RunFailed, match=r"fabric: hung: no progress for \d s"):
        runner.run(stage.request(), stage.words, session=stage.session, watchdog=Watchdog(2.5))


def test_a_signal_while_samples_are_collected_interrupts_when_they_are(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect = bringup.collect_samples

    def interrupted(folder: Path) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return collect(folder)

    monkeypatch.setattr(bringup, "collect_samples", interrupted)
    with pytest.raises(Interrupted, match="SIGINT") as raised:
        runner.run(stage.request(), stage.words, session=stage.session)
    (folder,) = stage.captures.iterdir()
    assert raised.value.hint is not None
    assert folder.name in raised.value.hint
    assert read(folder)["status"] == "complete"
    assert stage.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts_and_says_so(stage: Stage, number: signal.Signals) -> None:
    stage.act = lambda stage: os.kill(os.getpid(), number)
    with pytest.raises(Interrupted, match=number.name):
        runner.run(stage.request(), stage.words, session=stage.session)
    (folder,) = stage.captures.iterdir()
    assert read(folder)["status"] == "interrupted"
    assert stage.fabric.stopped
    assert stage.leftovers() == []


def test_a_machine_that_does_not_start_is_named(stage: Stage) -> None:
    stage.hypervisor.refuse("server")
    with pytest.raises(RunFailed, match="server: libvirt could not start it"):
        runner.run(stage.request(), stage.words, session=stage.session)
    assert stage.leftovers() == []


def test_a_named_directory_that_exists_is_refused_before_anything_starts(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(BadInput, match="exists already"):
        runner.run(stage.request(tmp_path / "mine"), stage.words, session=stage.session)
    assert stage.fabrics == []


def test_an_unknown_machine_cannot_be_first(stage: Stage) -> None:
    with pytest.raises(BadInput, match="no machine 'absent'"):
        runner.run(stage.request(), stage.words, session=stage.session, start_order=("absent",))


def test_machines_start_in_the_order_asked_for(stage: Stage) -> None:
    runner.run(stage.request(), stage.words, session=stage.session, start_order=("server", "client"))
    assert stage.hypervisor.resumed == ["server", "client"]


@pytest.mark.parametrize("words", [None, "server: the machine ended before the run"])
def test_a_machine_that_has_ended_when_the_monitor_answers_is_judged_by_its_end(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, words: str | None
) -> None:
    resume = FakeMachine.resume
    if words is not None:
        stage.act = lambda stage: None  # the fabric does not finish

    def resumed_and_gone(machine: FakeMachine) -> None:
        resume(machine)
        if machine.name == "server":
            states = iter([MachineState.PAUSED])  # libvirt reads the end of the monitor before it looks for the process
            monkeypatch.setattr(machine, "state", lambda: next(states, MachineState.GONE))
            if words is not None:
                machine.end("failed")
            raise MonitorError("connection reset by peer")

    monkeypatch.setattr(FakeMachine, "resume", resumed_and_gone)
    with pytest.raises(RunFailed, match=words) if words else contextlib.nullcontext():
        runner.run(stage.request(), stage.words, session=stage.session)
    assert stage.leftovers() == []


def test_a_machine_that_cannot_be_resumed_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(machine: FakeMachine) -> None:
        raise MonitorError(f"{machine.name} cannot be resumed")

    monkeypatch.setattr(FakeMachine, "resume", refuse)
    monkeypatch.setattr(rig, "GONE_S", 0.1)
    with pytest.raises(RunFailed, match="client: client cannot be resumed"):
        runner.run(stage.request(), stage.words, session=stage.session)
    assert stage.leftovers() == []


def test_a_fault_of_sundial_is_logged_in_the_run_and_leaves_nothing(stage: Stage) -> None:
    def stumble(stage: Stage) -> None:
        raise ZeroDivisionError("a bug")

    stage.act = stumble
    with pytest.raises(InternalError, match="ZeroDivisionError: a bug") as raised:
        runner.run(stage.request(), stage.words, session=stage.session)
    (folder,) = stage.captures.iterdir()
    assert read(folder)["status"] == "failed"
    assert raised.value.log == str(folder / "error.log")
    assert "in stumble" in (folder / "error.log").read_text()
    assert stage.leftovers() == []


def test_a_full_disk_while_writing_is_reported(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bringup, "collect_samples", full)
    with pytest.raises(RunFailed, match="disk is full"):
        runner.run(stage.request(), stage.words, session=stage.session)
    (folder,) = stage.captures.iterdir()
    assert read(folder)["status"] == "failed"
