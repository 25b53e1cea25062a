# SPDX-License-Identifier: Apache-2.0
"""Another computer that runs machines: one ssh connection, which carries everything, and libvirt behind it.

ssh starts `remote_agent` there. Sockets are forwarded over the same connection, and libvirt's own ssh joins it, so that
one end ends all: the agent notices and ends the machines, here `lost` is called with what ssh has said.
"""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import subprocess
import threading
from pathlib import Path
from typing import IO, Any

from sundial.errors import HostLacks, RunFailed
from sundial.machines import reaper, remote_agent
from sundial.machines.connection import LibvirtHypervisor, load_libvirt, version_in
from sundial.machines.daemon import open_daemon
from sundial.machines.ssh import CONNECT_S, Ssh, hint
from sundial.machines.waiting import DeadlineMissed, call_within
from sundial.model.daemon import DaemonUri

ANSWER_S = 20.0
COPY_S = 600.0
END_S = 15.0
BEAT_S = 5.0
LAST_WORDS_S = 3.0
"""For ssh to end after what it started."""
WORDS_BYTES = 4096
LEAST_QEMU = (7, 2)
"""The first with `-netdev stream`."""

_LOAD = """\
import sys, types
n = int(sys.stdin.buffer.raw.readline())
source = b""
while len(source) < n:
    source += sys.stdin.buffer.raw.read(n - len(source))
import json
for name in ("sundial", "sundial.machines"):
    sys.modules[name] = types.ModuleType(name)
for name, text in json.loads(source):
    module = types.ModuleType(name)
    module.__file__ = name
    sys.modules[name] = module
    setattr(sys.modules["sundial.machines"], name.rpartition(".")[2], module)
    exec(compile(text, name, "exec"), module.__dict__)
module.main(sys.argv[1])
"""
"""Makes modules of what is sent, and runs the last; nothing is read ahead of what the agent is to read itself."""


class ConnectionLost(RunFailed):
    """ssh has ended, or nothing is answered any more."""


class RemoteHost:
    """The host `name` of a topology. Raises HostLacks where it cannot be used."""

    def __init__(self, name: str, uri: DaemonUri, folder: Path, harness: str) -> None:
        """`folder`: for sockets here. `harness`: by what our own processes are known; there they have another token,
        for the other host's /proc may be ours."""
        self.name = name
        self.token = f"sundial-{secrets.token_hex(6)}"
        self.uri = uri
        self._ssh = Ssh(uri, control=folder / f"h-{name}")
        self._words = b""
        self._silent = ""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._hypervisor: LibvirtHypervisor | None = None
        self._process = self._start(harness)
        try:
            self._greet()
            libvirt = load_libvirt()
            handle = open_daemon(libvirt, uri, folder, ssh=self._ssh, open_s=None)
            where = f"{uri.shown}, host {name}"
            self._hypervisor = LibvirtHypervisor(
                libvirt, handle, self.token, None, where, version=lambda: self._version
            )
        except BaseException:
            self.close()
            raise
        for task in (self._watch, self._beat):
            threading.Thread(target=task, name=f"host-{name}", daemon=True).start()

    @property
    def hypervisor(self) -> LibvirtHypervisor:
        assert self._hypervisor is not None
        return self._hypervisor

    def boot_file(self, path: Path, digest: str) -> Path:
        """The file with this sha256 there, copied from `path` where it is not. Raises RunFailed."""
        found = self._ask({"have": digest})["path"]
        if found is None:
            found = self._ask({"keep": digest, "bytes": path.stat().st_size}, path, seconds=COPY_S)["path"]
        if found is None:
            raise RunFailed(f"{path} arrived on host {self.name} with another sha256 than {digest}")
        return Path(found)

    def write(self, name: str, data: bytes) -> Path:
        """A file in the folder there."""
        return Path(self._ask({"write": name, "data": base64.b64encode(data).decode()})["path"])

    def remove(self, prefix: str) -> None:
        """Files in the folder there whose names begin so; nothing happens when the connection is lost."""
        with contextlib.suppress(RunFailed):
            self._ask({"remove": prefix})

    def bring(self, there: Path, here: Path) -> None:
        """Who connects to the socket `there` is connected to the one `here`."""
        self._forward("forward", "-R", f"{there}:{here}")

    def reach(self, here: Path, there: Path) -> None:
        """Who connects to the socket `here` is connected to the one `there`."""
        self._forward("forward", "-L", f"{here}:{there}")

    def bring_no_more(self, there: Path, here: Path) -> None:
        """Nothing connects to `there` any more; nothing happens when the connection is lost."""
        with contextlib.suppress(RunFailed):
            self._forward("cancel", "-R", f"{there}:{here}")

    def close(self) -> None:
        """End what still runs there, and the connection."""
        self._closing.set()
        if self._hypervisor is not None:
            self._hypervisor.close()
        with contextlib.suppress(RunFailed, subprocess.TimeoutExpired):
            if self._process.poll() is None:
                self._ask({"end": True}, seconds=END_S)
                # It ends with the agent, which then is gone for sure.
                self._process.wait(LAST_WORDS_S)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def _start(self, harness: str) -> subprocess.Popen[bytes]:
        """ssh, which is the master of the connection, with the agent on its other end."""
        options = ("-M", "-o", "ControlPersist=no", "-o", "ExitOnForwardFailure=yes")
        loader = base64.b64encode(_LOAD.encode()).decode()
        program = f'import base64;exec(base64.b64decode("{loader}"))'
        start = f": {harness}; exec python3 -I -S -u -c '{program}' {self.token}"
        process = subprocess.Popen(
            [*self._ssh.command(*options), start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        self._listener.start()
        modules = [(module.__name__, Path(str(module.__file__)).read_text()) for module in (reaper, remote_agent)]
        source = json.dumps(modules).encode()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{len(source)}\n".encode() + source)
        return process

    def _greet(self) -> None:
        try:
            hello = self._hear(CONNECT_S + ANSWER_S)
        except ConnectionLost as error:
            words = self._said()
            raise HostLacks(f"host {self.name} ({self.uri.shown}): {words}", hint=hint(words, self.uri)) from error
        except RunFailed as error:
            raise HostLacks(error.message) from error
        if hello["qemu"] is None:
            raise HostLacks(
                f"host {self.name} has no {remote_agent.EMULATOR}",
                hint=f"apt-get install qemu-system-x86 on {self.name}",
            )
        self.folder = Path(hello["folder"])
        self.emulator = Path(hello["qemu"])
        self.user: tuple[int, int] = (hello["user"], hello["group"])
        self._version = version_in(hello["version"])
        numbers = tuple(int(part) for part in self._version.split()[0].split(".")[:2] if part.isdigit())
        if numbers < LEAST_QEMU:
            raise HostLacks(f"host {self.name} has QEMU {self._version}", hint="machines there need QEMU 7.2 or newer")

    def _ask(self, request: dict[str, Any], file: Path | None = None, seconds: float = ANSWER_S) -> dict[str, Any]:
        with self._lock:
            self._tell(json.dumps(request).encode() + b"\n")
            if file is not None:
                with file.open("rb") as source:
                    while data := source.read(1 << 18):
                        self._tell(data)
            return self._hear(seconds)

    def _tell(self, data: bytes) -> None:
        assert self._process.stdin is not None
        view = memoryview(data)
        try:
            while view:
                view = view[self._process.stdin.write(view) :]
        except (OSError, ValueError) as error:
            raise self._lost() from error

    def _hear(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        try:
            line = call_within(seconds, f"host {self.name}", self._process.stdout.readline)
        except DeadlineMissed as error:
            # Its answer may still come, and would be taken for that to the next question.
            self._silent = f"no answer within {seconds:g} s"
            self._process.kill()
            raise self._lost() from error
        if not line:
            raise self._lost()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise RunFailed(f"host {self.name} sent an invalid reply: {line[:200]!r}") from error
        if "error" in answer:
            raise RunFailed(f"host {self.name}: {answer['error']}")
        return answer

    def _lost(self) -> ConnectionLost:
        try:
            self._process.wait(LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            # Others still use the connection, such as libvirt; without the agent it is of no use.
            self._silent = self._silent or "the agent there has ended"
            self._process.kill()
            self._process.wait()
        return ConnectionLost(f"the ssh connection to host {self.name} ({self.uri.shown}) is lost: {self._said()}")

    def _said(self) -> str:
        """The last thing that ssh, or what it started, has said."""
        if self._silent:
            return self._silent
        self._listener.join(LAST_WORDS_S)
        lines = self._words.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else f"ssh ended with status {self._process.returncode}"

    def _listen(self, stderr: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := stderr.read(WORDS_BYTES):
                self._words = (self._words + data)[-WORDS_BYTES:]

    def _watch(self) -> None:
        self._process.wait()
        if not self._closing.is_set():
            self.hypervisor.lost(str(self._lost().message))

    def _beat(self) -> None:
        """Without a word for a while the agent takes us for dead, and we it: ssh may live on without it."""
        while not self._closing.wait(BEAT_S):
            with contextlib.suppress(RunFailed):
                self._ask({"alive": True})

    def _forward(self, action: str, kind: str, what: str) -> None:
        words = self._ssh.command("-O", action, kind, what)
        done = subprocess.run(words, capture_output=True, text=True, timeout=ANSWER_S, check=False)
        if done.returncode != 0:
            said = " ".join(done.stderr.split())
            raise RunFailed(
                f"host {self.name} forwards no unix sockets: {said}", hint="sshd needs AllowStreamLocalForwarding yes"
            )
