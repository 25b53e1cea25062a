# SPDX-License-Identifier: Apache-2.0
"""gRPC in reports: round trips by function. Sizes are those of the values; the messages are other ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import polars as pl

from sundial.report.tables import Table
from sundial.report.workload import (
    BOTH_DIRECTIONS,
    TCP_RETRANSMISSIONS,
    Client,
    Filter,
    Line,
    Records,
    WorkloadReport,
)
from sundial.workloads.function_table import calls_by, function_table
from sundial.workloads.grpc.expect import PORT, call_messages
from sundial.workloads.grpc.expect_languages import BY_CLIENT, CPP, PYTHON

LINES = {
    PYTHON.name: {"grpc": Line("grpc", "#2f7d6d", "#6fc7b4", "P")},
    CPP.name: {"grpc": Line("grpc-cpp", "#4a5f94", "#9db1e3", "X")},
}


class GrpcReport(WorkloadReport):
    """gRPC, as the report asks for it."""

    clients: Mapping[str, Client] = {
        app: Client(language.label, LINES[language.name], dissector="http2", ports=(PORT + place,))
        for place, (app, language) in enumerate(BY_CLIENT.items())
    }

    def moves(self, procedure: str) -> int:
        return 1 if procedure == "distance" else BOTH_DIRECTIONS

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        yield Filter("requests and replies", "http2.type == 0", of_calls=True)
        yield Filter("what is not a part of a call", "http2.type == 3 || http2.type == 6 || http2.type == 7")
        yield TCP_RETRANSMISSIONS

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        calls = calls_by(samples, self.clients)
        language = pl.col("app").replace_strict({app: each.name for app, each in BY_CLIENT.items()})
        found = function_table(
            calls.with_columns(language=language), _octets, {"client": "from", "language": "language"}
        )
        if found is not None:
            yield found


def _octets(function: str) -> tuple[int, int]:
    request, reply = call_messages(function)
    return len(request), len(reply)


KIND: WorkloadReport = GrpcReport()
