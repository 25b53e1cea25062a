# SPDX-License-Identifier: Apache-2.0
"""Verification of toys: they are found by their number."""

from __future__ import annotations

from typing import Any

import polars as pl
from sundial.workloads.toy.expect import HEADER, NAME, expect_call

from sundial.expect import Call, Shape
from sundial.verify.sockets.protocol import SocketDefaults, SocketProtocol
from sundial.verify.workload import Verifier, WorkloadVerifier


class _Toy(SocketDefaults):
    client_app = "toy-client"
    transports = ("udp",)

    def expect(self, shape: Shape, options: Any) -> Call:
        return expect_call(shape)

    def datagram_key(self) -> pl.Expr:
        head = pl.col("udp_head")
        named = head.str.starts_with(NAME.hex()) & (head.str.len_chars() >= 2 * HEADER)
        return pl.when(named).then(head.str.slice(2 * len(NAME), 8)).str.to_integer(base=16, strict=False)


SOCKETS: SocketProtocol = _Toy()
KIND: WorkloadVerifier = Verifier(sockets=SOCKETS)
