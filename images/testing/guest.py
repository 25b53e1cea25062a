# SPDX-License-Identifier: Apache-2.0
"""Machines for the tests: plain QEMU with the flags of the final system, no plugin, no libvirt."""

import json
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

T = TypeVar("T")

IMAGES = Path(__file__).resolve().parents[1]
JOB_BYTES = 65536
PATIENCE_S = 600.0
"""After which a machine hangs; on a busy host one of a second takes minutes."""
ICOUNT = ("-icount", "shift=3,sleep=off", "-rtc", "base=2000-01-01,clock=vm")


def job_text(job: dict) -> bytes:
    text = json.dumps(job).encode()
    assert len(text) < JOB_BYTES
    return text.ljust(JOB_BYTES, b"\n")


def _memory(name: str) -> str:
    """The least that a machine with this image may have, as QEMU takes it: 64M."""
    size, unit = tomllib.loads((IMAGES / name / "image.toml").read_text())["memory_least"].split()
    return size + unit[0]


class Guest:
    """One machine in a folder of its own; a context manager that leaves no process behind."""

    def __init__(
        self, folder: Path, image: Path, job: dict, extra: tuple[str, ...] = (), cmdline: str | None = None
    ) -> None:
        self.folder = folder
        self.samples_path = folder / "samples.jsonl"
        self.console_path = folder / "console.log"
        self._image = image
        self._extra = extra
        self._cmdline = cmdline
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "job").write_bytes(job_text(job))
        self._process: subprocess.Popen | None = None

    def command(self, wire: tuple[Path, Path]) -> list[str]:
        manifest = json.loads((self._image / "manifest.json").read_text())
        local, remote = wire
        return [
            "qemu-system-x86_64",
            # As `sundial.plan.domain` has it: without icount the TSC is the host's.
            *("-cpu", "qemu64,-rdrand,-cx16" + ("" if "-icount" in self._extra else ",-tsc")),
            *("-M", "q35", "-accel", "tcg,thread=single", "-smp", "1"),
            *("-m", _memory(manifest["name"]), "-nodefaults", "-no-user-config", "-no-reboot"),
            *("-display", "none"),
            "-netdev",
            f"dgram,id=n0,local.type=unix,local.path={local},remote.type=unix,remote.path={remote}",
            "-device",
            "virtio-net-pci,netdev=n0,tx=timer,x-txtimer=1,ioeventfd=off,romfile=,addr=0x10",
            *("-object", f"filter-dump,id=d0,netdev=n0,file={self.folder}/wire.pcap"),
            *("-device", "virtio-serial-pci,ioeventfd=off,addr=0x8"),
            *("-chardev", f"file,id=samples,path={self.samples_path}"),
            *("-device", "virtserialport,chardev=samples,name=sundial.samples"),
            *("-fw_cfg", f"name=opt/sundial/job,file={self.folder}/job"),
            *("-serial", f"file:{self.console_path}"),
            *("-kernel", str(self._image / "kernel"), "-initrd", str(self._image / "initrd")),
            *("-append", manifest["cmdline"] if self._cmdline is None else self._cmdline),
            *self._extra,
        ]

    def start(self, wire: tuple[Path, Path]) -> None:
        with (self.folder / "qemu.log").open("w") as log:
            self._process = subprocess.Popen(
                ["nice", *self.command(wire)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pid(self) -> int:
        """QEMU's own: nice replaces itself by what it starts."""
        assert self._process is not None
        return self._process.pid

    def ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def samples(self) -> list:
        """Every complete line so far."""
        if not self.samples_path.exists():
            return []
        text = self.samples_path.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def lines(self, kind: str) -> list[dict]:
        return [line for line in self.samples() if isinstance(line, dict) and line["type"] == kind]

    def wait_until(self, happened: Callable[[], T], otherwise: str) -> T:
        """The first true answer of `happened`, which must come before the machine ends or hangs."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            too_late = self.ended() or time.monotonic() > deadline
            if found := happened():
                return found
            assert not too_late, f"{otherwise}; {self.describe()}"
            time.sleep(0.05)

    def wait_for(self, kind: str) -> dict:
        """The first line of this type."""
        return self.wait_until(lambda: self.lines(kind), f"no {kind!r} line")[0]

    def wait_until_ended(self) -> None:
        self.wait_until(self.ended, "still running")

    def describe(self) -> str:
        console = ""
        if self.console_path.exists():
            console = self.console_path.read_text(errors="replace")
        return f"console: {console[-2000:]}\nsamples: {self.samples()[-10:]}"

    def batches(self) -> list[tuple[dict, list[dict]]]:
        """Each batch line with its rows as dictionaries."""
        found: list[tuple[dict, list[dict]]] = []
        for line in self.samples():
            if isinstance(line, list):
                found[-1][1].append(dict(zip(found[-1][0]["columns"], line, strict=True)))
            elif line["type"] == "batch":
                found.append((line, []))
        return found


def interface(number: int, peers: tuple[int, ...], mtu: int = 1500) -> dict:
    def mac(host: int) -> str:
        return f"02:53:44:00:00:{host:02x}"

    return {
        "device": "eth0",
        "mac": mac(number),
        "address": f"10.0.0.{number}/24",
        "mtu": mtu,
        "offloads": False,
        "neighbours": [{"address": f"10.0.0.{peer}", "mac": mac(peer)} for peer in peers],
    }


def job(machine: str, interfaces: list[dict], **fields: object) -> dict:
    return {
        "version": 1,
        "machine": machine,
        "seed": 1234567890123456789,
        "clock": "monotonic",
        "interfaces": interfaces,
        "bridge": None,
        "files": {},
        "services": [],
        "start_ns": 0,
        "steps": [],
        **fields,
    }


def run_pair(
    folder: Path, image: Path, client_job: dict, server_job: dict, counted: Callable[[dict], bool] | None = None
) -> tuple[Guest, Guest]:
    """Runs a client against a server on one wire until the client is done; both are stopped.

    `counted`: until the server, too, has reported such counters, which it does whenever it has been idle.
    """
    ends = folder / "client.sock", folder / "server.sock"
    server = Guest(folder / "server", image, server_job)
    client = Guest(folder / "client", image, client_job)
    with server, client:
        server.start((ends[1], ends[0]))
        client.start(ends)
        client.wait_for("done")
        if counted is not None:
            server.wait_until(lambda: any(map(counted, server.lines("counters"))), "not all was counted")
    return client, server
