# SPDX-License-Identifier: Apache-2.0
"""Boots the kernel's core in plain QEMU, in virtual time; and archives of tasks made by hand."""

import contextlib
import struct
import subprocess
from pathlib import Path

SECONDS = 300.0  # after which a machine hangs; a boot takes 0.1 s where the host is idle


def command(
    core: Path, archive: Path, line: str, *, memory_mib: int = 64, shift: int = 3, cpu: str = "qemu64"
) -> list[str]:
    return [
        "qemu-system-x86_64",
        *("-M", "q35", "-accel", "tcg,thread=single", "-cpu", cpu, "-m", str(memory_mib)),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-icount", f"shift={shift},sleep=off,align=off", "-rtc", "base=2000-01-01,clock=vm"),
        *("-kernel", str(core), "-initrd", str(archive), "-append", line),
    ]


def boot(
    built: Path,
    line: str,
    *,
    archive: Path | None = None,
    memory_mib: int = 64,
    shift: int = 3,
    cpu: str = "qemu64",
    seconds: float = SECONDS,
) -> str:
    """The console output until the machine has switched itself off."""
    archive = archive or built / "tasks.cpio"
    argv = command(built / "core", archive, line, memory_mib=memory_mib, shift=shift, cpu=cpu)
    done = subprocess.run([*argv, "-serial", "stdio"], capture_output=True, check=False, timeout=seconds, input=b"")
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(errors="replace")


def monitor(built: Path, line: str, question: str) -> str:
    """The answer of QEMU's monitor, after the machine has had a second of wall time to boot."""
    argv = command(built / "core", built / "tasks.cpio", line)
    with subprocess.Popen(
        [*argv, "-monitor", "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as machine:
        with contextlib.suppress(subprocess.TimeoutExpired):
            machine.wait(1.0)
        return machine.communicate(f"{question}\nquit\n", timeout=SECONDS)[0]


def newc(files: dict[str, bytes]) -> bytes:
    """A cpio archive as the kernel reads it."""

    def padded(data: bytes) -> bytes:
        return data + bytes(-len(data) % 4)

    archive = b""
    for name, data in [*files.items(), ("TRAILER!!!", b"")]:
        fields = [0, 0o100755, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        header = b"070701" + b"".join(b"%08x" % field for field in fields)
        archive += padded(header + name.encode() + b"\0") + padded(data)
    return archive


def elf(
    segments: list[tuple[int, int, bytes]],
    *,
    entry: int = 0x400000,
    machine: int = 62,
    memory: int | None = None,
) -> bytes:
    """An executable of (flags, address, data); the data follow the headers in order."""
    at = 64 + 56 * len(segments)
    headers, data = b"", b""
    for flags, address, content in segments:
        size = len(content) if memory is None else memory
        headers += struct.pack("<IIQQQQQQ", 1, flags, at + len(data), address, address, len(content), size, 4096)
        data += content
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, entry, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    return header + headers + data
