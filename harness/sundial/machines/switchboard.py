# SPDX-License-Identifier: Apache-2.0
"""Many callers and one command port a machine: each gets a number, and a caller that goes away is hung up.

Runs on a thread with an event loop of its own. What waits here for a caller that does not read is bounded: a guest may
send so much and no more until the caller has taken it (guest-apps/runner/exec.h), and one that sends more is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from sundial.machines.command import LINE_BYTES

REQUEST_BYTES = 1 << 20
"""Of a caller's line: as much as a guest reads."""
WAITING_BYTES = 1 << 20
"""Of answers that a caller has not read."""


class Switchboard:
    """The command ports of all machines of a topology."""

    def __init__(self) -> None:
        self._ports: dict[Path, _Port] = {}
        self._runs = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="switchboard", daemon=True)
        self._thread.start()
        self._runs.wait()

    def serve(self, port: Path, callers: Path, *, streams: bool) -> None:
        """Serve callers on the socket `callers` from the guest behind `port`, instead of one that was there before.
        Raises OSError."""
        served, before = _Port(streams), self._ports.pop(callers, None)
        if before is not None:
            self._call(before.close())
        self._call(served.open(port, callers))
        self._ports[callers] = served

    def close(self) -> None:
        """No more callers; those that wait get an error."""
        for port in self._ports.values():
            self._call(port.close())
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._runs.set()
        await self._over.wait()

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()


class _Port:
    """One machine's command port."""

    def __init__(self, streams: bool) -> None:
        self._streams = streams
        self._numbers = itertools.count(1)
        self._callers: dict[int, asyncio.StreamWriter] = {}
        """By number, in the order in which they called: those whose command has not ended."""
        self._gone = ""
        """Why there are no more answers."""
        self._sending = asyncio.Lock()

    async def open(self, port: Path, callers: Path) -> None:
        reader, self._guest = await asyncio.open_unix_connection(str(port), limit=LINE_BYTES)
        self._reading = asyncio.ensure_future(self._hear(reader))
        self._server = await asyncio.start_unix_server(self._serve, str(callers), limit=REQUEST_BYTES)

    async def close(self) -> None:
        self._end("it was taken down")
        self._server.close()
        self._reading.cancel()
        self._guest.close()
        with contextlib.suppress(OSError):
            await self._guest.wait_closed()

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        """Every line of the guest to the caller that it is for."""
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                self._guest.close()
                return self._end(f"its guest sent a line of more than {LINE_BYTES} bytes to the command port")
            except OSError:
                line = b""
            if not line:
                return self._end("it has ended")
            answer = _decoded(line)
            if answer is not None:
                self._pass_on(answer)

    def _pass_on(self, answer: dict[str, Any]) -> None:
        number = answer.pop("id", None)
        if number is None and "error" in answer:
            # A guest that could not read a request does not know its number; such a guest answers in order.
            number = next(iter(self._callers), None)
        caller = self._callers.get(number) if isinstance(number, int) else None
        if caller is None:
            return
        _answer(caller, answer)
        if "status" in answer or "error" in answer:
            del self._callers[number]
        elif caller.transport.get_write_buffer_size() > WAITING_BYTES:
            _answer(caller, {"gone": f"its guest sends more than the {WAITING_BYTES} bytes that wait for their reader"})
            caller.close()

    def _end(self, why: str) -> None:
        self._gone = self._gone or why
        for caller in self._callers.values():
            _answer(caller, {"gone": self._gone})
        self._callers.clear()

    async def _serve(self, reader: asyncio.StreamReader, caller: asyncio.StreamWriter) -> None:
        """One caller, until it goes away."""
        number = next(self._numbers)
        self._callers[number] = caller
        try:
            while (request := _decoded(await reader.readline())) is not None:
                if self._gone:
                    # Only now: a caller could not write to a connection that was closed before, and would not read why.
                    _answer(caller, {"gone": self._gone})
                    break
                await self._send({**request, "id": number})
        except ValueError:
            _answer(caller, {"error": f"a request of more than {REQUEST_BYTES} bytes"})
        except OSError:
            pass
        finally:
            if self._callers.pop(number, None) is not None and self._streams and not self._gone:
                await self._send({"id": number, "hang_up": True})
            caller.close()

    async def _send(self, request: dict[str, Any]) -> None:
        async with self._sending:
            try:
                self._guest.write(json.dumps(request).encode() + b"\n")
                await self._guest.drain()
            except OSError:
                self._end("it has ended")


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _answer(caller: asyncio.StreamWriter, answer: dict[str, Any]) -> None:
    if not caller.is_closing():
        caller.write(json.dumps(answer).encode() + b"\n")
