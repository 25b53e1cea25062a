# SPDX-License-Identifier: Apache-2.0
"""What stock Wireshark makes of each port's view of a run, against the verdict and against the frames themselves."""

from __future__ import annotations

import io
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sundial.cli.open_ import viewer_command
from sundial.observe.follow import ports, stream_view
from tests.warm_tshark.reader import unprivileged

WORKLOADS = (
    "dce-faults", "grpc-lossy", "iperf3", "loss", "mbcf-operations", "quickstart", "rpyc-nagle", "shrimp-rpc-sweep",
    "sss-faults", "vmmc-operations",
)  # fmt: skip
"""Scenarios that have each kind of workload, and losses where the kind allows them."""
AT_NIGHT = ("vmmc-operations",)
"""Those whose frames take Wireshark long, and are of a kind that another scenario has."""
_FIELDS = (
    "frame.packet_flags_direction", "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.keep_alive",
    "tcp.analysis.out_of_order", "tcp.analysis.duplicate_ack", "tcp.analysis.keep_alive_ack",
    "mbcf.analysis.retransmission", "rpc.dup", "rpc.program", "_ws.expert.severity",
    "tcp.stream", "ip.src", "tcp.seq_raw", "tcp.ack_raw", "tcp.window_size_value", "tcp.flags",
)  # fmt: skip
_AGAIN = ("tcp.analysis.retransmission", "tcp.analysis.keep_alive", "tcp.analysis.out_of_order")
"""What Wireshark calls a segment that its sender repeats: a keep-alive if it has one byte."""
_PROBES = ("tcp.analysis.keep_alive", "tcp.analysis.keep_alive_ack")
_OUTBOUND, _ERROR = 2, "8388608"
_PORT_MAPPER = "100000"
_SYN_FIN_RST, _ACK = 0x07, 0x10


@dataclass
class Row:
    """The fields of a frame, as tshark prints them."""

    fields: dict[str, str]

    def has(self, name: str) -> bool:
        return bool(self.fields[name])

    @property
    def outbound(self) -> bool:
        return int(self.fields["frame.packet_flags_direction"], 0) == _OUTBOUND

    @property
    def tcp_bytes(self) -> int:
        return int(self.fields["tcp.len"].split(",")[0] or 0)


def wrong(run: Path) -> list[str]:
    """A line for each number that differs; none for a run whose views are true."""
    counted: Counter[str] = Counter()
    found = []
    for capture in sorted((run / "wire").glob("*.pcapng")):
        for port in ports(capture):
            rows = list(_rows(capture, port))
            sent = [row for row in rows if row.outbound]
            counted["tcp"] += sum(row.tcp_bytes > 0 and any(map(row.has, _AGAIN)) for row in sent)
            counted["mbcf"] += sum(row.has("mbcf.analysis.retransmission") for row in sent)
            counted["rpc"] += sum(row.has("rpc.dup") and row.fields["rpc.program"] != _PORT_MAPPER for row in sent)
            shown = sum(row.has("tcp.analysis.duplicate_ack") for row in rows)
            if shown != (actual := _duplicate_acks(rows)):
                found.append(f"{port}: duplicate ACKs: expected {actual}, actual {shown}")
            errors = sum(_ERROR in row.fields["_ws.expert.severity"].split(",") for row in rows)
            if errors:
                found.append(f"{port}: {errors} expert errors")
    verdict = json.loads((run / "verify.json").read_text())
    again = verdict["retransmissions"]
    expected = {"mbcf": again.get("mbcf", 0)}
    if verdict["calls"]:  # iperf3 counts segments of its data streams alone
        expected["tcp"] = sum(count for name, count in again.items() if name.startswith(("tcp", "grpc", "rpyc")))
    if not expected["mbcf"]:  # Sun RPC over MBCF repeats frames
        expected["rpc"] = again["calls"] + again["replies"]
    for name, count in expected.items():
        if counted[name] != count:
            found.append(f"{name}: retransmissions: expected {count}, actual {counted[name]}")
    return found


def _rows(capture: Path, port: str) -> Iterator[Row]:
    view = io.BytesIO()
    stream_view(capture, port, view, None)
    words = [word for name in _FIELDS for word in ("-e", name)]
    program = [*unprivileged(), "tshark"]
    command = [*viewer_command(program, Path("-"), capture, None), "-T", "fields", *words]
    done = subprocess.run(command, input=view.getvalue(), stdout=subprocess.PIPE, check=True, timeout=300)
    for line in done.stdout.decode().splitlines():
        yield Row(dict(zip(_FIELDS, line.split("\t"), strict=True)))


def _duplicate_acks(rows: list[Row]) -> int:
    """Segments without data that repeat the sequence number, acknowledgement and window of the sender's segment before
    (RFC 5681, section 2), SYN, FIN and RST apart."""
    latest: dict[tuple[str, str], tuple[int, str, str]] = {}
    count = 0
    for row in rows:
        if not row.has("tcp.stream"):
            continue
        sender = (row.fields["tcp.stream"], row.fields["ip.src"])
        flags = int(row.fields["tcp.flags"], 0)
        here = (int(row.fields["tcp.seq_raw"]), row.fields["tcp.ack_raw"], row.fields["tcp.window_size_value"])
        plain = not flags & _SYN_FIN_RST and row.tcp_bytes == 0 and flags & _ACK
        if plain and latest.get(sender) == here and not any(map(row.has, _PROBES)):
            count += 1
        after = (here[0] + row.tcp_bytes + bool(flags & 3), *here[1:])
        before = latest.get(sender)
        latest[sender] = after if before is None or after[0] >= before[0] else (before[0], *here[1:])
    return count
