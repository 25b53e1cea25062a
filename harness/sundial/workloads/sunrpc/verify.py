# SPDX-License-Identifier: Apache-2.0
"""Verification of Sun RPC: calls over UDP and TCP by their xid, record marks, one-way calls, and the port mapper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from sundial.expect import Call, Shape
from sundial.observe import RunDirectory
from sundial.verify.decoders.records import Records
from sundial.verify.samples import RunSamples
from sundial.verify.sockets.protocol import (
    Bytes,
    Counts,
    Part,
    Setting,
    SocketDefaults,
    SocketProtocol,
    Streams,
    least_window,
)
from sundial.verify.workload import Background, Verifier, WorkloadVerifier
from sundial.workloads.function_lines import check_function_lines
from sundial.workloads.sunrpc.expect import (
    DEFAULTS,
    REPLY,
    Identity,
    Options,
    auth_sys_bytes,
    expect_call,
)
from sundial.workloads.sunrpc.verify_bindings import PORT_MAPPER, check_bindings
from sundial.workloads.sunrpc.verify_content import content, content_field, counted, given, taken
from sundial.workloads.sunrpc.verify_records import check_records
from sundial.workloads.sunrpc.verify_ring_counts import check_ring_counts
from sundial.workloads.sunrpc.verify_shipments import check_shipments, one_way, shipments

AUTH_MACHINE = "sundial"
"""Machine name of AUTH_SYS credentials where the job names none (guest-apps/echo/settings.c)."""
_SERVER_APP = "echo-server"


class _SunRpc(Records, SocketDefaults):
    client_app = "echo-client"
    server_app = _SERVER_APP
    asks_again_at_other_replies = True
    reads_refused = True  # clnt_dg.c: where recvmsg fails it reads the buffer into which the kernel had copied
    least_reply = REPLY
    directories = (PORT_MAPPER,)
    waits_for_records = True  # libtirpc's read_vc: it polls the one connection until bytes come

    def expect(self, shape: Shape, options: Options | None) -> Call:
        return expect_call(shape, options or DEFAULTS)

    def counts(self, answers: pl.DataFrame, line: Mapping[str, Any]) -> Counts:
        over_udp = answers.filter(pl.col("transport") == "udp")
        kinds = list(answers.group_by("procedure", "size").len().iter_rows())
        times = dict.fromkeys(counted([procedure for procedure, _, _ in kinds]), 0)
        for procedure, _, number in kinds:
            times[procedure] += number
        return {
            # Before its first call it is not known what a server serves.
            **({"by_procedure": times} if kinds else {}),
            "bad_payload": 0,
            "undecodable": 0,
            "bytes_in": sum(number * taken(procedure, size) for procedure, size, number in kinds),
            "bytes_out": sum(number * given(procedure, size) for procedure, size, number in kinds),
            "duplicates": over_udp.height - over_udp["call"].n_unique(),
            # SSS-CORE's server is a task, and counts what it executed and replayed where libtirpc's counts connections.
            **({"executed": answers.height, "replayed": 0} if "task" in line else {}),
        }

    def setting(self, step: Mapping[str, Any], services: Sequence[Mapping[str, Any]]) -> Setting:
        serving: Mapping[str, Any] = next((item["options"] for item in services if item["app"] == _SERVER_APP), {})
        credential, identity = 0, None
        if step.get("auth") == "sys":
            machine = str(step.get("auth_machine", AUTH_MACHINE)).encode()
            groups = tuple(int(group) for group in step.get("auth_gids", ()))
            credential = auth_sys_bytes(len(machine), len(groups))
            identity = Identity(machine, int(step.get("auth_uid", 0)), int(step.get("auth_gid", 0)), groups)
        options = Options(
            credential=credential,
            identity=identity,
            one_way=bool(step.get("one_way")),
            udp_message=int(step.get("udp_message_size") or Options().udp_message),
            request_buffer=int(step.get("send_buffer") or 0),
            reply_buffer=int(serving.get("send_buffer") or 0),
        )
        return Setting(options, least_window(step, serving))

    def datagram_key(self) -> pl.Expr:
        """The xid is the first word of the message, the type (0 call, 1 reply) the second (RFC 5531 section 9)."""
        head = pl.col("udp_head")
        message = head.str.contains(r"^.{8}0000000[01]")
        return pl.when(message).then(head.str.slice(0, 8)).str.to_integer(base=16, strict=False)

    def unsampled(self, calls: pl.DataFrame, settings: Sequence[Setting]) -> pl.DataFrame:
        """The call with a reply that ends each batch of one-way calls, and fails as they do; a caller numbers its calls
        without a gap."""
        batches = calls.filter(pl.col("setting").is_in(one_way(settings))).sort("id")
        return (
            batches.group_by("client", "batch", maintain_order=True)
            .last()
            .with_columns(
                procedure=pl.lit("null"),
                size=pl.lit(0, pl.Int64),
                call=pl.col("call") + 1,
                xid=(pl.col("xid") + 1) % (1 << 32),
                start_ns=pl.col("end_ns"),
                retransmits=pl.lit(None, pl.Int32),
            )
            .select(calls.columns)
        )

    def collected(self, calls: pl.DataFrame, expected: Sequence[Call], settings: Sequence[Setting]) -> pl.DataFrame:
        return shipments(calls, expected, settings)

    def check_streams(self, streams: Streams) -> pl.DataFrame:
        return pl.concat([check_records(streams), check_shipments(streams)])

    def content(self, part: Part, seen: Bytes) -> Bytes:
        return content(part, seen)

    def content_field(self, part: Part, place: int) -> str:
        return content_field(part, place)

    def datagram_type(self) -> pl.Expr:
        """By the type of the message and what follows it: the version of RPC in a call, the status in a reply."""
        head = pl.col("udp_head")
        call, reply = head.str.contains(r"^.{8}000000000000000[1-9a-f]"), head.str.contains(r"^.{8}000000010000000[01]")
        return pl.when(call).then(pl.lit("request")).when(reply).then(pl.lit("reply"))

    def captured_procedure(self) -> pl.Expr:
        number = pl.col("udp_head").str.slice(40, 8)
        return pl.when(number.str.len_chars() == 8).then(number).str.to_integer(base=16, strict=False).cast(pl.String)

    def display_filter(self, call: Mapping[str, Any]) -> str:
        return f"rpc.xid == 0x{call['xid']:08x}" if call["xid"] is not None else ""


class _Verifier(Verifier):
    def background(
        self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, ahead_ns: Mapping[str, int]
    ) -> Background:
        bindings = check_bindings(frames, run, samples.records, samples.table, ahead_ns)
        lines = check_function_lines(samples, SOCKETS.client_app)
        counts = check_ring_counts(run, samples)
        return replace(bindings, findings=pl.concat([bindings.findings, lines, counts]))


SOCKETS: SocketProtocol = _SunRpc()
KIND: WorkloadVerifier = _Verifier(sockets=SOCKETS, sampled_as={"mbcf-echo-client": "echo-client"})
