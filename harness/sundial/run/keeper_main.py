# SPDX-License-Identifier: Apache-2.0
"""The keeper's process: brings a topology up, reports that, and holds it until `down`.

`keeper.up` sends its request as a JSON document on stdin. On stdout it writes JSON lines, `{"say": TEXT}`, and
last `{"up": ...}` or `{"failed": ...}`; nothing reads later ones. Its control socket answers
`{"command": "status"}`, `{"command": "virsh", "argv": [...]}`, `{"command": "change", "event": {...}}` (without an
event: what is in force) and `{"command": "down"}`. If a machine ends (a guest
may power itself off), the others stay up. A machine that hangs under the real clock is ended, so that no
caller waits for its answer. The end of the fabric, or of the last machine, ends the keeper. If a kernel panicked, a
guest hung or wrote too much, or QEMU was killed, run.json says `failed` with the reason after `down`.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty
from typing import Any

from sundial.errors import BadInput, RunFailed, SundialError
from sundial.machines.command import run_command
from sundial.machines.hypervisor import Happening, LifecycleEvent
from sundial.machines.switchboard import Switchboard
from sundial.machines.waiting import WALL, Clock, in_parallel
from sundial.model.images import IMAGES
from sundial.model.machine_events import POWER_OFF, POWER_ON
from sundial.plan.build import plan_topology
from sundial.plan.request import Kept, KeptMachine, UpRequest
from sundial.run import certification, runner
from sundial.run.bringup import BringUp, Order, State
from sundial.run.byhand import ByHand, Change, shown
from sundial.run.directory import claim_in, disk_full_is_a_failure
from sundial.run.guestfiles import GuestFiles
from sundial.run.interrupts import Interrupts
from sundial.run.places import Places
from sundial.run.session import Session, open_session
from sundial.run.supervisor import VICTIM_STATUS, FabricEnded, MachinePanicked, Tick
from sundial.run.upfolder import KeeperRecord, UpFolder, request_from_json
from sundial.run.watch import GuestWatch, Machines, guest_signs
from sundial.run.watchdog import Watchdog

BOOT_S = 600.0
"""Most seconds until a guest answers, even on a busy host; the watchdog finds one that hangs earlier."""
BOOT_LOOK_S = 0.2
HOLD_LOOK_S = 1.0
OFF_BY_HAND = "powered off by hand"
SHUT_DOWN = "shut down"
"""libvirt's reason after a guest has powered off its machine."""


class DownRequested(Exception):
    """A `down` command has arrived."""


class Reporter:
    """Progress for the caller of `up`, as long as it reads."""

    def say(self, text: str) -> None:
        self.send(say=text)

    def share(self, done: float, text: str) -> None:
        return

    def send(self, **message: object) -> None:
        with contextlib.suppress(BrokenPipeError, ValueError):
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()


class Keeper:
    """One topology, from up to down."""

    def __init__(self, request: UpRequest, session: Session, interrupts: Interrupts, reporter: Reporter) -> None:
        self._request = request
        self._session = session
        self._reporter = reporter
        self._bring_up = BringUp(_order(request, session.places), session, interrupts, reporter.say)
        self._down = threading.Event()
        self._ended: dict[str, str] = {}
        self._faults: dict[str, str] = {}
        """Faults by machine, in the order found; what its user did is not among them."""
        self._switchboard = Switchboard()
        self._by_hand = ByHand(request.topology, request.network)

    def keep(self, folder: UpFolder) -> None:
        """Bring up, hold, take down. Raises SundialError if bringing up fails or if the topology ends by itself."""
        self._session.guard.remove_on_death(folder.path)
        error: SundialError | None = None
        control = Control(self._session.runtime.path / "keeper.sock", self)
        try:
            with disk_full_is_a_failure():
                control.serve()
                self._boot()
                self._announce(folder, control.path)
                self._hold()
        except DownRequested:
            pass
        except Exception as happened:
            error = self._bring_up.known(happened)
        finally:
            self._switchboard.close()
            error = self._bring_up.end(error)
            self._note(panics(self._bring_up.files))
            error = error or failure_of(self._faults)
            self._bring_up.document.ended(self._ended)
            final, error, _ = self._bring_up.conclude(error, None, collect=False)
            control.answer_down(final)
        if error is not None:
            raise error

    def request_down(self) -> None:
        """Request the end; called on the control socket's thread."""
        self._down.set()
        self._bring_up.queue.put(Tick())

    def status(self) -> dict[str, Any]:
        """The answer to `status`."""
        rig = self._bring_up.rig
        machines = {name: self._ended.get(name, machine.state().value) for name, machine in rig.machines.items()}
        counters = rig.fabric.counters() if rig.fabric is not None else {}
        return {"state": self._bring_up.state.value, "machines": machines, "counters": counters}

    def virsh(self, argv: Sequence[str]) -> dict[str, Any]:
        """The answer to `virsh`."""
        try:
            return {"printed": self._session.hypervisor.virsh(argv)}
        except SundialError as error:
            return {"failed": error.to_json()}

    def change(self, event: Mapping[str, Any] | None) -> dict[str, Any]:
        """The answer to `change`."""
        fabric = self._bring_up.rig.fabric
        try:
            if event is not None:
                if fabric is None:
                    raise RunFailed("the fabric does not run", machine="fabric")
                now_ns = int(fabric.counters().get("virtual_ns", 0))
                made = self._by_hand.apply(event, now_ns, self._power(event, fabric.change))
                self._bring_up.document.changed(self._by_hand.to_json())
                return {"event": made.model_dump(mode="json", exclude_none=True)}
        except SundialError as error:
            return {"failed": error.to_json()}
        except OSError as error:
            return {"failed": RunFailed(f"does not start again: {error}").to_json()}
        return {"segments": {name: shown(state) for name, state in self._by_hand.states().items()}}

    def _power(self, event: Mapping[str, Any], change: Change) -> Change:
        """`change`, before which the machine that an event names loses its power, since what it still sent would be
        lost by the wire alone; or after which it boots again."""
        machine = event.get(POWER_OFF) or event.get(POWER_ON)
        if machine is None:
            return change
        rig = self._bring_up.rig

        def change_without_it(segment: str, changed: Mapping[str, Any]) -> int:
            self._ended[machine] = OFF_BY_HAND
            rig.machines[machine].destroy()
            return change(segment, changed)

        def change_with_it(segment: str, changed: Mapping[str, Any]) -> int:
            at_ns = change(segment, changed)
            rig.start_again(machine)
            self._ended.pop(machine, None)
            self._serve(machine)
            return at_ns

        return change_without_it if POWER_OFF in event else change_with_it

    def _serve(self, machine: str) -> None:
        """Take commands for a machine. Raises OSError."""
        rig = self._bring_up.rig
        streams = IMAGES[rig.plan.network.node(machine).image].streams_commands
        self._switchboard.serve(rig.exec_socket(machine), rig.commands_socket(machine), streams=streams)

    def _boot(self) -> None:
        """Wait until each guest has answered a command."""
        self._bring_up.transition(State.PAUSED)
        self._bring_up.transition(State.RUNNING)
        self._reporter.say("booting the guests")
        rig = self._bring_up.rig
        files = {file.machine: file for file in self._bring_up.files}
        images = {node.name: IMAGES[node.image] for node in rig.plan.network.nodes}

        def answers(name: str) -> None:
            streams = images[name].streams_commands
            try:
                self._serve(name)
                run_command(rig.commands_socket(name), name, images[name].greeting, BOOT_S, streams=streams)
            except OSError as error:
                raise RunFailed(f"does not accept commands: {error.strerror}", machine=name) from error
            except RunFailed as error:
                error.console_tail = rig.console_tail(name)
                raise
            finally:
                del files[name]

        calls = [lambda name=name: answers(name) for name in rig.machines]
        in_parallel([lambda: watch_boot(rig.machines, files), *calls])

    def _announce(self, folder: UpFolder, control: Path) -> None:
        """Report that it is up: in a file for later commands, and on stdout, which is then closed."""
        kept = self._kept()
        sockets = {machine.name: str(self._bring_up.rig.commands_socket(machine.name)) for machine in kept.machines}
        folder.write(KeeperRecord(str(control), kept, sockets))
        self._reporter.send(up=kept.to_json())
        _close_stdout()

    def _hold(self) -> None:
        """Wait for `down`, or until nothing is left to hold."""
        rig, files = self._bring_up.rig, self._bring_up.files
        guests = GuestWatch(rig.machines, files if self._request.clock == "real" else [])
        while not self._down.is_set():
            try:
                event = self._bring_up.queue.get(timeout=HOLD_LOOK_S)
            except Empty:
                rig.look_for_cores()
                self._note(panics(files))
                self._note(end_hung(rig.machines, files, guests, time.monotonic()))
                continue
            if isinstance(event, FabricEnded) and event.status != VICTIM_STATUS and not self._down.is_set():
                raise RunFailed(f"ended by itself with status {event.status}: {event.said}", machine="fabric")
            if isinstance(event, LifecycleEvent):
                ended = rig.ended(event)
                if event.happening is Happening.STARTED:
                    guests.renew(event.machine)
                if ended is not None and not (event.machine not in self._ended and rig.runs(event.machine)):
                    self._note(panics(files))
                    by_hand = self._ended.get(ended.machine) == OFF_BY_HAND
                    if not by_hand and event.reason != SHUT_DOWN and ended.report != "aborted":
                        self._note({ended.machine: ended.how if ended.lost else f"the machine ended: {ended.how}"})
                    self._ended.setdefault(ended.machine, ended.how)
                    guests.forget(ended.machine)
                # If a machine ended the run, the fabric and the others follow, and that machine has the reason.
                if rig.machines and len(self._ended) == len(rig.machines):
                    raise failure_of(self._faults) or RunFailed("all machines have ended")
        raise DownRequested

    def _note(self, found: Mapping[str, str]) -> None:
        """Keep the first fault of each machine: a panic causes what follows it."""
        for name, how in found.items():
            self._faults.setdefault(name, how)
            self._ended.setdefault(name, how)

    def _kept(self) -> Kept:
        plan = self._bring_up.plan
        machines = tuple(
            KeptMachine(
                node.name,
                node.image,
                next((str(nic.address.ip) for nic in node.nics if nic.address is not None), ""),
                str(self._bring_up.rig.console_socket(node.name)),
            )
            for node in plan.network.nodes
        )
        folder = self._bring_up.folder
        hosts = {name: uri.text for name, uri in plan.network.hosts.items()}
        return Kept(
            plan.network.name,
            plan.clock,
            folder.path,
            folder.final,
            os.getpid(),
            machines,
            self._session.connect,
            hosts,
        )


def _order(request: UpRequest, places: Places) -> Order:
    network = request.network
    return Order(
        network=network,
        clock=request.clock,
        accelerator=request.topology.accelerator,
        seed=request.seed,
        plan=lambda paths: plan_topology(network, paths, clock=request.clock, seed=request.seed),
        claim=lambda nodes: claim_in(places.captures, f"up-{network.name}-{request.seed}", nodes),
        scenario=None,
        topology={**request.topology.model_dump(mode="json", exclude_none=True), "clock": request.clock},
        command=("sundial", "up", network.name),
        interactive=True,
        recipe=request.recipe,
    )


def watch_boot(machines: Machines, waited_for: Mapping[str, GuestFiles], clock: Clock = WALL) -> None:
    """Wait for all guests. Raises RunFailed for guests that hang, and ends them, which wakes their waiters."""
    watchdog = Watchdog()
    while files := list(waited_for.values()):
        failed = next((bad for file in files for bad in file.look() if isinstance(bad, MachinePanicked)), None)
        hung = watchdog.look(guest_signs(machines, files), clock.now())
        if failed is not None or hung is not None:
            for file in files:
                machines[file.machine].destroy()
        if failed is not None:
            raise RunFailed(f"its kernel panicked: {failed.line}", machine=failed.machine)
        if hung is not None:
            who = ", ".join(hung.suspects)
            raise RunFailed(f"hung while booting: no progress for {hung.seconds:.0f} s", machine=who)
        clock.pause(BOOT_LOOK_S)


def end_hung(machines: Machines, files: Sequence[GuestFiles], guests: GuestWatch, now: float) -> dict[str, str]:
    """End machines that write too much, or else the first that hangs. Returns what happened by name."""
    for file in files:
        file.look()
    too_much = {file.machine: file.excess for file in files if file.excess is not None}
    if too_much:
        for name in too_much:
            machines[name].destroy()
        return too_much
    hung = guests.look(now)
    if hung is None:
        return {}
    for name in hung.suspects:
        machines[name].destroy()
    return dict.fromkeys(hung.suspects, f"hung: no progress for {hung.seconds:.0f} s")


def panics(files: Sequence[GuestFiles]) -> dict[str, str]:
    """Messages by machine, for each kernel that has panicked since the last look."""
    found = (bad for file in files for bad in file.look())
    return {bad.machine: f"its kernel panicked: {bad.line}" for bad in found if isinstance(bad, MachinePanicked)}


def failure_of(faults: Mapping[str, str]) -> RunFailed | None:
    """The error of a topology whose machines have had these faults, by machine; None: no faults."""
    if not faults:
        return None
    (machine, how), *rest = faults.items()
    # A fault of several machines, such as the end of libvirt's daemon, is reported once.
    others = [": ".join(other) for other in rest if other[1] != how]
    return RunFailed("; ".join([how, *others]), machine=machine)


class Control:
    """The control socket: one request a connection, all served by one thread."""

    def __init__(self, path: Path, keeper: Keeper) -> None:
        self.path = path
        self._keeper = keeper
        self._waiting: list[socket.socket] = []

    def serve(self) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(self.path))
        server.listen(8)
        threading.Thread(target=self._serve, args=(server,), name="control", daemon=True).start()

    def answer_down(self, final: Path) -> None:
        """Everything is down: answer the callers of `down`."""
        for stream in self._waiting:
            _answer(stream, {"captures": str(final)})

    def _serve(self, server: socket.socket) -> None:
        while True:
            stream, _ = server.accept()
            stream.settimeout(5.0)
            try:
                with stream.makefile() as lines:
                    request = json.loads(lines.readline())
                command = request.get("command")
            except (OSError, ValueError, AttributeError):
                request, command = {}, None
            if command == "down":
                self._waiting.append(stream)
                self._keeper.request_down()
            elif command == "status":
                _answer(stream, self._keeper.status())
            elif command == "virsh":
                _answer(stream, self._keeper.virsh([str(word) for word in request.get("argv", [])]))
            elif command == "change":
                _answer(stream, self._keeper.change(request.get("event")))
            else:
                _answer(stream, {"error": "known commands: status, down, virsh, change"})


def _answer(stream: socket.socket, answer: dict[str, Any]) -> None:
    with contextlib.suppress(OSError), stream:
        stream.sendall(json.dumps(answer).encode() + b"\n")


def _close_stdout() -> None:
    """The caller of `up` no longer reads."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def main() -> int:
    request, places = request_from_json(json.load(sys.stdin))
    reporter = Reporter()
    interrupts = Interrupts()
    folder = UpFolder(places.up, request.network.name)
    try:
        with interrupts.taken():
            if not folder.take():
                raise BadInput(f"{request.network.name} is up already")
            try:
                session = open_session(request.connect, places)
                if request.clock == "virtual":
                    certification.require(session, reporter, runner.run)
                Keeper(request, session, interrupts, reporter).keep(folder)
            finally:
                folder.let_go()
    except SundialError as error:
        reporter.send(failed=error.to_json())
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
