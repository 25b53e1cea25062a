# SPDX-License-Identifier: Apache-2.0
"""A machine that waits for its job, kept as a file, and machines that are restored from it: as the harness does it, in
plain QEMU."""

import json
import socket
import time
from pathlib import Path

from testing.guest import ICOUNT, PATIENCE_S, Guest

CAPTURE_HEADER = 24


class _Monitor:
    """QEMU's monitor protocol."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        self._lines.readline()  # its greeting
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: object) -> dict:
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while "return" not in (answer := json.loads(self._lines.readline())):
            assert "error" not in answer, answer
        return answer["return"]

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def keep(folder: Path, image: Path) -> Path:
    """Boots the image until it is ready for its job; the file that holds this state."""
    monitor_path, state = folder / "monitor", folder / "state"
    # Whether it was stopped is not kept: a machine that is restored runs.
    extra = (*ICOUNT, "-global", "migration.store-global-state=off", "-qmp", f"unix:{monitor_path},server=on,wait=off")
    with Guest(folder / "waiting", image, {"version": 1, "wait": True}, extra) as guest:
        guest.start((folder / "a", folder / "b"))
        capture = folder / "waiting" / "wire.pcap"
        guest.wait_until(lambda: capture.exists() and capture.stat().st_size > CAPTURE_HEADER, "not ready")
        monitor = _Monitor(monitor_path)
        # A state that was kept of a running machine had damaged memory once (QEMU 7.2).
        monitor.ask("stop")
        monitor.ask("migrate", uri=f"exec:cat > {state}")
        while (status := monitor.ask("query-migrate")["status"]) != "completed":
            assert status in ("setup", "active", "device"), status
            time.sleep(0.05)
        monitor.close()
    return state


def restored(folder: Path, image: Path, state: Path, job: dict, extra: tuple[str, ...] = ()) -> Guest:
    """A machine that goes on from there with this job."""
    return Guest(folder, image, job, (*ICOUNT, "-incoming", f"exec:cat {state}", *extra))
