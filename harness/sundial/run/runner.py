# SPDX-License-Identifier: Apache-2.0
"""One run: images and snapshots, fabric and machines up, watched to its end, collected into its directory.

    plan -> images -> snapshots -> run directory -> fabric -> machines -> loop -> take down -> collect -> rename

Whatever goes wrong after the run directory is there, the machines are taken down, what the guests finished is kept, and
the directory is renamed with what happened in its run.json; then the error is raised.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from sundial.errors import BadInput, Interrupted, RunFailed, SundialError
from sundial.machines.accelerator import Chosen
from sundial.machines.hypervisor import LifecycleEvent
from sundial.machines.images import Image, Images
from sundial.plan.build import Plan, plan_run
from sundial.plan.paths import RunPaths
from sundial.plan.request import Progress, RunRequest, RunResult
from sundial.run import record
from sundial.run.collect import capture_hashes, collect_samples, collect_what_is_there
from sundial.run.directory import RunFolder, claim_exactly, claim_in, disk_full_is_a_failure
from sundial.run.guestfiles import GuestFiles
from sundial.run.interrupts import Interrupts
from sundial.run.rig import Queue, Rig, ordered
from sundial.run.session import Session, open_session
from sundial.run.supervisor import (
    DeadlinePassed,
    Event,
    Failed,
    JobDone,
    Supervisor,
    Tick,
    Verdict,
)
from sundial.run.watch import GuestWatch, real_signs, virtual_signs
from sundial.run.watchdog import SignsReader, Watchdog

TICK_S = 0.1
SIGNS_S = 1.0
LEAVE_S = 3.0
SOCKET_PATH_MOST = 107


def run(
    request: RunRequest,
    progress: Progress,
    *,
    start_order: Sequence[str] = (),
    session: Session | None = None,
    watchdog: Watchdog | None = None,
) -> RunResult:
    """Make one run; `start_order` names machines to be started first.

    Raises BadInput before anything is started; HostLacks; RunFailed with the machine and its console's last lines;
    Interrupted. The last two leave a run directory that says so.
    """
    began = time.monotonic()
    ordered(request.experiment.network.nodes, start_order)
    interrupts = Interrupts()
    with interrupts.taken():
        live = session or open_session(request.connect)
        images = _images(live, request, progress)
        accelerator = live.accelerator(request.experiment.clock, request.experiment.topology.accelerator, images)
        folder = live.folder()
        # The plan wants the run directory, whose name is claimed last of all: what can be refused is refused before.
        checked = plan_run(request.experiment, RunPaths(Path("/"), folder, live.shm_folder / "x"))
        _check_sockets(checked)
        progress.say("preparing the guests")
        document = _record(request, live, images, accelerator)
        with disk_full_is_a_failure():
            claimed = _claim(request)
        live.guard.rename_on_death(claimed.path, claimed.final)
        paths = RunPaths(claimed.wire.resolve(), folder, live.shm())
        plan = plan_run(request.experiment, paths)
        attempt = Attempt(
            request,
            live,
            plan,
            images,
            document,
            claimed,
            progress,
            interrupts,
            start_order,
            watchdog or Watchdog(),
            accelerator,
        )
        return attempt.make(began)


def _images(session: Session, request: RunRequest, progress: Progress) -> dict[str, Image]:
    known = Images(session.places.checkout)
    names = dict.fromkeys(node.image for node in request.experiment.network.nodes)
    return {name: known.ensure(name, progress.say) for name in names}


def _record(request: RunRequest, session: Session, images: dict[str, Image], accelerator: Chosen) -> record.RunRecord:
    experiment = request.experiment
    return record.RunRecord(
        network=experiment.network,
        scenario=experiment.scenario_json(),
        topology=experiment.topology_json(),
        seed=experiment.seed,
        clock=experiment.clock,
        accelerator=accelerator,
        images=images,
        versions=record.versions(session.places, session.hypervisor.versions(), images),
        command=request.command,
    )


def _claim(request: RunRequest) -> RunFolder:
    experiment = request.experiment
    nodes = [node.name for node in experiment.network.nodes]
    if request.out is not None:
        return claim_exactly(request.out.absolute(), nodes)
    stem = f"{experiment.scenario.name}-{experiment.network.name}-{experiment.seed}"
    return claim_in(request.captures.absolute(), stem, nodes)


def _check_sockets(plan: Plan) -> None:
    for nic in plan.network.nics():
        for path in (plan.paths.machine_end(nic), plan.paths.fabric_end(nic)):
            if len(str(path).encode()) > SOCKET_PATH_MOST:
                raise BadInput(
                    f"the name of machine {nic.machine!r} is too long for a socket's path",
                    allowed=f"{len(nic.machine) - len(str(path).encode()) + SOCKET_PATH_MOST} letters",
                )


@dataclass
class Attempt:
    """One run in its directory."""

    request: RunRequest
    session: Session
    plan: Plan
    images: dict[str, Image]
    document: record.RunRecord
    folder: RunFolder
    progress: Progress
    interrupts: Interrupts
    start_order: Sequence[str]
    watchdog: Watchdog
    accelerator: Chosen

    def make(self, began: float) -> RunResult:
        """The run from its first write to its last rename."""
        self.queue: Queue = SimpleQueue()
        self.rig = Rig(
            self.session,
            self.plan,
            self.images,
            self.plan.paths.sockets,
            self.folder.node,
            self.queue,
            cold=self.request.cold,
            interactive=False,
            kvm=self.accelerator == "kvm",
        )
        self.files = [GuestFiles(node.name, self.folder.node(node.name)) for node in self.plan.network.nodes]
        self.not_done = list(self.plan.done_machines)
        error: SundialError | None = None
        bug: Exception | None = None
        virtual_ns: int | None = None
        try:
            with disk_full_is_a_failure():
                self.folder.write_json("run.json", self.document.to_json())
                virtual_ns = self._live()
        except SundialError as happened:
            error = happened
        except Exception as happened:
            bug = happened
            error = RunFailed(f"an error of sundial's own: {type(happened).__name__}: {happened}")
        finally:
            self.interrupts.cleaning_begins()
            self._remember_zeros()
            self.rig.take_down(hurry=self.interrupts.hurry)
        try:
            return self._finish(error, virtual_ns, began)
        except RunFailed:
            if bug is not None:
                raise bug from None
            raise

    def _live(self) -> int:
        """Up and watched to the end; the run's length. Raises RunFailed, Interrupted."""
        snapshots = self.rig.prepare(self.progress.say)
        self.rig.start_fabric()
        self.rig.start_machines(snapshots, self.start_order)
        self.progress.say(f"running {self.request.experiment.scenario.name} on {self.plan.network.name}")
        self.rig.resume(self.start_order)
        verdict = self._watch()
        if isinstance(verdict, Failed):
            raise self._failure(verdict)
        self._wait_left()
        return verdict.virtual_ns

    def _watch(self) -> Verdict:
        """The loop: events in the order in which they come, a look at the guests' files now and then."""
        supervisor = Supervisor()
        signs = self._signs()
        guests = GuestWatch(self.rig.machines, self.files if self.plan.clock == "real" else [])
        deadline = Deadline(self.plan, time.monotonic())
        looked = 0.0
        while True:
            event = self._next()
            now = time.monotonic()
            # First what the guests wrote: it says why, where the event says only that.
            found: list[Event] = [bad for file in self.files for bad in file.look()]
            if event is not None:
                found.append(event)
            if now - looked >= SIGNS_S:
                looked = now
                seen = signs()
                self._tell(seen.virtual_ns)
                hung = self.watchdog.look(seen, now) or guests.look(now)
                late = deadline.look(seen.virtual_ns, now, self.not_done)
                found += [event for event in (late, hung) if event is not None]
            for each in found or [Tick()]:
                verdict = supervisor.handle(each, now)
                if verdict is not None:
                    return verdict

    def _next(self) -> Event | None:
        """The next event, as the supervisor knows them; None when nothing came for a moment."""
        try:
            event = self.queue.get(timeout=TICK_S)
        except Empty:
            return None
        if isinstance(event, LifecycleEvent):
            return self.rig.ended(event)
        if isinstance(event, JobDone) and event.status == 0 and event.machine in self.not_done:
            self.not_done.remove(event.machine)
        return event

    def _signs(self) -> SignsReader:
        if self.plan.clock == "virtual":
            return virtual_signs(self.plan.paths.shm, self.files, self.rig.machines)
        fabric = self.rig.fabric
        assert fabric is not None
        return real_signs(fabric.counters, self.files, lambda: self.not_done, self.rig.machines)

    def _tell(self, virtual_ns: int | None) -> None:
        batches = sum(file.batches for file in self.files)
        wanted = max(1, expected_batches(self.plan))
        where = "" if virtual_ns is None else f"{virtual_ns / 1e9:.1f} s on the wire's clock"
        self.progress.share(min(batches / wanted, 0.99), where)

    def _failure(self, failed: Failed) -> RunFailed:
        name = failed.machine
        lines = self.rig.console_tail(name) if name in self.rig.machines else ()
        hint = "free some space, or choose another place with --out" if failed.disk_full else None
        return RunFailed(failed.message, machine=name, console_tail=lines, hint=hint)

    def _wait_left(self) -> None:
        """Machines under virtual time leave by themselves, with a last report; those of the real clock are ended."""
        if self.plan.clock != "virtual":
            return
        left = set(self.rig.machines)
        end = time.monotonic() + LEAVE_S
        while left and (remaining := end - time.monotonic()) > 0:
            with contextlib.suppress(Empty):
                event = self.queue.get(timeout=remaining)
                if isinstance(event, LifecycleEvent) and self.rig.ended(event) is not None:
                    left.discard(event.machine)

    def _remember_zeros(self) -> None:
        for node in self.plan.network.nodes:
            self.document.zero(node.name, self.rig.zero_ns(node.name))

    def _finish(self, error: SundialError | None, virtual_ns: int | None, began: float) -> RunResult:
        """Write down what became of it, give the directory its name, and raise the error if there was one."""
        counters = record.read_counters(self.folder.wire)
        wall_s = time.monotonic() - began
        self.folder.give_up_reserve()
        try:
            with disk_full_is_a_failure():
                self._write("complete", None, virtual_ns, wall_s, counters)
                if error is None:
                    self.progress.say("collecting samples")
                    collect_samples(self.folder.path)
        except SundialError as happened:
            error = error or happened
        if error is not None:
            status: record.Status = "interrupted" if isinstance(error, Interrupted) else "failed"
            with contextlib.suppress(OSError):
                self._write(status, error, virtual_ns, wall_s, counters)
                collect_what_is_there(self.folder.path)
        final = self.folder.finish()
        self.session.guard.forget(self.folder.path)
        if error is not None:
            error.hint = error.hint or f"what there is of the run is in {_shown(final)}"
            raise error
        assert virtual_ns is not None
        return RunResult(final, virtual_ns, wall_s)

    def _write(
        self,
        status: record.Status,
        error: SundialError | None,
        virtual_ns: int | None,
        wall_s: float,
        counters: dict[str, object],
    ) -> None:
        epoch_ns = counters.get("epoch_ns")
        self.document.over(
            status,
            error=error,
            virtual_ns=virtual_ns,
            wall_s=wall_s,
            captures=capture_hashes(self.folder.path),
            epoch_ns=epoch_ns if isinstance(epoch_ns, int) else None,
        )
        self.folder.write_json("run.json", self.document.to_json())


class Deadline:
    """The scenario's deadline: on the run's time axis where it can be read, else on the wall since the start."""

    def __init__(self, plan: Plan, started: float) -> None:
        self._deadline_ns = plan.deadline_ns
        self._real = plan.clock == "real"
        self._started = started

    def look(self, virtual_ns: int | None, now: float, waiting: Sequence[str]) -> DeadlinePassed | None:
        if self._deadline_ns is None:
            return None
        passed_ns = int((now - self._started) * 1e9) if self._real else virtual_ns
        if passed_ns is None or passed_ns < self._deadline_ns:
            return None
        return DeadlinePassed(self._deadline_ns / 1e9, tuple(waiting))


def expected_batches(plan: Plan) -> int:
    """How many batches of calls the jobs will make, for showing progress."""
    return sum(len(step["options"].get("sizes", [0])) for job in plan.jobs.values() for step in job.get("steps", []))


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
