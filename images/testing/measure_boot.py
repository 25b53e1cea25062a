# SPDX-License-Identifier: Apache-2.0
"""Boots a built image and prints what it costs until the guest says ready: virtual seconds (8 ns an instruction), host
processor and wall seconds, and the memory of QEMU. The first argument names the image; --recipe R, where it comes next,
its recipe. The others are added to the kernel's command line, and -NAME leaves the initcall NAME in again."""

import json
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, Self

from recipe.image import recipes
from testing.guest import ICOUNT, IMAGES, Guest

EPOCH = 946684800  # -rtc base of the measured machine
NS_PER_INSTRUCTION = 8
TICKS_PER_S = 100
PCAP_HEADER = 24


def altered(cmdline: str, words: list[str]) -> str:
    for word in words:
        if word.startswith("-"):
            cmdline = cmdline.replace(f",{word[1:]}", "").replace(f"={word[1:]},", "=")
        else:
            cmdline += f" {word}"
    return cmdline


class Asked(NamedTuple):
    """A built image, and the command line to boot it with."""

    image: Path
    cmdline: str

    @classmethod
    def of(cls, arguments: list[str]) -> Self:
        """NAME [--recipe R] [WORD]... Ends the program where that is not built."""
        name, *words = arguments
        recipe = recipes(name)[0]
        if words[:1] == ["--recipe"] and len(words) > 1:
            recipe, words = words[1], words[2:]
        image = IMAGES / "out" / recipe / name
        if not (image / "manifest.json").is_file():
            sys.exit(f"images/out/{recipe}/{name} is not built: ./sundial images build {name} --recipe {recipe}")
        return cls(image, altered(json.loads((image / "manifest.json").read_text())["cmdline"], words))


def memory_mib(pid: int) -> dict[str, int]:
    fields = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in ("VmRSS", "RssAnon", "RssFile"):
            fields[key] = int(value.split()[0]) // 1024
    return fields


def main() -> None:
    asked = Asked.of(sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        guest = Guest(folder / "guest", asked.image, {"version": 1, "wait": True}, ICOUNT, cmdline=asked.cmdline)
        capture = folder / "guest" / "wire.pcap"
        with guest:
            begin = time.monotonic()
            guest.start((folder / "a", folder / "b"))
            while not capture.exists() or capture.stat().st_size <= PCAP_HEADER + 16:
                if guest.ended() or time.monotonic() - begin > 60:
                    sys.exit(f"no ready frame; {guest.describe()}")
                time.sleep(0.01)
            wall = time.monotonic() - begin
            stat = Path(f"/proc/{guest.pid()}/stat").read_text().rsplit(")", 1)[1].split()
            cpu = (int(stat[11]) + int(stat[12])) / TICKS_PER_S
            memory = memory_mib(guest.pid())
        seconds, micros = struct.unpack_from("<II", capture.read_bytes(), PCAP_HEADER)
    virtual = seconds - EPOCH + micros / 1e6
    print(
        f"virtual {virtual:.3f} s = {virtual / NS_PER_INSTRUCTION * 1000:.0f} M instructions,"
        f" processor {cpu:.2f} s, wall {wall:.2f} s, memory MiB {memory}"
    )


if __name__ == "__main__":
    main()
