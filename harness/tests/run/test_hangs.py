# SPDX-License-Identifier: Apache-2.0
"""Guests that hang: while they boot for a snapshot or to be kept up, and later under the real clock. Clock and machines
are fakes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import RunFailed
from sundial.machines.fake import FakeHypervisor, FakeMachine
from sundial.machines.hypervisor import MachineState
from sundial.machines.reaper import processor_s
from sundial.machines.waiting import ManualClock
from sundial.model.load import load_experiments
from sundial.plan.build import Boot, plan_run
from sundial.plan.paths import RunPaths
from sundial.run.guestfiles import GuestFiles
from sundial.run.keeper_main import end_hung, failure_of, panics, watch_boot
from sundial.run.snapshotting import SnapshotMaker
from sundial.run.supervisor import Hung
from sundial.run.watch import GuestWatch, real_signs
from sundial.run.watchdog import Watchdog
from tests.run.stage import Stage

STANDS: Callable[[float], float] = lambda now: min(now, 3.0)  # noqa: E731
SPINS: Callable[[float], float] = lambda now: now  # noqa: E731


@pytest.mark.parametrize(("used", "within"), [(STANDS, 20.0), (SPINS, 26.0)])
def test_a_boot_for_a_snapshot_that_hangs_is_given_up(
    stage: Stage, used: Callable[[float], float], within: float
) -> None:
    def pass_time(now: float) -> None:
        for machine in stage.hypervisor.machines.values():
            machine.used_s = used(now)

    clock = ManualClock(on_pause=pass_time)
    (experiment,) = load_experiments("quickstart", topology="two-hosts-10base-t")
    folder = stage.session.folder()
    plan = plan_run(experiment, RunPaths(folder, folder, stage.session.shm()))
    boot = Boot(Path("/qemu"), Path("/kernel"), Path("/initrd"), "", "k" * 64, "i" * 64)
    maker = SnapshotMaker(stage.session, plan, plan.network.nodes[0], boot, False, clock)
    with pytest.raises(RunFailed, match="client: making its snapshot: hung: no progress for"):
        maker.make(folder)
    assert clock.now() <= within
    (machine,) = stage.hypervisor.machines.values()
    assert machine.state() is MachineState.GONE


def kept(folder: Path) -> tuple[FakeHypervisor, dict[str, FakeMachine], dict[str, GuestFiles]]:
    hypervisor = FakeHypervisor()
    names = ("client", "server")
    for name in names:
        (folder / name).mkdir()
    machines = {name: hypervisor.start(name, "") for name in names}
    return hypervisor, machines, {name: GuestFiles(name, folder / name) for name in names}


def test_a_kept_guest_that_hangs_while_it_boots_is_named_and_ended(tmp_path: Path) -> None:
    _, machines, waited_for = kept(tmp_path)

    def pass_time(now: float) -> None:
        machines["client"].used_s = machines["server"].used_s = min(now, 4.0)
        if now > 5.0:
            waited_for.pop("client", None)  # it answers

    machines["client"].used_s = machines["server"].used_s = 0.0
    clock = ManualClock(on_pause=pass_time)
    with pytest.raises(RunFailed, match=r"^server: hung while booting: no progress for 15 s"):
        watch_boot(machines, waited_for, clock)
    assert clock.now() < 25.0
    assert [machine.state() for machine in machines.values()] == [MachineState.PAUSED, MachineState.GONE]


def test_a_kept_guest_that_panics_while_it_boots_is_named(tmp_path: Path) -> None:
    _, machines, waited_for = kept(tmp_path)
    (tmp_path / "server" / "console.log").write_text("Kernel panic - not syncing: no init\n")
    with pytest.raises(RunFailed, match=r"^server: its kernel panicked: Kernel panic - not syncing: no init"):
        watch_boot(machines, waited_for, ManualClock())


def frames(numbers: Iterable[int]) -> Callable[[], dict[str, Any]]:
    """The fabric's counters as they go on."""
    sent = iter(numbers)
    return lambda: {"segments": {"lan": {"ports": {"client:eth0": {"tx_frames": next(sent)}}}}}


def test_a_guest_that_boots_is_not_kept_alive_by_one_that_calls_it(tmp_path: Path) -> None:
    _, machines, files = kept(tmp_path)
    (tmp_path / "client" / "samples.jsonl").write_text('{"type":"hello"}\n')
    for name, file in files.items():
        machines[name].used_s = 2.0
        file.look()
    signs = real_signs(frames(range(100)), list(files.values()), lambda: ["client"], machines)
    watchdog = Watchdog(15.0)
    hung = [watchdog.look(signs(), float(second)) for second in range(16)]
    assert hung[:15] == [None] * 15
    assert hung[15] == Hung(15.0, ("server",))


def say(folder: Path, file: GuestFiles, line: str) -> None:
    with (folder / file.machine / "samples.jsonl").open("a") as stream:
        stream.write(line + "\n")
    file.look()


@pytest.mark.parametrize("used", [STANDS, SPINS])
def test_a_guest_that_hangs_is_found_though_its_peer_goes_on(tmp_path: Path, used: Callable[[float], float]) -> None:
    _, machines, files = kept(tmp_path)
    guests = GuestWatch(machines, list(files.values()))
    say(tmp_path, files["server"], '{"type":"hello"}')
    found = []
    for second in range(31):
        say(tmp_path, files["client"], "[0,1,2,0,9,7,null]")
        machines["client"].used_s = machines["server"].used_s = used(float(second))
        found.append(guests.look(float(second)))
    assert {hung.suspects for hung in found if hung is not None} == {("server",)}


def test_guests_that_only_say_that_they_are_alive_may_wait_while_the_fabric_answers(tmp_path: Path) -> None:
    _, machines, files = kept(tmp_path)
    guests = GuestWatch(machines, list(files.values()))
    answers = itertools.chain([frames([5] * 45)] * 45, itertools.repeat(dict))
    signs = real_signs(lambda: next(answers)(), list(files.values()), lambda: ["client"], machines)
    together = Watchdog()
    found = []
    for second in range(61):
        for name, file in files.items():
            machines[name].used_s = second / 20
            if second % 5 == 0:
                say(tmp_path, file, '{"type":"alive"}' if second else '{"type":"hello"}')
        assert guests.look(float(second)) is None
        found.append(together.look(signs(), float(second)))
    assert found[:60] == [None] * 60
    assert found[60] == Hung(15.0, ("fabric",))


def test_a_kept_guest_that_hangs_is_ended_and_the_others_stay(tmp_path: Path) -> None:
    _, machines, files = kept(tmp_path)
    guests = GuestWatch(machines, list(files.values()))
    ended: dict[str, str] = {}
    for second in range(61):
        machines["client"].used_s = machines["server"].used_s = 3.0
        if second % 5 == 0:
            say(tmp_path, files["client"], '{"type":"alive"}')
        became = end_hung(machines, list(files.values()), guests, float(second))
        for name in became:
            guests.forget(name)
        ended |= became
    assert ended == {"server": "hung: no progress for 15 s"}
    assert [machine.state() for machine in machines.values()] == [MachineState.PAUSED, MachineState.GONE]


def test_what_went_wrong_with_kept_guests_is_said_of_each(tmp_path: Path) -> None:
    _, _, files = kept(tmp_path)
    assert failure_of(panics(list(files.values()))) is None
    (tmp_path / "server" / "console.log").write_text("PANIC: a page has too many users\nat:\n")
    found = {**panics(list(files.values())), "client": "the machine ended: killed by SIGKILL"}
    error = failure_of(found)
    assert error is not None
    assert (error.machine, error.exit_code) == ("server", 4)
    assert str(error) == (
        "server: its kernel panicked: PANIC: a page has too many users; client: the machine ended: killed by SIGKILL"
    )


def test_nobody_waited_for_is_no_hang(tmp_path: Path) -> None:
    clock = ManualClock()
    watch_boot({}, {}, clock)
    assert clock.now() == 0.0


def test_processor_time_is_that_of_the_process() -> None:
    before = processor_s(os.getpid())
    assert before is not None
    sum(number * number for number in range(2_000_000))
    after = processor_s(os.getpid())
    assert after is not None
    assert before < after <= sum(os.times()[:2]) + 0.1
    assert processor_s(2**22 + 1) is None
