# SPDX-License-Identifier: Apache-2.0
"""The keeper's process: puts a topology up, says so, and holds it until it is told to end.

Its wish comes pickled on stdin, from `keeper.up` alone. On stdout it tells JSON lines, `{"say": TEXT}`, and last
`{"up": ...}` or `{"failed": ...}`; then nobody listens any more. Its control socket answers `{"command": "status"}`
and `{"command": "down"}`. A machine that ends (a guest may power itself off) leaves the others up, and so does one that
hangs under the real clock: it is ended, for whoever waits for its answer. The fabric's end, or that of the last
machine, ends the keeper.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from sundial.errors import BadInput, Interrupted, RunFailed, SundialError
from sundial.machines.accelerator import Chosen
from sundial.machines.command import run_command
from sundial.machines.hypervisor import LifecycleEvent
from sundial.machines.images import Image, Images
from sundial.machines.waiting import WALL, Clock, in_parallel
from sundial.model.images import IMAGES
from sundial.plan.build import Plan, plan_topology
from sundial.plan.paths import RunPaths
from sundial.plan.request import Kept, KeptMachine, UpRequest
from sundial.run import record
from sundial.run.collect import capture_hashes
from sundial.run.directory import RunFolder, claim_in, disk_full_is_a_failure
from sundial.run.guestfiles import GuestFiles
from sundial.run.interrupts import Interrupts
from sundial.run.places import Places
from sundial.run.rig import Queue, Rig
from sundial.run.session import Session, open_session
from sundial.run.supervisor import FabricEnded, MachinePanicked, Tick
from sundial.run.upfolder import KeeperRecord, UpFolder, kept_to_json
from sundial.run.watch import GuestWatch, Machines, guest_signs
from sundial.run.watchdog import Watchdog

BOOT_S = 120.0
BOOT_LOOK_S = 0.2
HOLD_LOOK_S = 1.0


class Told(Exception):
    """Somebody said down."""


class Teller:
    """Progress to whoever called up, for as long as they listen."""

    def say(self, text: str) -> None:
        self.tell(say=text)

    def share(self, done: float, text: str) -> None:
        return

    def tell(self, **message: object) -> None:
        with contextlib.suppress(BrokenPipeError, ValueError):
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()


class Keeper:
    """One topology, from up to down."""

    def __init__(self, request: UpRequest, session: Session, interrupts: Interrupts, teller: Teller) -> None:
        self._request = request
        self._session = session
        self._interrupts = interrupts
        self._teller = teller
        self._queue: Queue = SimpleQueue()
        self._down = threading.Event()
        self._ended: dict[str, str] = {}

    def keep(self, folder: UpFolder) -> None:
        """Everything. Raises SundialError when it could not be put up, or ended by itself."""
        began = time.monotonic()
        places = self._session.places
        known = Images(places.checkout)
        names = dict.fromkeys(node.image for node in self._request.network.nodes)
        images = {name: known.ensure(name, self._teller.say) for name in names}
        accelerator = self._session.accelerator(self._request.clock, self._request.topology.accelerator, images)
        nodes = [node.name for node in self._request.network.nodes]
        stem = f"up-{self._request.network.name}-{self._request.seed}"
        claimed = claim_in(places.captures, stem, nodes)
        self._session.guard.rename_on_death(claimed.path, claimed.final)
        self._session.guard.remove_on_death(folder.path)
        paths = RunPaths(claimed.wire, self._session.folder(), self._session.shm())
        plan = plan_topology(self._request.network, paths, clock=self._request.clock, seed=self._request.seed)
        rig = Rig(
            self._session,
            plan,
            images,
            paths.sockets,
            claimed.node,
            self._queue,
            cold=False,
            interactive=True,
            kvm=accelerator == "kvm",
        )
        document = self._record(images, accelerator)
        error: SundialError | None = None
        control = Control(self._session.runtime.path / "keeper.sock", self, rig)
        try:
            with disk_full_is_a_failure():
                claimed.write_json("run.json", document.to_json())
                self._put_up(rig, control, claimed)
                kept = self._kept(plan, rig, claimed)
                folder.write(
                    KeeperRecord(
                        os.getpid(), str(control.path), kept, {name: str(rig.exec_socket(name)) for name in nodes}
                    )
                )
                self._teller.tell(up=kept_to_json(kept))
                _close_stdout()
                self._hold(rig, [GuestFiles(name, claimed.node(name)) for name in nodes])
        except Told:
            pass
        except SundialError as happened:
            error = happened
        finally:
            self._interrupts.cleaning_begins()
            for node in nodes:
                document.zero(node, rig.zero_ns(node))
            rig.take_down(hurry=self._interrupts.hurry)
            self._write_end(claimed, document, error, time.monotonic() - began)
            final = claimed.finish()
            self._session.guard.forget(claimed.path)
            control.answer_down(final)
        if error is not None:
            raise error

    def asked_down(self) -> None:
        """On the control socket's thread: end."""
        self._down.set()
        self._queue.put(Tick())

    def states(self, rig: Rig) -> dict[str, Any]:
        """What `status` answers."""
        machines = {name: self._ended.get(name, machine.state().value) for name, machine in rig.machines.items()}
        return {"machines": machines, "counters": rig.fabric.counters() if rig.fabric is not None else {}}

    def _put_up(self, rig: Rig, control: Control, claimed: RunFolder) -> None:
        control.serve()
        self._teller.say("preparing the guests")
        snapshots = rig.prepare(self._teller.say)
        rig.start_fabric()
        rig.start_machines(snapshots, ())
        rig.resume()
        self._teller.say("booting the guests")

        files = {name: GuestFiles(name, claimed.node(name)) for name in rig.machines}

        greetings = {node.name: IMAGES[node.image].greeting for node in rig.plan.network.nodes}

        def answers(name: str) -> None:
            try:
                run_command(rig.exec_socket(name), name, greetings[name], BOOT_S)
            finally:
                del files[name]

        calls = [lambda name=name: answers(name) for name in rig.machines]
        in_parallel([lambda: watch_boot(rig.machines, files), *calls])

    def _hold(self, rig: Rig, files: Sequence[GuestFiles]) -> None:
        """Until down, or until there is nothing left to hold."""
        guests = GuestWatch(rig.machines, files if self._request.clock == "real" else [])
        while not self._down.is_set():
            try:
                event = self._queue.get(timeout=HOLD_LOOK_S)
            except Empty:
                self._ended |= end_hung(rig.machines, files, guests, time.monotonic())
                continue
            if isinstance(event, FabricEnded) and not self._down.is_set():
                raise RunFailed(f"ended by itself with status {event.status}: {event.said}", machine="fabric")
            if isinstance(event, LifecycleEvent):
                ended = rig.ended(event)
                if ended is not None:
                    self._ended.setdefault(ended.machine, ended.how)
                    guests.forget(ended.machine)
                if rig.machines and len(self._ended) == len(rig.machines):
                    raise RunFailed("all machines have ended")
        raise Told

    def _kept(self, plan: Plan, rig: Rig, claimed: RunFolder) -> Kept:
        machines = tuple(
            KeptMachine(
                node.name,
                next((str(nic.address.ip) for nic in node.nics if nic.address is not None), ""),
                str(rig.console_socket(node.name)),
            )
            for node in plan.network.nodes
        )
        return Kept(plan.network.name, plan.clock, claimed.final, machines)

    def _record(self, images: dict[str, Image], accelerator: Chosen) -> record.RunRecord:
        request = self._request
        topology = {**request.topology.model_dump(mode="json", exclude_none=True), "clock": request.clock}
        return record.RunRecord(
            network=request.network,
            scenario=None,
            topology=topology,
            seed=request.seed,
            clock=request.clock,
            accelerator=accelerator,
            images=images,
            versions=record.versions(self._session.places, self._session.hypervisor.versions(), images),
            command=("sundial", "up", request.network.name),
        )

    def _write_end(
        self, claimed: RunFolder, document: record.RunRecord, error: SundialError | None, wall_s: float
    ) -> None:
        claimed.give_up_reserve()
        counters = record.read_counters(claimed.wire)
        status: record.Status = "complete" if error is None else "failed"
        if isinstance(error, Interrupted):
            status = "interrupted"
        with contextlib.suppress(OSError):
            document.over(
                status,
                error=error,
                virtual_ns=counters.get("virtual_ns"),
                wall_s=wall_s,
                captures=capture_hashes(claimed.path),
                epoch_ns=counters.get("epoch_ns"),
            )
            claimed.write_json("run.json", document.to_json())


def watch_boot(machines: Machines, waited_for: Mapping[str, GuestFiles], clock: Clock = WALL) -> None:
    """Until nobody is waited for. Raises RunFailed for guests that hang, and ends them: who waits for them wakes."""
    watchdog = Watchdog()
    while files := list(waited_for.values()):
        failed = next((bad for file in files for bad in file.look() if isinstance(bad, MachinePanicked)), None)
        hung = watchdog.look(guest_signs(machines, files), clock.now())
        if failed is not None or hung is not None:
            for file in files:
                machines[file.machine].destroy()
        if failed is not None:
            raise RunFailed(f"its kernel gave up: {failed.line}", machine=failed.machine)
        if hung is not None:
            who = ", ".join(hung.suspects)
            raise RunFailed(f"hung while booting: nothing has moved for {hung.seconds:.0f} s", machine=who)
        clock.pause(BOOT_LOOK_S)


def end_hung(machines: Machines, files: Sequence[GuestFiles], guests: GuestWatch, now: float) -> dict[str, str]:
    """End the first that hangs, if one does: by its name, what became of it."""
    for file in files:
        file.look()
    hung = guests.look(now)
    if hung is None:
        return {}
    for name in hung.suspects:
        machines[name].destroy()
    return dict.fromkeys(hung.suspects, f"hung: nothing has moved for {hung.seconds:.0f} s")


class Control:
    """The control socket: one question a connection, each on the one thread that serves."""

    def __init__(self, path: Path, keeper: Keeper, rig: Rig) -> None:
        self.path = path
        self._keeper = keeper
        self._rig = rig
        self._waiting: list[socket.socket] = []

    def serve(self) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(self.path))
        server.listen(8)
        threading.Thread(target=self._serve, args=(server,), name="control", daemon=True).start()

    def answer_down(self, final: Path) -> None:
        """Everything is down: tell those who asked for it."""
        for stream in self._waiting:
            _answer(stream, {"captures": str(final)})

    def _serve(self, server: socket.socket) -> None:
        while True:
            stream, _ = server.accept()
            stream.settimeout(5.0)
            try:
                with stream.makefile() as lines:
                    command = json.loads(lines.readline()).get("command")
            except (OSError, ValueError, AttributeError):
                command = None
            if command == "down":
                self._waiting.append(stream)
                self._keeper.asked_down()
            elif command == "status":
                _answer(stream, self._keeper.states(self._rig))
            else:
                _answer(stream, {"error": "known commands: status, down"})


def _answer(stream: socket.socket, answer: dict[str, Any]) -> None:
    with contextlib.suppress(OSError), stream:
        stream.sendall(json.dumps(answer).encode() + b"\n")


def _close_stdout() -> None:
    """Whoever called up is gone from here on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def main() -> int:
    request: UpRequest
    places: Places
    request, places = pickle.load(sys.stdin.buffer)
    teller = Teller()
    interrupts = Interrupts()
    folder = UpFolder(places.up, request.network.name)
    try:
        with interrupts.taken():
            if not folder.take():
                raise BadInput(f"{request.network.name} is up already")
            try:
                session = open_session(request.connect, places)
                Keeper(request, session, interrupts, teller).keep(folder)
            finally:
                folder.let_go()
    except SundialError as error:
        teller.tell(failed=error.to_json())
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
