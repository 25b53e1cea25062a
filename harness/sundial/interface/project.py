# SPDX-License-Identifier: Apache-2.0
"""All files of an interface of your own: C, Makefile, scenario and check. Reads the runtime's; the rest is pure."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from sundial.errors import BadInput
from sundial.interface.language import parse
from sundial.interface.skeleton import Sources, datagrams
from sundial.interface.types import Interface

RUNTIME = Path(__file__).parent / "runtime"
_STEM = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
_STEM_ALLOWED = "a letter, then up to 31 letters, digits and _, then .x"
_TAKEN = frozenset(["xdr", "rpc", "server", "client"])
"""Files of the runtime, and those that are to be changed."""
_OF_C = re.compile(r"u?int\w*|s?size|off|ptrdiff|wchar|wint|va|fpos|max_align|sig_atomic", re.IGNORECASE)
"""Names that are types or limits of C with another word behind them, such as size_t."""
_TEXT_MODE, _PROGRAM_MODE = 0o644, 0o755
PORT = 20_000
TIMES = 10
_MAKEFILE = """\
# From FILE, by `sundial rpc new`. Static, so that the programs run on any image of Linux.
CC = gcc
CFLAGS = -O2 -std=c11 -Wall -Wextra -Wno-unused-parameter -fno-strict-aliasing
LDFLAGS = -static -s
SHARED = STEM_rpc.o xdr.o rpc.o

all: STEM-server STEM-client

STEM-server: server.o STEM_serve.o $(SHARED)
	$(CC) $(LDFLAGS) -o $@ $^

STEM-client: client.o $(SHARED)
	$(CC) $(LDFLAGS) -o $@ $^

server.o client.o STEM_serve.o $(SHARED): STEM.h rpc.h xdr.h

clean:
	rm -f *.o STEM-server STEM-client

.PHONY: all clean
"""
_CHECK = """\
#!/bin/sh
# Compares each message of a run with FILE, and with what clients printed. `expect.check` starts it.
exec SUNDIAL rpc verify --lines "$(dirname "$0")/FILE" "$1"
"""
_SCENARIO = """\
# From FILE, by `sundial rpc new`: `make` in this folder first.
description: Each procedure of FILE, TIMES times

topology:                          # inside; or a name, or a file
  machines:
    client:
      interfaces:
        eth0: {address: 10.0.0.1/24}
      files:
        /usr/bin/STEM-client: {from: STEM-client, mode: "0755"}
    server:
      interfaces:
        eth0: {address: 10.0.0.2/24}
      files:
        /usr/bin/STEM-server: {from: STEM-server, mode: "0755"}
  segments:
    lan:
      kind: link
      rate: 100 Mbit/s
      ports: ["client:eth0", "server:eth0"]
      # impairments: {both: {loss: 1 %}}

workloads:
  - app: command                   # docs/programs.md explains all fields
    ports:
      udp: {udp: PORT}
      tcp: {tcp: PORT}
    programs:
      server:
        on: server
        role: service
        argv: [STEM-server, "{port.tcp}"]
        ready: {tcp: tcp}
CLIENTS
expect:
  check: [./check]
"""
_CLIENT = """\
      over-NAME:
        on: client
        argv: [STEM-client, "{server}", "{port.NAME}", NAME, "TIMES"]
        after: [AFTER]
"""


def read_interface(path: Path) -> tuple[str, Interface]:
    """The text of a file, and what it defines. Raises BadInput."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(str(error.strerror), file=str(path), allowed="a file in the language of RFC 5531") from None
    except UnicodeDecodeError:
        raise BadInput("is not UTF-8", file=str(path), allowed="a file in the language of RFC 5531") from None
    found = parse(text, str(path))
    if not found.programs:
        allowed = "program NAME { version NAME { ... } = 1; } = 0x20000001;"
        raise BadInput("there is no program", file=str(path), allowed=allowed)
    return text, found


def project(path: Path, sundial: str) -> dict[str, tuple[str, int]]:
    """Text and mode of each file, by name. `sundial`: the command for the check. Raises BadInput."""
    stem = path.name.removesuffix(".x")
    if path.suffix != ".x" or not _STEM.fullmatch(stem) or stem in _TAKEN or _OF_C.fullmatch(stem):
        what = "is the name of another file" if stem in _TAKEN else "cannot be the name of an interface"
        raise BadInput(what, file=str(path), allowed=_STEM_ALLOWED)
    text, interface = read_interface(path)
    sources = Sources(interface, stem, path.name)
    transports = ["udp", "tcp"] if datagrams(interface) else ["tcp"]
    clients = ""
    for number, name in enumerate(transports):
        after = ", ".join(["server", *(f"over-{each}" for each in transports[:number])])
        clients += _CLIENT.replace("NAME", name).replace("AFTER", after)
    words = {"FILE": path.name, "STEM": stem, "PORT": str(PORT), "SUNDIAL": shlex.quote(sundial)}
    texts = {
        path.name: text,
        f"{stem}.h": sources.header(),
        f"{stem}_rpc.c": sources.rpc(),
        f"{stem}_serve.c": sources.service(),
        "server.c": sources.server(),
        "client.c": sources.client(),
        **{each.name: each.read_text() for each in sorted(RUNTIME.iterdir())},
        "Makefile": _filled(_MAKEFILE, words),
        f"{scenario_name(stem)}.yaml": _filled(
            _SCENARIO.replace("CLIENTS\n", clients + "\n"), {**words, "TIMES": str(TIMES)}
        ),
    }
    files = {name: (each, _TEXT_MODE) for name, each in texts.items()}
    return {**files, "check": (_filled(_CHECK, words), _PROGRAM_MODE)}


def is_yours(name: str) -> bool:
    """Whether a file of a project is to be changed by hand, so that an update leaves it."""
    return name in ("server.c", "client.c") or name.endswith(".yaml")


def scenario_name(stem: str) -> str:
    """The name of the scenario of an interface."""
    return stem.lower().replace("_", "-").rstrip("-")


def _filled(text: str, words: dict[str, str]) -> str:
    return re.sub(rf"{'|'.join(words)}", lambda match: words[match[0]], text)
