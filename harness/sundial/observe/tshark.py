# SPDX-License-Identifier: Apache-2.0
"""tshark as a function from the bytes of a capture and a list of fields to a table of text.

The capture goes to tshark's standard input as it is made, and what tshark prints is read as it comes: neither is ever
in a file or in memory as a whole, and nothing is left behind when this process is killed.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import shutil
import struct
import subprocess
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import polars as pl

from sundial.errors import BadInput, HostLacks
from sundial.observe.pcapng import BYTE_ORDER, SECTION

AGGREGATOR = ","
"""Between the values of a field that occurs more than once in a frame, in either form of output."""

ROWS_BYTES = 2 << 20
"""So much of the output becomes a piece of the table at once."""
PIPE_BYTES = 1 << 20
_PAUSE_S = 0.2
READ_STANDARD_INPUT = ("-n", "-r", "-")
_NOWHERE = "/nonexistent"
ENVIRONMENT = {
    # A user's own preferences must not change what is found.
    "WIRESHARK_CONFIG_DIR": _NOWHERE,
    # Nor must plugins, such as those that `sundial wireshark install` has put there.
    "HOME": _NOWHERE,
    # Names of vendors, ports and enterprises: -n shows none, and to read them, for each section of a capture (-M)
    # again, is half of what a small capture takes. To root, Wireshark gives them nevertheless.
    "WIRESHARK_DATA_DIR": _NOWHERE,
    "LC_ALL": "C.UTF-8",
}


def dissect(
    capture: Iterable[bytes],
    fields: Sequence[str],
    *,
    name: Path,
    options: Sequence[str] = (),
    display_filter: str | None = None,
    whole: bool = False,
) -> Iterator[pl.DataFrame]:
    """Tables with one row a frame and one text column a field, in order; a field that a frame does not have is null.

    Fields are asked for as columns of the packet list, since tshark then builds only the part of its tree that they
    need and is twice as fast as with `-T fields`; bytes longer than 36 are abbreviated there. `whole` asks for all.
    `name` is the file to name in errors.
    """
    command = _command(fields, options, display_filter, whole)
    with start(command, {**os.environ, **ENVIRONMENT}) as tshark:
        assert tshark.stdin is not None
        assert tshark.stdout is not None
        assert tshark.stderr is not None
        said: list[bytes] = []
        feeder = threading.Thread(target=_feed, args=(tshark.stdin, capture), daemon=True)
        listener = threading.Thread(target=_listen, args=(tshark.stderr, said), daemon=True)
        feeder.start()
        listener.start()
        try:
            yield from _tables(tshark.stdout, fields)
        except BaseException:
            tshark.kill()
            raise
        finally:
            feeder.join()
            listener.join()
    if tshark.returncode != 0:
        raise _failed(said, name)


def _failed(said: Sequence[bytes], name: Path) -> BadInput:
    lines = b"".join(said).decode(errors="replace").splitlines()
    reason = [line for line in lines if line.startswith("tshark:")] or ["tshark: failed"]
    return BadInput(reason[-1], file=str(name), allowed="a capture that tshark can read")


def list_frames(
    feed: Callable[[IO[bytes]], None],
    columns: Sequence[str],
    *,
    name: Path,
    options: Sequence[str] = (),
    display_filter: str | None = None,
    before: Sequence[str] = (),
) -> Iterator[list[str]]:
    """The packet list: of each frame its columns, which are formats of Wireshark such as %p, as text. A line comes as
    soon as `feed` has written the frame, on a thread of its own.

    `options` are words of tshark's command line, `before` words in front of it. Raises BadInput, HostLacks, and what
    `feed` raises.
    """
    said: list[bytes] = []
    command = [*before, *_listing(columns, options, display_filter)]
    status = yield from _listed(command, feed, said)
    if status and display_filter is not None:
        # Whether it is the filter's fault is seen without frames.
        said_of_none: list[bytes] = []
        for _ in _listed(command, _write_no_frames, said_of_none):
            pass
        if said_of_none and any(line.startswith(b"tshark:") for line in said_of_none[0].splitlines()):
            reason = str(_failed(said_of_none, name).message).partition("tshark: ")[2].partition("; allowed")[0]
            raise BadInput(f"--filter: {reason}", allowed="a display filter of Wireshark")
    if status:
        raise _failed(said, name)


def _write_no_frames(to: IO[bytes]) -> None:
    to.write(struct.pack("<IIIHHqI", SECTION, 28, BYTE_ORDER, 1, 0, -1, 28))


def _listed(
    command: Sequence[str], feed: Callable[[IO[bytes]], None], said: list[bytes]
) -> Generator[list[str], None, int]:
    """The cells of each line, then the exit status; what tshark says on standard error is added to `said`."""
    with start(command, {**os.environ, **ENVIRONMENT}) as tshark:
        assert tshark.stdin is not None
        assert tshark.stdout is not None
        assert tshark.stderr is not None
        failed: list[Exception] = []
        # Daemons: what feeds may wait for more, and is not needed once the reader has enough.
        threading.Thread(target=_feed_by, args=(feed, tshark.stdin, failed), daemon=True).start()
        tshark.stdin = None  # the thread closes it
        listener = threading.Thread(target=_listen, args=(tshark.stderr, said), daemon=True)
        listener.start()
        try:
            for line in _lines(tshark.stdout.fileno()):
                yield [text.strip() for text in line.decode(errors="replace").split("\t")]
        except BaseException:
            tshark.kill()
            raise
        listener.join()
    if failed:
        raise failed[0]
    return tshark.returncode


def _lines(output: int) -> Iterator[bytes]:
    """Lines of a pipe. A signal may reach another thread while this one reads, and is noticed only in between: so it
    never waits for long."""
    rest = b""
    while True:
        if not select.select([output], [], [], _PAUSE_S)[0]:
            continue
        data = os.read(output, PIPE_BYTES)
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
        if not data:
            yield from [rest] if rest else []
            return


def _listing(columns: Sequence[str], options: Sequence[str], display_filter: str | None) -> list[str]:
    titled = ",".join(f'"{place}","{column}"' for place, column in enumerate(columns))
    shown = [] if display_filter is None else ["-Y", display_filter]
    return [_program(), *READ_STANDARD_INPUT, "-l", "-T", "tabs", "-o", f"gui.column.format:{titled}", *options, *shown]


def _feed_by(feed: Callable[[IO[bytes]], None], stream: IO[bytes], failed: list[Exception]) -> None:
    try:
        with contextlib.suppress(BrokenPipeError), stream:
            feed(stream)
    except Exception as error:  # the reader raises it
        failed.append(error)


def start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """tshark, joined to this process by three pipes."""
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def _command(fields: Sequence[str], options: Sequence[str], display_filter: str | None, whole: bool) -> list[str]:
    command = [_program(), *READ_STANDARD_INPUT]
    if whole:
        command += ["-T", "fields", "-E", "separator=/t", "-E", f"aggregator={AGGREGATOR}"]
        command += [word for field in fields for word in ("-e", field)]
    else:
        columns = ",".join(f'"{place}","%Cus:{field}:0:U"' for place, field in enumerate(fields))
        command += ["-T", "tabs", "-o", f"gui.column.format:{columns}"]
    for option in options:
        command += option.split(" ", 1)
    if display_filter is not None:
        command += ["-Y", display_filter]
    return command


def _program() -> str:
    program = shutil.which("tshark")
    if program is None:
        raise HostLacks("tshark is not installed", hint="apt-get install tshark")
    return program


def _feed(stream: IO[bytes], capture: Iterable[bytes]) -> None:
    """Everything to tshark; it may end before, which its exit status tells."""
    with contextlib.suppress(BrokenPipeError), stream:
        buffer = bytearray()
        for part in capture:
            buffer += part
            if len(buffer) >= PIPE_BYTES:
                stream.write(buffer)
                buffer.clear()
        stream.write(buffer)


def _listen(stream: IO[bytes], said: list[bytes]) -> None:
    said.append(stream.read())


def _tables(output: IO[bytes], fields: Sequence[str]) -> Iterator[pl.DataFrame]:
    rest = b""
    while data := output.read(ROWS_BYTES):
        whole, newline, rest = (rest + data).rpartition(b"\n")
        if newline:
            yield _table(whole + newline, fields)
    if rest:
        yield _table(rest, fields)


def _table(text: bytes, fields: Sequence[str]) -> pl.DataFrame:
    return pl.read_csv(
        io.BytesIO(text),
        separator="\t",
        has_header=False,
        new_columns=list(fields),
        schema=dict.fromkeys(fields, pl.String),
        quote_char=None,
    )
