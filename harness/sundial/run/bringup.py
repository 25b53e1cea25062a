# SPDX-License-Identifier: Apache-2.0
"""One way up and one way down, for runs and for topologies that stay up.

    from      to        what happens
    -------   -------   ---------------------------------------------------------------------------------------------
    off       paused    run.json is written; snapshots are found or made; the fabric listens; the machines exist
    paused    running   all guests run
    any       done      machines and fabric have ended; their sockets and shared memory are removed

`conclude` then writes the result and gives the run directory its name.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from sundial import faults
from sundial.errors import BadInput, InternalError, Interrupted, RunFailed, SundialError
from sundial.machines.bootfiles import BootFiles, boot_files, root_of
from sundial.machines.images import Image, Images, PinnedImages
from sundial.machines.recipes import asked
from sundial.machines.roots import Roots
from sundial.model.network import Network, Node
from sundial.model.topology import Accelerator, Clock
from sundial.plan.build import Plan
from sundial.plan.paths import RunPaths
from sundial.plan.request import CALM, Stirring
from sundial.run import record
from sundial.run.collect import Digests, collect_samples, collect_what_is_there, digests
from sundial.run.directory import RunFolder, disk_full_is_a_failure
from sundial.run.guestfiles import GuestFiles
from sundial.run.interrupts import Interrupts
from sundial.run.loopback import collect_loopbacks
from sundial.run.places import Places
from sundial.run.rig import Queue, Rig, Say
from sundial.run.session import Session
from sundial.run.stopped import none_stopped
from sundial.run.supervisor import OFF
from sundial.run.traces import Traces

SOCKET_PATH_MOST = 107


class State(Enum):
    """State of a topology."""

    OFF = "off"
    PAUSED = "paused"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True)
class Order:
    """A topology to bring up, with its settings."""

    network: Network
    clock: Clock
    accelerator: Accelerator
    seed: int
    plan: Callable[[RunPaths], Plan]
    """Called twice: first to find errors before anything is written, then with the real paths."""
    claim: Callable[[list[str]], RunFolder]
    """The run directory, from the names of the machines."""
    scenario: dict[str, Any] | None
    """Scenario for run.json; None for a topology that stays up."""
    topology: dict[str, Any]
    command: tuple[str, ...]
    cold: bool = False
    interactive: bool = False
    start_order: Sequence[str] = ()
    images: Path | None = None
    """Folder of pinned images, instead of the checkout's."""
    recipe: str | None = None
    """Recipe of the checkout's images; None: the chosen one."""
    stirring: Stirring = CALM
    check_images: Callable[[Mapping[str, Image]], None] = lambda images: None
    """Raises BadInput where the images lack what the run needs."""


class BringUp:
    """One topology and its run directory, from OFF to DONE."""

    def __init__(self, order: Order, session: Session, interrupts: Interrupts, say: Say) -> None:
        """Claim the run directory. If it raises BadInput, HostLacks or RunFailed, nothing has been started."""
        self.began = time.monotonic()
        known = _images(order, session.places)
        names = dict.fromkeys(node.image for node in order.network.nodes)
        images = {name: known.ensure(name, say) for name in names}
        order.check_images(images)
        hosts = [session.host(name, uri) for name, uri in order.network.hosts.items()]
        # KVM can be tried on this host alone; machines on another run as these do.
        wanted: Accelerator = "tcg" if hosts and order.accelerator == "auto" else order.accelerator
        accelerator = session.accelerator(order.clock, wanted)
        sockets = session.folder()
        # Apart from the sockets, where QEMU may write.
        self._copies = session.folder()
        with disk_full_is_a_failure():
            roots = Roots(session.places.checkout, session.places.state)

            def boots_of(node: Node) -> BootFiles:
                image = images[node.image]
                return boot_files(node, image, self._copies, root_of(node, image, roots, say))

            boots = {node.name: boots_of(node) for node in order.network.nodes}
        draft = order.plan(RunPaths(Path("/"), sockets, session.shm_folder / "x"))
        _check_sockets(draft)
        traces = Traces(draft, images, sockets)
        say("preparing the guests")
        self.document = record.RunRecord(
            network=order.network,
            scenario=order.scenario,
            topology=order.topology,
            seed=order.seed,
            clock=order.clock,
            accelerator=accelerator,
            images=images,
            boots={name: files.own for name, files in boots.items() if files.own is not None},
            versions=record.versions(session.places, session.hypervisor.versions(), images),
            command=order.command,
        )
        with disk_full_is_a_failure():
            self.folder = order.claim([node.name for node in order.network.nodes])
        session.guard.rename_on_death(self.folder.path, self.folder.final)
        self.plan = order.plan(RunPaths(self.folder.wire.resolve(), sockets, session.shm()))
        self.state = State.OFF
        self.queue: Queue = SimpleQueue()
        self.files = [GuestFiles(node.name, self.folder.node(node.name)) for node in order.network.nodes]
        self.rig = Rig(
            session,
            self.plan,
            boots,
            sockets,
            self.folder.node,
            self.queue,
            cold=order.cold,
            interactive=order.interactive,
            kvm=accelerator == "kvm",
            traces=traces,
            stirring=order.stirring,
        )
        self.document.hosts({name: site.record() for name, site in self.rig.sites.items()})
        self._order = order
        self._session = session
        self._interrupts = interrupts
        self._say = say

    def transition(self, target: State) -> None:
        """Go to the next state, or from any state to DONE. Raises SundialError; ValueError for any other transition."""
        if target is State.DONE:
            self._end()
        elif (self.state, target) == (State.OFF, State.PAUSED):
            with none_stopped(self._session.runtime.token):
                self._start_paused()
        elif (self.state, target) == (State.PAUSED, State.RUNNING):
            with none_stopped(self._session.runtime.token):
                self.rig.resume(self._order.start_order)
        else:
            raise ValueError(f"no transition from {self.state.value} to {target.value}")
        self.state = target

    def conclude(
        self, error: SundialError | None, virtual_ns: int | None, *, collect: bool
    ) -> tuple[Path, SundialError | None, float]:
        """Write the result, `collect` the samples, and name the directory.

        Returns its path, the error so far or None, and the wall time in seconds.
        """
        counters = record.read_counters(self.folder.wire)
        wall_s = time.monotonic() - self.began
        self.folder.give_up_reserve()
        if error is None:
            try:
                with disk_full_is_a_failure():
                    # Samples are read with what run.json says about clocks, and then have a digest there.
                    self.folder.write_json("run.json", self.document.to_json())
                    collect_loopbacks(self.folder.path)
                    if collect:
                        self._say("collecting samples")
                        collect_samples(self.folder.path)
                    self._write("complete", None, virtual_ns, wall_s, counters)
            except Exception as happened:
                error = self.known(happened)
        if error is not None:
            status: record.Status = "interrupted" if isinstance(error, Interrupted) else "failed"
            with contextlib.suppress(Exception):
                # First of all what happened; the rest may fail on a full disk.
                self._write(status, error, virtual_ns, wall_s, counters, digested=False)
                with contextlib.suppress(SundialError):
                    collect_loopbacks(self.folder.path)
                if collect:
                    collect_what_is_there(self.folder.path)
                self._write(status, error, virtual_ns, wall_s, counters)
        final = self.folder.finish()
        self._session.guard.forget(self.folder.path)
        if isinstance(error, InternalError) and error.log == str(self.folder.path / faults.LOG):
            error = InternalError(error.message, log=str(final / faults.LOG))
        return final, error, wall_s

    def forget(self) -> None:
        """Remove the run directory: the order cannot be run."""
        self.folder.discard()
        self._session.guard.forget(self.folder.path)

    def end(self, error: SundialError | None) -> SundialError | None:
        """Go to DONE after `error` or None. Returns the first error, or None."""
        try:
            self.transition(State.DONE)
        except Exception as happened:
            return error or self.known(happened)
        return error

    def known(self, error: Exception) -> SundialError:
        """The error as the user sees it, with the console's last lines of the machine that it names. The traceback of
        an internal error goes into the run directory."""
        known = faults.known(error, self.folder.path, faults.LOG)
        if isinstance(known, RunFailed) and known.machine in self.rig.machines and known.console_tail is None:
            known.console_tail = self.rig.console_tail(known.machine)
        return known

    def _start_paused(self) -> None:
        self.folder.write_json("run.json", self.document.to_json())
        snapshots = self.rig.prepare(self._say)
        self.rig.start_fabric()
        self.rig.start_machines(snapshots, self._order.start_order)

    def _end(self) -> None:
        if self.state is State.DONE:
            return
        self._interrupts.cleaning_begins()
        for node in self.plan.network.nodes:
            self.document.zero(node.name, self.rig.zero_ns(node.name))
        try:
            self.rig.take_down(hurry=self._interrupts.hurry)
        finally:
            for name, clock in self.rig.clocks.items():
                if clock.get("status") == OFF:
                    self.document.off(name, clock["virtual_ns"])
            self.document.carried({name: site.carried() for name, site in self.rig.sites.items()})
            shutil.rmtree(self._copies, ignore_errors=True)

    def _write(
        self,
        status: record.Status,
        error: SundialError | None,
        virtual_ns: int | None,
        wall_s: float,
        counters: dict[str, Any],
        *,
        digested: bool = True,
    ) -> None:
        epoch_ns = counters.get("epoch_ns")
        self.document.over(
            status,
            error=error,
            virtual_ns=counters.get("virtual_ns") if virtual_ns is None else virtual_ns,
            wall_s=wall_s,
            digests=digests(self.folder.path) if digested else Digests({}, {}),
            epoch_ns=epoch_ns if isinstance(epoch_ns, int) else None,
        )
        self.folder.write_json("run.json", self.document.to_json())


def _images(order: Order, places: Places) -> Images | PinnedImages:
    if order.images is not None:
        return PinnedImages(order.images)
    return Images(places.checkout, asked(places.state, order.recipe), places.state)


def _check_sockets(plan: Plan) -> None:
    for nic in plan.network.nics():
        for path in (plan.paths.machine_end(nic), plan.paths.fabric_end(nic)):
            if len(str(path).encode()) > SOCKET_PATH_MOST:
                raise BadInput(
                    f"the name of machine {nic.machine!r} makes a socket's path too long",
                    allowed=f"{len(nic.machine) - len(str(path).encode()) + SOCKET_PATH_MOST} letters",
                )
