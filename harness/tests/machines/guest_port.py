# SPDX-License-Identifier: Apache-2.0
"""A guest's command port, played: what it hears, and what it says, line by line."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Say = Callable[..., None]
Hear = Callable[[dict[str, Any], Say], None]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class GuestPort:
    """Serves one host; `hear` gets each request and a function that says an answer."""

    def __init__(self, path: Path, hear: Hear) -> None:
        self.heard: list[dict[str, Any]] = []
        self._hear = hear
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(1)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def say(self, **answer: object) -> None:
        self.stream.sendall(json.dumps(answer).encode() + b"\n")

    def close(self) -> None:
        """As a machine does that ends."""
        self.stream.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    def _serve(self) -> None:
        self.stream = self._server.accept()[0]
        # A host that cuts us off in the middle is what some tests are about.
        with contextlib.suppress(OSError), self._server, self.stream, self.stream.makefile("rb") as lines:
            for line in lines:
                request = json.loads(line)
                self.heard.append(request)
                self._hear(request, self.say)


def echoing(request: dict[str, Any], say: Say) -> None:
    """A guest with one command, `cat`: what it gets it says, until the end of its input or a signal."""
    number = request.get("id")
    if request.get("input") is not None:
        say(id=number, taken=len(base64.b64decode(request["input"])))
        say(id=number, stdout=request["input"])
    elif "input" in request:
        say(id=number, status=0)
    elif "signal" in request:
        say(id=number, status=128 + request["signal"])
