# SPDX-License-Identifier: Apache-2.0
"""The control connection of an iperf3 test (iperf 3.12, `iperf_client_api.c`): what both ends say on it.

The client sends its cookie, its parameters, the word that the test is over, its results and the word that all is done;
the server the words that lead through the test and, before the last, its own results. Each word is one byte; parameters
and results are JSON behind their length in four bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

COOKIE = 37
"""36 characters and a zero byte; each connection of a test begins with it."""
TEST_START, TEST_RUNNING, TEST_END = 1, 2, 4
PARAM_EXCHANGE, CREATE_STREAMS, EXCHANGE_RESULTS, DISPLAY_RESULTS, IPERF_DONE = 9, 10, 13, 14, 16
_BEFORE = bytes([PARAM_EXCHANGE, CREATE_STREAMS, TEST_START, TEST_RUNNING, EXCHANGE_RESULTS])
RESULTS_AT = len(_BEFORE) - 1
"""The place in what the server says of the word with which it ends the test."""
_LENGTH = 4


@dataclass(frozen=True)
class Control:
    """What was said: the client's parameters, and each end's results."""

    parameters: dict[str, Any]
    client: dict[str, Any]
    server: dict[str, Any]


def read_control(cookie: str, asked: bytes, answered: bytes) -> Control | str:
    """Both directions of the connection, or why they are not those of a test."""
    if asked[:COOKIE] != cookie.encode() + b"\0":
        return "the client begins with another cookie"
    parameters, rest = _document(asked[COOKIE:])
    if parameters is None:
        return "the client's parameters cannot be read"
    if rest[:1] != bytes([TEST_END]):
        return "the client does not say that the test is over"
    client, rest = _document(rest[1:])
    if client is None:
        return "the client's results cannot be read"
    if rest != bytes([IPERF_DONE]):
        return "the client does not end with the word that all is done"
    if not answered.startswith(_BEFORE):
        return "the server does not lead through the test"
    server, rest = _document(answered[len(_BEFORE) :])
    if server is None:
        return "the server's results cannot be read"
    if rest != bytes([DISPLAY_RESULTS]):
        return "the server does not end with the word to show the results"
    return Control(parameters, client, server)


def _document(text: bytes) -> tuple[dict[str, Any] | None, bytes]:
    """The JSON object at the beginning, and what is behind it."""
    end = _LENGTH + int.from_bytes(text[:_LENGTH], "big")
    if len(text) < max(end, _LENGTH):
        return None, text
    try:
        value = json.loads(text[_LENGTH:end])
    except (ValueError, RecursionError):
        return None, text
    return (value, text[end:]) if isinstance(value, dict) else (None, text)
