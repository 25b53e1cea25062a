# SPDX-License-Identifier: Apache-2.0
"""The connection to libvirt: its embedded driver by default, or a daemon by URI.

The embedded driver runs inside this process beneath ROOT, one ROOT in the life of a process, with the settings of
ROOT/etc/qemu.conf. What it learns about QEMU (seconds of probing) is kept in a folder shared between runs; libvirt
writes those files whole and renames them, and checks them against QEMU's time stamp, so that runs at once do not
disturb each other.

Root opens the embedded driver under another effective user for the moment of opening. libvirt then takes its
unprivileged path, the same as for everybody else: no cgroups, no ownership changes, and no need for the system user
`libvirt-qemu`, which only the daemon's package creates. Machines started afterwards run as root's own processes.

A daemon may hang, and libvirt's calls then block forever: each call that can block runs on a thread with a deadline.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sundial.errors import HostLacks, RunFailed
from sundial.machines.confinement import NOBODY, hand_over, take_back
from sundial.machines.daemon import CLOSE_REASONS, dotted, one_line, open_daemon, require_here
from sundial.machines.domain import LibvirtMachine, Parenthood, adopt_orphans, lifecycle_event, noticing_ends
from sundial.machines.hypervisor import Happening, LifecycleEvent, Listener, Machine
from sundial.machines.seals import Book
from sundial.machines.virsh import answer
from sundial.machines.waiting import DeadlineMissed, call_within
from sundial.model.daemon import parse_daemon
from sundial.plan.request import EMBEDDED

T = TypeVar("T")

OPEN_S = 60.0
"""The first time, the embedded driver runs QEMU a few times to learn what it can do."""
START_S = 180.0
CALL_S = 10.0
NOTICE_S = 1.0
"""How long after libvirt the end of a QEMU may be noticed here."""
EMULATOR = "qemu-system-x86_64"
UNKNOWN = "unknown"

QEMU_CONF = """\
# Written by sundial for libvirt's embedded driver.
stdio_handler = "file"
security_driver = "none"
cgroup_controllers = []
remember_owner = 0
# Else libvirt asks each QEMU for some 400 properties of its CPU, one by one, before it calls it started.
capability_filters = [ "cpu-unavailable-features" ]
"""

_event_loop = threading.Lock()
_event_loop_runs = False


def load_libvirt() -> Any:
    """The libvirt module, silent on stderr (its errors reach the user as SundialErrors), with an event loop running.

    Raises HostLacks where it is not installed.
    """
    global _event_loop_runs
    os.environ.setdefault("LIBVIRT_LOG_OUTPUTS", "4:file:/dev/null")
    try:
        libvirt: Any = importlib.import_module("libvirt")
        importlib.import_module("libvirt_qemu")
    except ImportError as error:
        raise HostLacks(
            f"the Python binding of libvirt cannot be loaded: {error}",
            hint="apt-get install python3-libvirt, and run ./sundial with the system's Python",
        ) from error
    with _event_loop:
        if not _event_loop_runs:
            libvirt.registerErrorHandler(lambda context, error: None, None)
            libvirt.virEventRegisterDefaultImpl()
            threading.Thread(target=_run_events, args=(libvirt,), name="libvirt-events", daemon=True).start()
            _event_loop_runs = True
    return libvirt


def _run_events(libvirt: Any) -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


class LibvirtHypervisor:
    """A Hypervisor on one libvirt connection, `where` in words. `token` makes domain names unlike anybody else's."""

    def __init__(
        self,
        libvirt: Any,
        handle: Any,
        token: str,
        pid_folder: Path | None,
        where: str,
        *,
        version: Callable[[], str],
    ) -> None:
        """`version`: QEMU's, asked for when it is needed."""
        self._libvirt = libvirt
        self._qemu_version = version
        self._handle = handle
        self._token = token
        self._pid_folder = pid_folder
        self._where = where
        self._started: list[str] = []
        self._listeners: list[Listener] = []
        self._versions: dict[str, str] = {}
        self._bounded("watching the connection", lambda: handle.registerCloseCallback(self._on_close, None))
        self._callback: int | None = self._bounded(
            "watching machines",
            lambda: handle.domainEventRegisterAny(
                None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._on_lifecycle, None
            ),
        )

    def domain_name(self, machine: str) -> str:
        """What libvirt calls one of our machines."""
        return f"{self._token}-{machine}"

    def start(self, name: str, domain_xml: str) -> Machine:
        libvirt = self._libvirt
        parenthood = None
        if self._pid_folder is not None:
            parenthood = Parenthood(self._pid_folder / f"{self.domain_name(name)}.pid")
        try:
            domain = call_within(
                START_S,
                f"starting machine {name}",
                lambda: self._handle.createXML(domain_xml, libvirt.VIR_DOMAIN_START_PAUSED),
            )
        except libvirt.libvirtError as error:
            ending = None if parenthood is None or parenthood.pid is None else parenthood.ending(NOTICE_S)
            why = ", ".join(part for part in (one_line(error), ending) if part)
            raise RunFailed(f"libvirt could not start it: {why}", machine=name) from error
        except DeadlineMissed as error:
            raise RunFailed(f"libvirt does not answer: {error}", machine=name) from error
        finally:
            if parenthood is not None:
                parenthood.give_up()
        self._started.append(name)
        return LibvirtMachine(libvirt, domain, name, parenthood)

    def virsh(self, argv: Sequence[str]) -> str:
        """What virsh would print of our machines. Raises BadInput, RunFailed."""
        names = {name: self.domain_name(name) for name in self._started}
        return self._bounded(f"virsh {argv[0] if argv else ''}".strip(), lambda: answer(self._handle, names, argv))

    def lost(self, why: str) -> None:
        """No machine can be reached any more: say so of each."""
        for name in self._started:
            for listener in list(self._listeners):
                listener(LifecycleEvent(name, Happening.LOST, why))

    def listen(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def versions(self) -> dict[str, str]:
        if not self._versions:
            self._versions = self._ask_versions()
        return dict(self._versions)

    def _ask_versions(self) -> dict[str, str]:
        def ask() -> dict[str, str]:
            # Not the handle's getVersion: it means libvirt's default emulator, which may be another program.
            return {"qemu": self._qemu_version(), "libvirt": dotted(self._handle.getLibVersion())}

        return self._bounded("asking for versions", ask)

    def close(self) -> None:
        callback, self._callback = self._callback, None
        self._listeners.clear()
        with contextlib.suppress(self._libvirt.libvirtError, DeadlineMissed):
            if callback is not None:
                call_within(CALL_S, "libvirt", lambda: self._handle.domainEventDeregisterAny(callback))
        with contextlib.suppress(self._libvirt.libvirtError, DeadlineMissed):
            call_within(CALL_S, "libvirt", self._handle.unregisterCloseCallback)
        with contextlib.suppress(self._libvirt.libvirtError, DeadlineMissed):
            call_within(CALL_S, "libvirt", self._handle.close)

    def _on_lifecycle(self, handle: Any, domain: Any, event: int, detail: int, opaque: Any) -> None:
        prefix = f"{self._token}-"
        if not domain.name().startswith(prefix):
            return
        happened = lifecycle_event(domain.name().removeprefix(prefix), event, detail)
        if happened is not None:
            for listener in list(self._listeners):
                listener(happened)

    def _on_close(self, handle: Any, reason: int, opaque: Any) -> None:
        if reason < len(CLOSE_REASONS):
            self.lost(f"the libvirt daemon at {self._where} is gone: {CLOSE_REASONS[reason]}")

    def _bounded(self, what: str, call: Callable[[], T]) -> T:
        try:
            return call_within(CALL_S, what, call)
        except self._libvirt.libvirtError as error:
            raise RunFailed(f"libvirt: {what} failed: {one_line(error)}") from error
        except DeadlineMissed as error:
            raise RunFailed(f"libvirt does not answer: {error}") from error


def open_hypervisor(
    connect: str,
    root: Path,
    cache: Path,
    token: str,
    *,
    emulator: Path | None = None,
    programs: Book | None = None,
    open_s: float | None = None,
) -> LibvirtHypervisor:
    """Connect to libvirt: `connect` is EMBEDDED or a URI, `root` the embedded driver's folder, `cache` the shared one.

    `emulator` is what domains of the embedded driver will name; None: libvirt's own choice. `programs` remembers
    QEMU's version.

    Raises HostLacks when there is no such libvirt, RunFailed when it does not answer within `open_s` seconds.
    """
    libvirt = load_libvirt()
    version = partial(qemu_version, programs)
    if connect != EMBEDDED:
        uri = parse_daemon(connect)
        handle = open_daemon(libvirt, uri, root, open_s=open_s)
        require_here(handle, uri)
        return LibvirtHypervisor(libvirt, handle, token, None, connect, version=version)
    where = "the embedded driver"
    try:
        handle = call_within(open_s or OPEN_S, where, lambda: _open_embedded(libvirt, root, cache, emulator))
    except libvirt.libvirtError as error:
        hint = "apt-get install libvirt-daemon libvirt-daemon-driver-qemu qemu-system-x86"
        raise HostLacks(f"libvirt cannot be reached at {where}: {one_line(error)}", hint=hint) from error
    except DeadlineMissed as error:
        raise RunFailed(f"libvirt does not answer at {error}") from error
    return LibvirtHypervisor(libvirt, handle, token, root / "run" / "qemu", where, version=version)


def qemu_version(programs: Book | None) -> str:
    """Of qemu-system-x86_64, as it says itself; `unknown` where it does not."""
    program = Path(shutil.which(EMULATOR) or EMULATOR)
    try:
        return _version(program) if programs is None else programs.value(program, _version)
    except (OSError, ValueError):
        return UNKNOWN


def version_in(said: str) -> str:
    """Of what QEMU says of itself."""
    found = re.search(r"version (\d+(?:\.\d+)+)(?: \(([^)]+)\))?", said)
    return " ".join(part for part in found.groups() if part) if found else UNKNOWN


def _version(program: Path) -> str:
    """What QEMU says. Raises OSError, and ValueError where it says nothing: that is not to be remembered."""
    found = version_in(subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout)
    if found == UNKNOWN:
        raise ValueError(f"{program} does not say its version")
    return found


def _open_embedded(libvirt: Any, root: Path, cache: Path, emulator: Path | None) -> Any:
    settings = root / "etc"
    settings.mkdir(exist_ok=True)
    (settings / "qemu.conf").write_text(QEMU_CONF)
    with _inside(root), _unprivileged(root):
        handle = libvirt.open(f"qemu:///embed?root={root}")
    _share_cache(root / "cache" / "qemu" / "capabilities", cache)
    adopt_orphans()
    # Fill the cache first: it runs QEMUs of libvirt's own, of which no listener here would take notice.
    with noticing_ends():
        handle.getDomainCapabilities(None if emulator is None else str(emulator), "x86_64", None, "qemu")
    return handle


@contextlib.contextmanager
def _inside(root: Path) -> Iterator[None]:
    """Keep libvirt's per-user folders within `root` too: it asks for them while it opens, and only then."""
    names = ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(root / "home")))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _unprivileged(root: Path) -> Iterator[None]:
    """Root as another user for a moment (see the module's text); others stay who they are."""
    if os.geteuid() != 0:
        yield
        return
    # All beneath it, too: by root's umask it may be root's alone.
    hand_over((root, *root.rglob("*")), NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        take_back(root, NOBODY)


def _share_cache(own: Path, shared: Path) -> None:
    """Make libvirt's (still empty) capability cache a link to the shared folder."""
    shared.mkdir(parents=True, exist_ok=True)
    if own.is_symlink():
        return
    if own.is_dir():
        shutil.rmtree(own)
    own.parent.mkdir(parents=True, exist_ok=True)
    own.symlink_to(shared.resolve(), target_is_directory=True)
