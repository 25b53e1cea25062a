# SPDX-License-Identifier: Apache-2.0
"""Verification of steps whose client reached no server: the capture shows why, or the verdict says that it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.verify.bed import CLIENT, SERVER, SYN, Bed, Stream
from tests.workloads.rpyc.test_verify import CLIENT_PORT, MSS, PORT, Spoken, fields

TIMEOUT_NS = 1_000_000_000


class Silent(Spoken):
    """A run whose client makes no call; `opens`: what its connection comes to."""

    opens: Callable[[Silent, Bed], None]
    error = "ConnectionRefusedError"
    client_port: int | None = None

    def talk(self, bed: Bed) -> None:
        self.opens(self, bed)
        self.options["total_timeout_ms"] = TIMEOUT_NS // 1_000_000
        self.counters = []
        for line in self.batches:
            line |= {"client_port": self.client_port, "exchanges": 0, "context_switches": 0}
        for row in self.rows:
            row[1:] = [bed.now, bed.now, 0, 0, None, f"cannot connect: {self.error}"]


def refused(silent: Silent, bed: Bed) -> None:
    Stream(bed, CLIENT_PORT, PORT, {CLIENT: 50, SERVER: 0}).refuse()


def unanswered(silent: Silent, bed: Bed) -> None:
    """Its SYN is lost, and so is that which it sends again."""
    silent.error = "TimeoutError"
    stream = Stream(bed, CLIENT_PORT, PORT, {CLIENT: 50, SERVER: 0})
    for _ in range(2):
        bed.send(CLIENT, [stream.frame(CLIENT, SYN, 50)], lose=(0,))
    bed.now += TIMEOUT_NS


def rootless(silent: Silent, bed: Bed, *, answers: int = 0) -> None:
    """It asks for the root object, and gives up."""
    silent.error, silent.client_port = "TimeoutError", CLIENT_PORT
    stream = Stream(bed, CLIENT_PORT, PORT, {CLIENT: 50, SERVER: 900})
    stream.open()
    for reply, data in silent.order[: 1 + answers]:
        stream.write(SERVER if reply else CLIENT, data, [MSS] * (len(data) // MSS) + [len(data) % MSS])
    bed.now += TIMEOUT_NS


def ended(silent: Silent, bed: Bed) -> None:
    """Its server has ended the connection when it asks."""
    silent.error, silent.client_port = "EOFError", CLIENT_PORT
    stream = Stream(bed, CLIENT_PORT, PORT, {CLIENT: 50, SERVER: 900})
    stream.open()
    stream.write(CLIENT, silent.order[0][1], [len(silent.order[0][1])])
    stream.close(SERVER)


def silent(folder: Path, opens: Callable[[Silent, Bed], None]) -> Silent:
    found = Silent(folder)
    found.opens = opens
    return found


@pytest.mark.parametrize("opens", [refused, unanswered, rootless])
def test_a_client_that_reached_no_server_for_a_reason(tmp_path: Path, opens: Callable[[Silent, Bed], None]) -> None:
    found = silent(tmp_path, opens)
    settled = found.settle()
    assert fields(settled) == []
    assert settled.observed.is_empty()
    assert settled.classes.height == found.frames.filter(found.frames["fate"].is_null()).height


@pytest.mark.parametrize(
    ("opens", "error"),
    [
        (refused, "TimeoutError"),
        (refused, "OSError"),
        (refused, "KeyError"),
        (unanswered, "ConnectionRefusedError"),
        (rootless, "EOFError"),
    ],
)
def test_a_reason_that_the_capture_does_not_show(
    tmp_path: Path, opens: Callable[[Silent, Bed], None], error: str
) -> None:
    def otherwise(silent: Silent, bed: Bed) -> None:
        opens(silent, bed)
        silent.error = error

    assert fields(silent(tmp_path, otherwise).settle()) == ["sample.error"]


def test_a_server_that_ends_the_connection_without_being_killed(tmp_path: Path) -> None:
    """It explains the client's failure, and has no reason itself."""
    assert fields(silent(tmp_path, ended).settle()) == ["rpyc.connection"]


def test_a_client_that_gives_up_too_early(tmp_path: Path) -> None:
    def hasty(silent: Silent, bed: Bed) -> None:
        unanswered(silent, bed)
        bed.now -= 100_000

    assert fields(silent(tmp_path, hasty).settle()) == ["sample.error"]


def test_a_client_that_had_the_root_object(tmp_path: Path) -> None:
    def had(silent: Silent, bed: Bed) -> None:
        rootless(silent, bed, answers=1)

    assert fields(silent(tmp_path, had).settle()) == ["sample.error"]


def test_rows_of_calls_that_were_never_made(tmp_path: Path) -> None:
    found = silent(tmp_path, refused)
    talk = found.talk

    def changed(bed: Bed) -> None:
        talk(bed)
        found.rows[3][5] = 7
        found.rows[5][6] = "EOFError"
        found.batches[0]["exchanges"] = 1

    found.talk = changed  # type: ignore[method-assign]
    assert fields(found.settle()) == ["nodes/client batch 0 exchanges", "sample.xid", "sample.error"]


def test_two_attempts_of_one_step(tmp_path: Path) -> None:
    def twice(silent: Silent, bed: Bed) -> None:
        for port in (CLIENT_PORT, CLIENT_PORT + 1):
            Stream(bed, port, PORT, {CLIENT: 50, SERVER: 0}).refuse()

    assert fields(silent(tmp_path, twice).settle()) == ["rpyc.connection"]
