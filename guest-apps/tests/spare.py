#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A spare becomes the application that is named to it, with options, environment and output: spare.py FOLDER-OF-APPS."""

import fcntl
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

PATIENCE_S = 60


def _pipe() -> tuple[int, int]:
    """Beyond the numbers that the spare has a use for."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


class Spare:
    """One process that waits for its order, as the runner starts it."""

    def __init__(self, apps: Path) -> None:
        source, self.order = _pipe()
        self.output, speaker = _pipe()
        self.records, records = _pipe()

        def give_files() -> None:
            os.dup2(records, 3)
            for file in (3, source, speaker):
                os.set_inheritable(file, True)

        self.process = subprocess.Popen(
            [apps / "spare", str(source), str(speaker)],
            stdout=subprocess.PIPE,
            close_fds=False,
            preexec_fn=give_files,
        )
        for file in (source, speaker, records):
            os.close(file)

    def tell(self, *words: str, speaks: bool) -> None:
        text = b"".join(word.encode() + b"\0" for word in words)
        os.write(self.order, struct.pack("=II", len(text), speaks) + text)
        os.close(self.order)


def a_service_speaks_through_its_pipe(apps: Path) -> None:
    spare = Spare(apps)
    spare.tell(
        "raw-server",
        json.dumps({"transports": ["udp"], "udp_port": 20577}),
        "SUNDIAL_APP=raw-server",
        speaks=True,
    )
    said = os.read(spare.output, 100)
    name = Path(f"/proc/{spare.process.pid}/comm").read_text()
    spare.process.kill()
    assert (said, name) == (b"ready\n", "raw-server\n"), (said, name)
    assert spare.process.communicate(timeout=PATIENCE_S)[0] == b""


def a_step_has_its_options_and_environment(apps: Path) -> None:
    spare = Spare(apps)
    spare.tell(
        "raw-client",
        '{"server":1}',
        "SUNDIAL_APP=raw-client",
        "SUNDIAL_STEP=7",
        speaks=False,
    )
    assert spare.process.wait(PATIENCE_S) != 0
    error = json.loads(os.read(spare.records, 1000))
    assert (error["app"], error["step"]) == ("raw-client", 7) and "option server" in error["message"], error


def one_that_is_told_nothing_ends_with_the_runner(apps: Path) -> None:
    spare = Spare(apps)
    os.close(spare.order)
    assert spare.process.wait(PATIENCE_S) != 0
    assert os.read(spare.records, 1) == b""


def main() -> None:
    apps = Path(sys.argv[1]).resolve()
    a_service_speaks_through_its_pipe(apps)
    a_step_has_its_options_and_environment(apps)
    one_that_is_told_nothing_ends_with_the_runner(apps)


main()
