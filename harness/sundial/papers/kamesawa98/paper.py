# SPDX-License-Identifier: Apache-2.0
"""The paper's data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sundial.model.fields import Strict
from sundial.reproduce.paper import Paper, Scale


class HeaderBytes(Strict):
    """Bytes of RPC header in a message without data."""

    request: int
    reply: int


class Extent(Strict):
    """How much is run."""

    calls: int
    operations: int
    """Of a stream."""
    clients: tuple[int, ...]
    depths: tuple[int, ...]
    rates: tuple[int, ...]
    """Loss, duplication and reordering, in percent."""
    deaths: tuple[Literal["before", "during", "after"], ...]
    """Of a server, by the call that it is killed at."""
    fault_calls: int
    long_calls: int
    """Of the long run that must lose and double nothing."""


class Kamesawa98(Paper):
    """Tables 1 to 4, and the sizes of the headers that the paper names."""

    scales: Mapping[Scale, Extent]
    machines: str
    rpc_header_bytes: HeaderBytes
