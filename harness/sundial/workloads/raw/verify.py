# SPDX-License-Identifier: Apache-2.0
"""Verification of raw echoes: named by the sequence number in their header, where they are long enough for one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from sundial.expect import Call, Shape
from sundial.observe import RunDirectory
from sundial.verify.samples import RunSamples
from sundial.verify.sockets.protocol import Bytes, Counts, Message, Part, SocketDefaults, SocketProtocol
from sundial.verify.sockets.served import connections
from sundial.verify.sockets.stream import Stream
from sundial.verify.workload import Background, Verifier, WorkloadVerifier
from sundial.workloads import functions
from sundial.workloads.function_lines import check_function_lines
from sundial.workloads.raw.expect import HEADER, KEYED, MAGIC, expect_call
from sundial.workloads.raw.expect_functions import MAGIC as FUNCTION_MAGIC
from sundial.workloads.raw.verify_content import content, content_field

ATTEMPT = 12
"""Where a header has the number of the attempt (harness/schemas/README.md)."""


MAGICS = (MAGIC, FUNCTION_MAGIC)
_BEGIN = re.compile(b"|".join(map(re.escape, MAGICS)))


def _is_ours(head: pl.Expr) -> pl.Expr:
    """Whether it begins as an echo or a call of a function does."""
    return pl.any_horizontal(*(head.str.starts_with(magic.hex()) for magic in MAGICS))


class _Raw(SocketDefaults):
    client_app = "raw-client"
    server_app = "raw-server"
    by_order = True

    def expect(self, shape: Shape, options: Any) -> Call:
        return expect_call(shape)

    def counts(self, answers: pl.DataFrame) -> Counts:
        over_udp = answers.filter(pl.col("transport") == "udp")
        attempt = pl.col("head").str.slice(2 * ATTEMPT, 8)
        called = pl.col("procedure").is_in(functions.NAMES)
        again = over_udp.filter((pl.col("size") >= HEADER) | called, attempt != "0" * 8)
        return {
            "datagrams": over_udp.height,
            "messages": answers.height - over_udp.height,
            "bytes": int(answers["size"].sum()) + HEADER * answers.filter(called).height,
            "bad_payload": 0,
            "retransmits": again.height,
            "connections": connections(answers),
        }

    def key(self) -> pl.Expr:
        return pl.when((pl.col("size") >= KEYED) | pl.col("procedure").is_in(functions.NAMES)).then(pl.col("xid"))

    def datagram_key(self) -> pl.Expr:
        head = pl.col("udp_head")
        numbered = _is_ours(head) & (head.str.len_chars() >= 2 * KEYED)
        return pl.when(numbered).then(head.str.slice(8, 8)).str.to_integer(base=16, strict=False)

    def content(self, part: Part, seen: Bytes) -> Bytes:
        return content(part, seen)

    def content_field(self, part: Part, place: int) -> str:
        return content_field(part, place)

    def datagram_type(self) -> pl.Expr:
        return pl.when(_is_ours(pl.col("udp_head"))).then(pl.lit("message"))

    def parse(self, stream: Stream, begin: int) -> Message | None:
        header = stream.need(begin, HEADER)
        length = int.from_bytes(header[8:12], "big")
        if len(header) < HEADER or not header.startswith(MAGICS) or length < HEADER:
            return None
        return Message(int.from_bytes(header[4:8], "big"), begin, begin + length, length)

    def find(self, stream: Stream, begin: int) -> int | None:
        return next(stream.search(_BEGIN, begin), None)


class _Verifier(Verifier):
    def background(
        self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, ahead_ns: Mapping[str, int]
    ) -> Background:
        return Background(check_function_lines(samples, SOCKETS.client_app))


SOCKETS: SocketProtocol = _Raw()
KIND: WorkloadVerifier = _Verifier(sockets=SOCKETS)
