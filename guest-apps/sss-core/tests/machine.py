# SPDX-License-Identifier: Apache-2.0
"""Boots the kernel's core in plain QEMU, in virtual time; and archives of tasks made by hand."""

import re
import struct
import subprocess
import time
from pathlib import Path
from typing import IO

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


def boot_list(
    built: Path, folder: Path, programs: list[str], files: dict[str, bytes], *, cpu: str = "qemu64"
) -> dict[str, str]:
    """One boot that runs the programs one after another; `files` are added to the archive."""
    lines = "".join(f"{program}\n" for program in programs).encode()
    return boot_archive(built, folder, (built / "tasks.cpio").read_bytes() + newc({**files, "list": lines}), cpu=cpu)


def boot_archive(built: Path, folder: Path, content: bytes, *, cpu: str = "qemu64") -> dict[str, str]:
    """One boot that runs the archive's list of programs -> what each printed, by its line; "" is the kernel before the
    first. After a panic or a hang the programs that follow are missing. The archive stays in `folder`."""
    archive = folder / "archive"
    archive.write_bytes(content)
    try:
        console = boot(built, "list", archive=archive, cpu=cpu)
    except subprocess.TimeoutExpired as hang:
        console = (hang.stdout or b"").decode(errors="replace") + "\nthe machine hangs\n"
    kernel, *parts = re.split(r"^program ", console, flags=re.MULTILINE)
    return {"": kernel} | {program: output for program, _, output in (part.partition("\n") for part in parts)}


def monitor(built: Path, folder: Path, line: str, question: str) -> str:
    """The answer of QEMU's monitor once the kernel has booted and the CPU is idle."""
    serial = folder / "serial"
    argv = [*command(built / "core", built / "tasks.cpio", line), "-serial", f"file:{serial}", "-monitor", "stdio"]
    serial.touch()  # QEMU's monitor may answer before it makes it
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as machine:
        assert machine.stdin is not None
        assert machine.stdout is not None

        def ask(what: str) -> str:
            machine.stdin.write(f"{what}\n".encode())
            machine.stdin.flush()
            return _until_prompt(machine.stdout)

        try:
            answer = _until_prompt(machine.stdout)
            deadline = time.monotonic() + SECONDS
            while b"boot " not in serial.read_bytes() or "HLT=1" not in answer:
                assert time.monotonic() < deadline, serial.read_text(errors="replace")
                time.sleep(0.05)
                answer = ask("info registers")
            return ask(question)
        finally:
            machine.kill()


def _until_prompt(output: IO[bytes]) -> str:
    heard = b""
    while not heard.endswith(b"(qemu) "):
        byte = output.read(1)
        assert byte != b"", heard
        heard += byte
    return heard.decode(errors="replace")


def newc(files: dict[str, bytes]) -> bytes:
    """A cpio archive as the kernel reads it."""

    def padded(data: bytes) -> bytes:
        return data + bytes(-len(data) % 4)

    archive = b""
    for name, mode, data in [*((name, 0o100755, data) for name, data in files.items()), ("TRAILER!!!", 0, b"")]:
        fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
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
