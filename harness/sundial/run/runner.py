# SPDX-License-Identifier: Apache-2.0
"""One run: brought up, watched to its end, collected into its directory.

After a failure the machines are taken down, complete results of the guests are kept, the error is written to run.json,
and the directory is renamed; then the error is raised.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from queue import Empty
from typing import Any

from sundial.errors import BadInput, RunFailed, SundialError
from sundial.machines.hypervisor import LifecycleEvent
from sundial.machines.shm import read_progress
from sundial.model.catalog import shown
from sundial.model.scenario import Scenario
from sundial.model.topology import Clock
from sundial.plan.build import Plan, plan_run
from sundial.plan.request import CALM, Progress, RunRequest, RunResult, Standing, Stops
from sundial.run import certification
from sundial.run.bringup import BringUp, Order, State
from sundial.run.checker import run_check
from sundial.run.directory import RunFolder, claim_exactly, claim_in, disk_full_is_a_failure
from sundial.run.guestfiles import look_at_all
from sundial.run.interrupts import Interrupts
from sundial.run.needs import require_for, require_of_images
from sundial.run.rig import ordered
from sundial.run.session import Session, open_session
from sundial.run.supervisor import (
    OFF,
    Event,
    FabricStands,
    Failed,
    JobDone,
    MachineStopped,
    Supervisor,
    Tick,
    Verdict,
    too_late,
)
from sundial.run.watch import GuestWatch, real_signs, virtual_signs
from sundial.run.watchdog import SignsReader, Watchdog

TICK_S = 0.1
SIGNS_S = 1.0
LEAVE_S = 3.0
NS_PER_S = 10**9


def run(
    request: RunRequest,
    progress: Progress,
    *,
    start_order: Sequence[str] = (),
    session: Session | None = None,
    watchdog: Watchdog | None = None,
) -> RunResult:
    """Make one run; `start_order` names machines to start first.

    Raises BadInput before anything is started; HostLacks; RunFailed with the machine and its console's last lines;
    Interrupted. The last two leave a run directory with the error, or a complete one if the machines had ended. An
    emulator that is not known yet is certified first, if time is virtual.
    """
    ordered(request.experiment.network.nodes, start_order)
    require_for(request.experiment.network)
    interrupts = Interrupts()
    with interrupts.taken():
        live = session or open_session(request.connect)
    if request.experiment.clock == "virtual" and request.trial is None:
        certification.require(live, progress, run)
    with interrupts.taken():
        bring_up = BringUp(order_of(request, start_order), live, interrupts, progress.say)
        scenario = request.experiment.scenario
        watchdog = watchdog or Watchdog()
        made = Run(bring_up, interrupts, scenario, progress, watchdog, request.while_running, request.stops).make()
    expect = scenario.expect
    # A run that stands is made again from one that was checked.
    if expect.check is not None and request.stops is None:
        progress.say("checking the run")
        run_check(made.path, expect.check, expect.check_timeout / NS_PER_S)
    return made


def order_of(request: RunRequest, start_order: Sequence[str]) -> Order:
    """The order to bring up the run's topology."""
    experiment = request.experiment

    def claim(nodes: list[str]) -> RunFolder:
        if request.out is not None:
            return claim_exactly(request.out.absolute(), nodes)
        stem = f"{experiment.scenario.name}-{experiment.network.name}-{experiment.seed}"
        return claim_in(request.captures.absolute(), stem, nodes)

    return Order(
        network=experiment.network,
        clock=experiment.clock,
        accelerator=experiment.topology.accelerator,
        seed=experiment.seed,
        plan=lambda paths: plan_run(experiment, paths),
        claim=claim,
        scenario=experiment.scenario_json(),
        topology=experiment.topology_json(),
        command=request.command,
        cold=request.cold,
        start_order=start_order,
        images=request.images,
        recipe=request.recipe,
        stirring=request.trial or CALM,
        check_images=lambda images: require_of_images(experiment, images),
    )


class Run:
    """One run in its directory."""

    def __init__(
        self,
        bring_up: BringUp,
        interrupts: Interrupts,
        scenario: Scenario,
        progress: Progress,
        watchdog: Watchdog,
        while_running: Callable[[], AbstractContextManager[None]],
        stops: Stops | None = None,
    ) -> None:
        self._bring_up = bring_up
        self._interrupts = interrupts
        self._while_running = while_running
        self._stops = stops
        self._scenario = scenario.name
        self._failures_allowed = scenario.expect.failures == "allowed"
        self._progress = progress
        self._watchdog = watchdog
        self._plan = bring_up.plan
        self._rig = bring_up.rig
        self._files = bring_up.files
        self._not_done = list(bring_up.plan.done_machines)
        self._off: set[str] = set()

    def make(self) -> RunResult:
        """The run from its first write to its last rename."""
        error: SundialError | None = None
        virtual_ns: int | None = None
        try:
            with disk_full_is_a_failure():
                virtual_ns = self._live()
        except Exception as happened:
            error = self._bring_up.known(happened)
        finally:
            error = self._bring_up.end(error)
        if isinstance(error, BadInput):
            # Functions to trace are looked up in a guest before any machine of the run starts.
            self._bring_up.forget()
            raise error
        final, error, wall_s = self._bring_up.conclude(error, virtual_ns, collect=True)
        error = error or self._interrupts.late
        if error is not None:
            error.hint = error.hint or f"partial results are in {shown(final)}"
            if isinstance(error, RunFailed):
                error.folder = final
            raise error
        assert virtual_ns is not None
        return RunResult(final, virtual_ns, wall_s, self._rig.clocks, self._rig.memories)

    def _live(self) -> int:
        """Bring up and watch to the end. Returns the run's length. Raises RunFailed, Interrupted."""
        self._bring_up.transition(State.PAUSED)
        self._progress.say(f"running {self._scenario} on {self._plan.network.name}")
        if self._stops is not None:
            self._stop_at(self._stops.first_ns)
        self._bring_up.transition(State.RUNNING)
        supervisor = Supervisor()
        with self._while_running():
            verdict = self._watch(supervisor)
        if verdict.virtual_ns is not None:
            self._wait_left()
            verdict = supervisor.settled(self._look(), time.monotonic())
        if isinstance(verdict, Failed):
            raise _failure(verdict, self._plan.clock)
        if verdict.late:
            raise _failure(too_late(self._plan.fabric["deadline_ns"], verdict), self._plan.clock)
        return verdict.virtual_ns

    def _look(self) -> list[Event]:
        """What guests have written of themselves since the last look."""
        found: list[Event] = [*look_at_all(self._files, may_give_up=self._failures_allowed)]
        return [replace(each, programs=self._programs(each.machine)) if isinstance(each, MachineStopped) else each
                for each in found]  # fmt: skip

    def _programs(self, machine: str) -> tuple[str, ...]:
        """Names of the programs in a machine's job."""
        steps = self._plan.jobs[machine].steps
        return tuple(each["name"] for step in steps for each in step.options.get("programs") or ())

    def _watch(self, supervisor: Supervisor) -> Verdict:
        """The loop: events in their order, and regular checks of the guests' files."""
        signs = self._signs()
        guests = GuestWatch(self._rig.machines, self._files if self._plan.clock == "real" else [])
        looked = 0.0
        while True:
            event = self._next()
            now = time.monotonic()
            # First the guests' output: it has the reason, while the event has only the fact.
            found = self._look()
            if event is not None:
                found.append(self._explained(event))
            if now - looked >= SIGNS_S:
                looked = now
                seen = signs()
                self._show(seen.virtual_ns)
                self._rig.look_for_cores()
                hung = self._watchdog.look(seen, now) or guests.look(now)
                found += [] if hung is None else [hung]
            for each in found or [Tick()]:
                verdict = supervisor.handle(each, now)
                if verdict is not None:
                    return verdict

    def _next(self) -> Event | None:
        """The next event for the supervisor; None after a moment without one."""
        try:
            event = self._bring_up.queue.get(timeout=TICK_S)
        except Empty:
            return None
        if isinstance(event, LifecycleEvent):
            ended = self._rig.ended(event)
            if ended is not None and ended.report == OFF:
                self._off.add(ended.machine)
            return ended
        if isinstance(event, FabricStands) and self._stops is not None:
            self._stop_at(self._stops.stand(self._standing(event.at_ns)))
        if isinstance(event, JobDone) and event.status == 0 and event.machine in self._not_done:
            self._not_done.remove(event.machine)
        return event

    def _stop_at(self, at_ns: int | None) -> None:
        assert self._rig.fabric is not None
        self._rig.fabric.until(at_ns)

    def _standing(self, at_ns: int) -> Standing:
        progress = read_progress(self._plan.paths.shm)
        assert progress is not None
        names = [node.name for node in self._plan.network.nodes]
        machines = zip(names, progress.machines, strict=True)
        clocks_ns = {name: each.own_ns for name, each in machines if not each.finished}

        def qmp(machine: str, command: str, **arguments: Any) -> Any:
            if machine not in clocks_ns:
                raise BadInput(f"machine {machine!r} is off then", field="--gdb", allowed=", ".join(clocks_ns))
            return self._rig.machines[machine].qmp(command, **arguments)

        def kernel_functions(machine: str, application: str) -> list[tuple[int, str]]:
            return self._rig.kernel_functions(machine, application, self._progress.say)

        return Standing(at_ns, clocks_ns, self._bring_up.folder.path, self._rig.folder, qmp, kernel_functions)

    def _explained(self, event: Event) -> Event:
        """An event with what the guest has written of it."""
        if not isinstance(event, JobDone):
            return event
        file = next(file for file in self._files if file.machine == event.machine)
        return replace(event, failed=file.failed_step)

    def _signs(self) -> SignsReader:
        if self._plan.clock == "virtual":
            return virtual_signs(self._plan.paths.shm, self._files, self._rig.machines)
        fabric = self._rig.fabric
        assert fabric is not None
        return real_signs(fabric.counters, self._files, lambda: self._not_done, self._rig.machines)

    def _show(self, virtual_ns: int | None) -> None:
        batches = sum(file.batches for file in self._files)
        expected = max(1, expected_batches(self._plan))
        where = "" if virtual_ns is None else f"{virtual_ns / 1e9:.1f} s simulated"
        self._progress.share(min(batches / expected, 0.99), where)

    def _wait_left(self) -> None:
        """Machines under virtual time end by themselves, with a last report; under the real clock they are ended."""
        if self._plan.clock != "virtual":
            return
        left = self._rig.machines.keys() - self._off
        end = time.monotonic() + LEAVE_S
        while left and (remaining := end - time.monotonic()) > 0:
            with contextlib.suppress(Empty):
                event = self._bring_up.queue.get(timeout=remaining)
                if isinstance(event, LifecycleEvent) and self._rig.ended(event) is not None:
                    left.discard(event.machine)


def _failure(failed: Failed, clock: Clock) -> RunFailed:
    hint = "free some space, or choose another place with --out" if failed.disk_full else None
    if clock == "real":
        return RunFailed(failed.message, machine=failed.machine, hint=hint)
    return RunFailed(failed.message, machine=failed.machine, hint=hint, whose=failed.whose, end_ns=failed.virtual_ns)


def expected_batches(plan: Plan) -> int:
    """Number of batches of calls in the jobs, for progress."""
    return sum(_batches(step.options) for job in plan.jobs.values() for step in job.steps)


def _batches(options: Mapping[str, Any]) -> int:
    """Batches of a step: one for each of its functions or sizes."""
    return len(options.get("functions") or options.get("sizes") or [0])
