# SPDX-License-Identifier: Apache-2.0
"""Servers of the twelve functions that are killed in a call, for experiments with faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from sundial.model.fields import Strict, Whole
from sundial.model.lists import CALLS_MOST

OPTION = "die_call"
"""Option of server programs."""


class ServerDeath(Strict):
    """Death of a server. It is not restarted: later calls find no server."""

    call: Annotated[int, Whole(1, CALLS_MOST)]
    """Number of the call that has arrived, but has no reply, when the server is killed. Calls are counted from 1 over
    all clients, including unmeasured ones."""


def options(die: ServerDeath | None) -> dict[str, Any]:
    """Options of the server's program."""
    return {} if die is None else {OPTION: die.call}


def call_of(given: Mapping[str, Any]) -> int | None:
    """The call in which a program with these options is killed."""
    found = given.get(OPTION)
    return found if isinstance(found, int) else None


def check_death(
    name: str, die_call: int | None, *, came: int, answered: int, at_once: int, ended: bool
) -> Iterator[tuple[str, str, str]]:
    """Field, expected and seen of what is wrong with the connections of a server.

    `came`: calls that it had; `answered`: those of them that were; `at_once`: how many it may execute at the same time;
    `ended`: it ended a connection before the client did.
    """
    if die_call is None or came < die_call:
        if ended:
            yield f"{name}.connection", "ended by its client", "by the server"
        return
    if not ended:
        yield f"{name}.connection", f"ended by the server, which is killed in call {die_call}", "by its client"
    least, most = max(0, die_call - at_once), die_call - 1
    if not least <= answered <= most:
        expected = str(most) if least == most else f"{least} to {most}"
        yield f"{name}.replies", f"{expected}: the server is killed in call {die_call}", str(answered)
