# SPDX-License-Identifier: Apache-2.0
"""The supervisor's table, row by row."""

from dataclasses import replace

import pytest

from sundial.run.supervisor import (
    FAILING_S,
    FINISH_S,
    PANIC_S,
    VICTIM_S,
    VICTIM_STATUS,
    Event,
    FabricEnded,
    FabricFinished,
    Failed,
    Finished,
    GuestExceeded,
    GuestFailed,
    Hung,
    JobDone,
    MachineEnded,
    MachinePanicked,
    MachineStopped,
    Phase,
    Supervisor,
    Tick,
    Verdict,
    too_late,
)


def after(*events: Event, seconds: float = 0.0) -> Verdict | None:
    """The verdict when these come at once, and a tick `seconds` later."""
    supervisor = Supervisor()
    for event in events:
        supervisor.handle(event, 100.0)
    return supervisor.handle(Tick(), 100.0 + seconds)


@pytest.mark.parametrize(
    ("event", "verdict"),
    [
        (FabricEnded(-9), Failed("was killed by SIGKILL", "fabric")),
        (FabricEnded(-99), Failed("was killed by signal 99", "fabric")),
        (FabricEnded(4, "ring broken"), Failed("ended before the run, with status 4: ring broken", "fabric")),
        (FabricEnded(0), Failed("ended before the run, with status 0", "fabric")),
        (FabricEnded(5), Failed("the disk is full, captures cannot be written", "fabric", disk_full=True)),
        (
            MachineEnded("client", "killed by SIGKILL"),
            Failed("the machine ended before the run: killed by SIGKILL", "client"),
        ),
        (
            MachineEnded("client", "exit status 70", "invariant broken"),
            Failed("the machine ended before the run: exit status 70", "client"),
        ),
        (
            MachineEnded("server", "the ssh connection to host b is lost: Broken pipe", lost=True),
            Failed("the ssh connection to host b is lost: Broken pipe", "server"),
        ),
        (
            GuestExceeded("server", "it wrote more than 2 GiB to samples"),
            Failed("it wrote more than 2 GiB to samples", "server", whose="run"),
        ),
        (
            Hung(15.2, ("server",)),
            Failed("hung: no progress for 15 s, all others wait for server", "server"),
        ),
        (
            Hung(15.2, ("a", "b")),
            Failed("hung: no progress for 15 s, all others wait for a, b"),
        ),
    ],
)
def test_what_ends_a_run_at_once(event: Event, verdict: Failed) -> None:
    assert after(event) == verdict


PANIC = MachinePanicked("server", "PANIC: page fault")
ERROR, JOB = GuestFailed("server", "echo-server failed: signal 11"), JobDone("client", 1)
BY_ERROR = Failed("echo-server failed: signal 11", "server", whose="run")
BY_JOB = Failed("its job failed: status 1", "client", whose="run")
END = (FabricFinished(7), FabricEnded(0))
"""Of the fabric, at an instant of virtual time."""


@pytest.mark.parametrize(("event", "failed"), [(ERROR, BY_ERROR), (JOB, BY_JOB)])
def test_a_run_whose_guest_fails_goes_on_to_its_end_or_a_while(event: Event, failed: Failed) -> None:
    assert after(event, seconds=FAILING_S - 0.1) is None
    assert after(event, seconds=FAILING_S) == failed
    assert after(event, *END) == replace(failed, virtual_ns=7)
    assert after(FabricFinished(7), event, FabricEnded(0)) == replace(failed, virtual_ns=7)


@pytest.mark.parametrize("event", [MachineEnded("client", "killed"), FabricEnded(4), PANIC, Hung(9.0, ("client",))])
def test_whatever_ends_a_run_that_is_failing_the_verdict_is_its_failure(event: Event) -> None:
    assert after(ERROR, event, seconds=PANIC_S) == BY_ERROR


@pytest.mark.parametrize(
    ("line", "programs", "message"),
    [
        ("Power down", ("get",), "program get powered the machine off"),
        ("Restarting system", ("get", "web"), "a program restarted the machine; its programs: get, web"),
        ("System halted", (), "a program halted the machine"),
    ],
)
def test_a_machine_that_a_program_stopped_is_not_reported_as_a_crash(
    line: str, programs: tuple[str, ...], message: str
) -> None:
    stopped = MachineStopped("server", line, programs)
    failed = Failed(message, "server", whose="run")
    assert after(stopped) is None
    assert after(stopped, MachineEnded("server", "killed by SIGSEGV")) == failed
    assert after(stopped, seconds=PANIC_S) == failed, "a machine that is halted has no end"


UNLUCKY = GuestFailed("client", "echo-client failed: no answer for the server's port", gave_up=True)


@pytest.mark.parametrize(
    ("events", "named"),
    [
        (
            [JobDone("client", 1, "raw-client ended with status 4")],
            "client: its job failed: raw-client ended with status 4",
        ),
        ([JOB, JobDone("server", 1)], "client: its job failed: status 1"),
        ([ERROR, JOB], "client: its job failed: status 1"),
        ([ERROR, JobDone("server", 1), JOB], "server: echo-server failed: signal 11"),
        ([UNLUCKY, JOB], "client: echo-client failed: no answer for the server's port"),
        ([UNLUCKY, JOB, ERROR], "server: echo-server failed: signal 11"),
        ([GuestFailed("b", "of b"), GuestFailed("a", "of a")], "a: of a"),
        ([GuestFailed("a", "first"), GuestFailed("a", "second")], "a: first"),
    ],
)
def test_the_first_job_that_failed_and_its_first_error_are_named_whenever_they_were_read(
    events: list[Event], named: str
) -> None:
    verdict = after(*events, *END)
    assert isinstance(verdict, Failed)
    assert f"{verdict.machine}: {verdict.message}" == named


def test_what_guests_wrote_last_counts() -> None:
    supervisor = Supervisor()
    for event in END:
        supervisor.handle(event, 1.0)
    assert supervisor.settled([], 1.0) == Finished(7)
    assert supervisor.settled([ERROR], 1.0) == replace(BY_ERROR, virtual_ns=7)


GAVE_UP = Failed("its kernel panicked: PANIC: page fault", "server", whose="run")


def test_a_panic_is_told_when_the_machine_has_said_where() -> None:
    assert after(PANIC) is None
    assert after(PANIC, MachineEnded("server", "shut down")) == GAVE_UP
    assert after(PANIC, seconds=PANIC_S) == GAVE_UP


def test_a_panic_is_the_cause_of_what_follows_it() -> None:
    assert after(PANIC, MachineEnded("client", "killed"), FabricEnded(4, "ring broken")) is None
    assert after(PANIC, Hung(20.0, ("client",)), MachineEnded("server", "shut down")) == GAVE_UP


@pytest.mark.parametrize("event", [Tick(), JobDone("client", 0), MachineEnded("client", "exit status 0", "finished")])
def test_what_does_not(event: Event) -> None:
    assert after(event, seconds=1000.0) is None


def test_finished_once_the_fabric_has_gone() -> None:
    assert after(FabricFinished(7)) is None
    assert after(FabricFinished(7), FabricEnded(0)) == Finished(7)


def test_a_run_that_came_to_its_deadline_says_which_machines_were_late() -> None:
    assert after(FabricFinished(7, ("client",)), FabricEnded(0)) == Finished(7, ("client",))


PASSED = "the scenario's deadline of 0.4 s passed;"


@pytest.mark.parametrize(
    ("late", "failed"),
    [
        (("client",), Failed(f"{PASSED} still waiting for client", "client", whose="run")),
        (("a", "b"), Failed(f"{PASSED} still waiting for a, b", whose="run")),
    ],
)
def test_late_machines_are_named_and_one_of_them_is_to_blame(late: tuple[str, ...], failed: Failed) -> None:
    assert too_late(400_000_000, Finished(7, late)) == replace(failed, virtual_ns=7)


def test_a_machine_that_goes_while_the_fabric_finishes_is_no_failure() -> None:
    assert after(FabricFinished(7), MachineEnded("client", "destroyed"), Hung(15, ()), FabricEnded(0)) == Finished(7)


def test_a_fabric_that_fails_while_it_finishes_has_failed() -> None:
    verdict = after(FabricFinished(7), FabricEnded(5, "no space"))
    assert isinstance(verdict, Failed)
    assert verdict.disk_full


def test_a_fabric_that_does_not_end_is_not_waited_for() -> None:
    assert after(FabricFinished(7), seconds=FINISH_S - 0.1) is None
    assert isinstance(after(FabricFinished(7), seconds=FINISH_S), Failed)


def test_the_culprit_is_named_and_not_its_victim() -> None:
    victim, culprit = MachineEnded("client", "exit status 3", "aborted"), MachineEnded("server", "killed by SIGKILL")
    assert after(victim) is None
    verdict = after(victim, culprit)
    assert isinstance(verdict, Failed)
    assert verdict.machine == "server"


def test_a_fabric_that_a_machine_ended_is_a_victim() -> None:
    victim, culprit = FabricEnded(VICTIM_STATUS, "server: QEMU ended the run"), MachineEnded("server", "70, broken")
    assert after(victim) is None
    assert after(victim, culprit) == Failed("the machine ended before the run: 70, broken", "server")
    verdict = after(victim, seconds=VICTIM_S)
    assert verdict == Failed("ended before the run, with status 6: server: QEMU ended the run", "fabric")


def test_a_victim_without_culprit_is_named_after_a_while() -> None:
    victim = MachineEnded("client", "exit status 3", "aborted")
    assert after(victim, seconds=VICTIM_S - 0.1) is None
    verdict = after(victim, seconds=VICTIM_S)
    assert isinstance(verdict, Failed)
    assert verdict.machine == "client"


def test_verdict_is_final() -> None:
    supervisor = Supervisor()
    first = supervisor.handle(FabricEnded(4), 0)
    assert supervisor.phase is Phase.OVER
    assert supervisor.handle(FabricFinished(7), 1) is first
    assert supervisor.handle(FabricEnded(0), 2) is first
