# SPDX-License-Identifier: Apache-2.0
"""Servers that their job kills in a call: which requests they could not answer."""

from __future__ import annotations

import pytest

from sundial.verify.sockets.deaths import Death, Request, silences

FOREVER = 1 << 62


def requests(answered: str, calls: str | None = None) -> list[Request]:
    """One a letter, a second apart: + answered, - not; `calls`: of which call each is, in turn."""
    return [(place, None if calls is None else ord(calls[place]), sign == "+") for place, sign in enumerate(answered)]


@pytest.mark.parametrize(
    ("answered", "call", "answers_it", "restarts", "dead"),
    [
        ("++-+", 3, False, True, [(2, 3)]),
        ("++-+-+", 3, False, True, [(2, 3)]),  # the second life has had one call only
        ("++-++-+", 3, False, True, [(2, 3), (5, 6)]),
        ("++--", 3, False, False, [(2, FOREVER)]),
        ("+++-+", 3, True, True, [(2, 4)]),
        ("++-+", 3, True, True, [(3, FOREVER)]),  # one that answers the call in which it ends
        ("-+++", 3, False, True, []),  # the first was lost by its fault
        ("++", 3, False, True, []),
    ],
)
def test_a_server_is_silent_from_the_call_in_which_it_is_killed_until_it_answers_again(
    answered: str, call: int, answers_it: bool, restarts: bool, dead: list[tuple[int, int]]
) -> None:
    assert silences(requests(answered), Death(call, answers_it, restarts, keeps=False)) == dead


@pytest.mark.parametrize(("keeps", "dead"), [(True, [(3, 4)]), (False, [(2, 4)])])
def test_a_reply_that_is_kept_is_no_call_of_the_server(keeps: bool, dead: list[tuple[int, int]]) -> None:
    """The second request is the first one again; the next one waits for a server that has ended, or ends it."""
    came = requests("++--+" if not keeps else "+++-+", "aabcd" if not keeps else "aabcc")
    assert silences(came, Death(3, False, True, keeps)) == dead
