# SPDX-License-Identifier: Apache-2.0
"""The paper's data."""

from __future__ import annotations

from pathlib import Path

from sundial.model.fields import Strict
from sundial.reproduce.paper import Paper


class HeaderBytes(Strict):
    """Bytes of RPC header in a message without data."""

    request: int
    reply: int


class Kamesawa98(Paper):
    """Tables 1 to 4, and the sizes of the headers that the paper names."""

    machines: str
    rpc_header_bytes: HeaderBytes


PATH = Path(__file__).with_name("paper.yaml")
