# SPDX-License-Identifier: Apache-2.0
"""Guests that hang while they boot: for a snapshot, or to be kept up. Clock and machines are fakes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

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
from sundial.run.keeper_main import watch_boot
from sundial.run.snapshotting import SnapshotMaker
from sundial.run.supervisor import Hung
from sundial.run.watch import real_signs
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
    boot = Boot(Path("/qemu"), Path("/kernel"), Path("/initrd"), "")
    maker = SnapshotMaker(stage.session, plan, plan.network.nodes[0], boot, False, clock)
    with pytest.raises(RunFailed, match="client: making its snapshot: hung: nothing has moved for"):
        maker.make(folder / "state")
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
    with pytest.raises(RunFailed, match=r"^server: hung while booting: nothing has moved for 15 s"):
        watch_boot(machines, waited_for, clock)
    assert clock.now() < 25.0
    assert [machine.state() for machine in machines.values()] == [MachineState.PAUSED, MachineState.GONE]


def test_a_kept_guest_that_panics_while_it_boots_is_named(tmp_path: Path) -> None:
    _, machines, waited_for = kept(tmp_path)
    (tmp_path / "server" / "console.log").write_text("Kernel panic - not syncing: no init\n")
    with pytest.raises(RunFailed, match=r"^server: its kernel gave up: Kernel panic - not syncing: no init"):
        watch_boot(machines, waited_for, ManualClock())


def test_a_guest_that_boots_is_not_kept_alive_by_one_that_calls_it(tmp_path: Path) -> None:
    _, machines, files = kept(tmp_path)
    (tmp_path / "client" / "samples.jsonl").write_text('{"type":"hello"}\n')
    for name, file in files.items():
        machines[name].used_s = 2.0
        file.look()
    frames = iter(range(100))
    counters = lambda: {"segments": {"lan": {"ports": {"client:eth0": {"tx_frames": next(frames)}}}}}  # noqa: E731
    signs = real_signs(counters, list(files.values()), lambda: ["client"], machines)
    watchdog = Watchdog(15.0)
    hung = [watchdog.look(signs(), float(second)) for second in range(16)]
    assert hung[:15] == [None] * 15
    assert hung[15] == Hung(15.0, ("server",))


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
