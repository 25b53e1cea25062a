# SPDX-License-Identifier: Apache-2.0
"""libvirt daemons and computers that tests start for themselves: nothing of the host's own is touched.

A *computer* is a mount namespace, with a network namespace where it is another host: it has folders of its own where
libvirt, ssh and we keep things, users of its own, and the host's programs.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from sundial.machines import reaper
from sundial.machines.waiting import wait_until

USER = 64056
QEMU_CONF = 'stdio_handler = "file"\nsecurity_driver = "none"\ncgroup_controllers = []\n'
LIBVIRTD_CONF = 'auth_unix_rw = "none"\nauth_unix_ro = "none"\nunix_sock_rw_perms = "0777"\n'

# Takes notice of the QEMUs that the daemon detaches, as init does: libvirt waits for that when one has ended. Else they
# would be this process's, which adopts orphans once a test has opened the embedded driver in it.
ADOPT = """
import ctypes, os, signal, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
daemon = subprocess.Popen(sys.argv[1:])
signal.signal(signal.SIGTERM, lambda *_: daemon.terminate())
while os.wait()[0] != daemon.pid:
    pass
"""

FURNISH = """
set -eu
mount --bind "$1/etc" /etc
shift
program=$1
shift
for folder in /run /var/lib /var/cache /var/log "$@"; do mount -t tmpfs own "$folder"; done
exec /usr/bin/python3 -c "$program"
"""
"""Arguments: a folder, a program that stays, and what else is to be empty."""

STAY = """
import os, select
os.write(1, b"ready\\n")
while not select.select([0], [], [], 0.05)[0] or os.read(0, 1):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""
"""Until its standard input is closed. Where it is process 1 it takes notice of the end of orphans."""


@dataclass
class Computer:
    """Namespaces, and how to run something in them."""

    pid: int
    """Of a process in them."""
    folder: Path
    spaces: tuple[str, ...]

    def command(self, *argv: str, cwd: Path = Path("/")) -> list[str]:
        return ["nsenter", "--target", str(self.pid), *self.spaces, f"--wdns={cwd}", "--", *argv]

    def path(self, inside: str) -> Path:
        """One of its files, as this process sees it."""
        return Path(f"/proc/{self.pid}/root{inside}")

    def run(self, *argv: str) -> str:
        return subprocess.run(self.command(*argv), check=True, capture_output=True, text=True, timeout=60).stdout


def require_programs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def require_namespaces(*kinds: str) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", *kinds, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"no namespaces here (unshare {' '.join(kinds)}, as root)")


@contextmanager
def computer(folder: Path, *, apart: bool = False, empty: Sequence[str] = ()) -> Iterator[Computer]:
    """`apart`: with a network and processes of its own. `empty`: folders that have nothing of this host's in them."""
    shutil.copytree("/etc", folder / "etc", symlinks=True, ignore_dangling_symlinks=True)
    for name, line in (("passwd", "{0}:x:{1}:{1}::/home/{0}:/bin/sh\n"), ("group", "{0}:x:{1}:\n")):
        with (folder / "etc" / name).open("a") as file:
            file.write(line.format("libvirt-qemu", 64055) + line.format("tester", USER))
    with (folder / "etc" / "shadow").open("a") as file:
        file.write("tester:*:19000:0:99999:7:::\n")
    (folder / "etc" / "libvirt").mkdir(exist_ok=True)
    (folder / "etc" / "libvirt" / "qemu.conf").write_text(QEMU_CONF)
    (folder / "etc" / "libvirt" / "libvirtd.conf").write_text(LIBVIRTD_CONF)
    spaces = ["--mount", "--propagation", "private"]
    spaces += ["--net", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"] if apart else []
    words = ["unshare", *spaces, "sh", "-c", FURNISH, "sh", str(folder), STAY, *empty]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        try:
            assert holder.stdout.readline() == "ready\n"
            inside = _children(holder.pid)[0] if apart else holder.pid
            yield Computer(inside, folder, ("--mount", "--net", "--uts", "--pid") if apart else ("--mount",))
        finally:
            holder.stdin.close()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def system_daemon(place: Computer, python: str = sys.executable) -> Iterator[subprocess.Popen[bytes]]:
    """`qemu:///system` of a computer: libvirtd as root. The process that started it, which ends with it."""
    log = (place.folder / "libvirtd.log").open("w")
    words = place.command(python, "-c", ADOPT, "libvirtd")
    with log, subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True) as process:
        try:
            served = place.path("/run/libvirt/libvirt-sock")
            wait_until(served.exists, seconds=30, what=f"libvirtd ({log.name})")
            yield process
        finally:
            _end(process, signal.SIGTERM, place)
            process.wait(30)


def _end(process: subprocess.Popen[bytes], number: signal.Signals, place: Computer) -> None:
    """Signal what `place.command` started.

    Where processes are apart that is a child of nsenter. Without nsenter it would be an orphan that is adopted by this
    process, which does not know it: a zombie, and with one in them the namespaces do not end.
    """
    apart = "--pid" in place.spaces
    for pid in _children(process.pid) if apart else [process.pid]:
        os.kill(pid, number)


@dataclass(frozen=True)
class SessionDaemon:
    """A daemon of an ordinary user."""

    variables: dict[str, str]
    """With which `qemu:///session` means it."""
    socket: Path
    process: subprocess.Popen[bytes]

    @property
    def uri(self) -> str:
        return f"qemu+unix:///session?socket={self.socket}"


@contextmanager
def session_daemon() -> Iterator[SessionDaemon]:
    """A libvirtd of our own, on private sockets and folders.

    It runs as an ordinary user, as a session daemon does: in a user namespace when the tests run as root.
    """
    require_programs("libvirtd")
    home = Path(f"/tmp/sundial-libvirtd-{os.getpid()}")
    home.mkdir(mode=0o700)
    (home / "config" / "libvirt").mkdir(parents=True)
    (home / "config" / "libvirt" / "qemu.conf").write_text('stdio_handler = "file"\nsecurity_driver = "none"\n')
    own = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "CACHE")}
    variables = {**os.environ, **own, "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}
    (home / "run").mkdir(mode=0o700)
    user = as_user()
    if user and subprocess.run([*user, "true"], capture_output=True, check=False).returncode != 0:
        shutil.rmtree(home)
        pytest.skip("user namespaces are not allowed here, and libvirtd as root wants the user libvirt-qemu")
    log = (home / "log").open("w")
    words = [*user, sys.executable, "-c", ADOPT, "libvirtd"]
    process = subprocess.Popen(words, env=variables, stdout=log, stderr=log, start_new_session=True)
    path = home / "run" / "libvirt" / "libvirt-sock"
    try:
        wait_until(path.exists, seconds=30, what=f"libvirtd ({(home / 'log').read_text()})")
        yield SessionDaemon(variables, path, process)
    finally:
        process.terminate()
        process.wait(30)
        log.close()
        shutil.rmtree(home, ignore_errors=True)


def as_user() -> list[str]:
    """Begins a command line so that it runs as an ordinary user who owns what root owns."""
    return ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []


def daemon_pid(starter: subprocess.Popen[bytes]) -> int:
    """libvirtd itself, a child of what ADOPT runs in."""
    (pid,) = [pid for pid in _children(starter.pid) if reaper.command_line(pid).startswith(b"libvirtd")]
    return pid


def machines_of(virsh: Sequence[str]) -> list[str]:
    """Names of all machines that a daemon has; `virsh` begins the command line."""
    done = subprocess.run([*virsh, "list", "--all", "--name"], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.split()


@dataclass
class SshServer:
    """sshd of a computer, and how to get there."""

    computer: Computer
    address: str
    port: int
    key: Path
    known: Path

    def uri(self, mode: str = "session", user: str = "tester", **changed: str) -> str:
        """`changed` options; an empty one is left out."""
        options = {"keyfile": str(self.key), "known_hosts": str(self.known), **changed}
        words = "&".join(f"{name}={quote(value, safe='/')}" for name, value in options.items() if value)
        return f"qemu+ssh://{user}@{self.address}:{self.port}/{mode}?{words}"


SSHD = """
ListenAddress {0}
Port {1}
HostKey /etc/ssh/own_key
AuthorizedKeysFile /etc/ssh/own_authorized
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
LogLevel ERROR
"""


@contextmanager
def ssh_server(place: Computer, address: str, port: int, settings: str = "") -> Iterator[SshServer]:
    """sshd with keys of its own; the user's has a name that has to be escaped."""
    require_programs("sshd", "ssh")
    folder = place.folder
    key, known = folder / "the user's key, 100%", folder / "known hosts"
    for path in (folder / "own_key", key):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    keys = place.path("/etc/ssh")
    shutil.copy(folder / "own_key", keys / "own_key")
    shutil.copy(f"{key}.pub", keys / "own_authorized")
    # sshd keeps the first value of an option.
    (keys / "own_config").write_text(settings + SSHD.format(address, port))
    name = address if port == 22 else f"[{address}]:{port}"
    known.write_text(f"{name} {(folder / 'own_key.pub').read_text()}")
    place.run("mkdir", "-p", "/run/sshd")
    log = (folder / "sshd.log").open("w")
    words = place.command("/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/own_config")
    with log, subprocess.Popen(words, stdout=log, stderr=log) as server:
        try:
            wait_until(lambda: _answers(address, port), seconds=20, what=f"sshd ({log.name})")
            yield SshServer(place, address, port, key, known)
        finally:
            _end(server, signal.SIGKILL, place)


@dataclass
class SecondHost(SshServer):
    """One on another computer, beside this one."""

    def cut(self) -> None:
        """The cable is pulled: nothing comes and nothing goes, without any notification."""
        self.computer.run("ip", "link", "set", "sundial1", "down")

    def ours(self) -> str:
        """What there is of ours: files, and processes."""
        left = "ls -d /tmp/sundial*/* 2>/dev/null; ps -eo comm=,args= | grep -E '^(qemu-system|python3.* sundial-)'"
        return subprocess.run(
            self.computer.command("sh", "-c", left), capture_output=True, text=True, check=False, timeout=60
        ).stdout


@contextmanager
def second_host(folder: Path, *hidden: Path, settings: str = "") -> Iterator[SecondHost]:
    """Another host beside this one, as two network namespaces; it has none of our folders, nor those hidden."""
    require_programs("ip", "libvirtd", "qemu-system-x86_64")
    require_namespaces("--mount", "--net", "--pid", "--uts", "--fork")
    number = os.getpid() % 120
    near, far = f"198.18.{number}.1", f"198.18.{number}.2"
    empty = ["/tmp", "/home", "/root", *map(str, hidden)]
    with computer(folder, apart=True, empty=empty) as place:
        near_end = f"sundial{number}"
        link = ["ip", "link", "add", near_end, "type", "veth", "peer", "name", "sundial1", "netns", str(place.pid)]
        if subprocess.run(link, capture_output=True, check=False).returncode != 0:
            pytest.skip("no veth interfaces here")
        for words in (["addr", "add", f"{near}/30", "dev", near_end], ["link", "set", near_end, "up"]):
            subprocess.run(["ip", *words], check=True)
        place.run("ip", "addr", "add", f"{far}/30", "dev", "sundial1")
        for name in ("sundial1", "lo"):
            place.run("ip", "link", "set", name, "up")
        place.run("hostname", "second")
        place.run("mkdir", "-p", "/home/tester")
        place.run("chown", "tester:tester", "/home/tester")
        try:
            with ssh_server(place, far, 22, settings) as server:
                yield SecondHost(**vars(server))
        finally:
            # Else it is there until the kernel has taken the other namespace apart.
            subprocess.run(["ip", "link", "del", near_end], check=True)


def _answers(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 1.0).close()
    except OSError:
        return False
    return True
