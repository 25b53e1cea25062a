#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the applications against each other over the host's loopback: loopback.py FOLDER-OF-APPS."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from sundial.seams.samples import Line
from sundial.workloads.functions import FUNCTIONS, NAMES

SECONDS = 60


def free_port() -> int:
    """A port that is free for UDP and TCP right now."""
    import socket

    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            try:
                udp.bind(("127.0.0.1", tcp.getsockname()[1]))
            except OSError:
                continue
            return tcp.getsockname()[1]


class App:
    """One application with its record stream on descriptor 3."""

    def __init__(self, path: Path, options: dict) -> None:
        self._read, write = os.pipe()
        identity = {"SUNDIAL_STEP": "0"} if path.name.endswith("-client") else {}

        def give_stream() -> None:
            os.dup2(write, 3)

        self.process = subprocess.Popen(
            [path, json.dumps(options)],
            stdout=subprocess.PIPE,
            pass_fds=(3,) if write == 3 else (),
            close_fds=False,
            preexec_fn=give_stream,  # noqa: PLW1509 (no threads here)
            env={**os.environ, **identity, "SUNDIAL_APP": path.name, "SUNDIAL_SEED": "7"},
        )
        os.close(write)

    def wait_ready(self) -> None:
        assert select.select([self.process.stdout], [], [], SECONDS)[0], "not ready"
        line = self.process.stdout.readline()
        assert line == b"ready\n", f"not ready: {line!r} {self.lines()}"

    def lines(self) -> list:
        with os.fdopen(self._read) as stream:
            lines = stream.read().splitlines()
        for line in lines:
            Line.validate_json(line)
        return [json.loads(line) for line in lines]

    def finish(self) -> list:
        lines = self.lines()
        status = self.process.wait(SECONDS)
        assert status == 0, (status, lines)
        return lines

    def stop(self) -> list:
        self.process.send_signal(signal.SIGTERM)
        return self.finish()


def rows_of(lines: list) -> list[dict]:
    rows, columns = [], []
    for line in lines:
        if isinstance(line, list):
            rows.append(dict(zip(columns, line, strict=True)))
        elif line["type"] == "batch":
            columns = line["columns"]
        else:
            raise AssertionError(line)
    return rows


def check_echo(apps: Path) -> None:
    port = free_port()
    server = App(apps / "echo-server", {"udp_port": port, "tcp_port": port, "register": False})
    server.wait_ready()
    base = {"server": "127.0.0.1", "port": port, "calls": 5, "warmup": 1}
    total = 0
    xids = []
    for transport in ("udp", "tcp"):
        for extra in (
            {"procedure": "null"},
            {"procedure": "echo", "sizes": [0, 1, 16, 1473, 8756]},
            {
                "procedure": "echo_string",
                "sizes": [0, 1, 93, 8700],
                "auth": "sys",
                "auth_gids": [1, 2],
            },
            {"procedure": "sink", "sizes": [4000], "connection": "per-size"},
            # With a buffer so small that the library writes it during calls.
            {"procedure": "sink", "sizes": [400, 10], "one_way": True, "send_buffer": 1000},
            {"procedure": "source", "sizes": [0, 8000], "threads": 3},
        ):
            rows = rows_of(
                App(apps / "echo-client", {**base, **extra, "transport": transport}).finish()
            )
            assert rows and all(row["ok"] == 1 for row in rows), (transport, extra, rows)
            assert all(row["retransmits"] == 0 for row in rows), rows
            total += len(rows)
            xids.append([row["xid"] for row in rows])
    # The numbers chosen are the numbers sent, on both transports and in buffered one-way calls.
    assert xids[:6] == xids[6:], xids
    rows = rows_of(
        App(
            apps / "echo-client",
            {**base, "transport": "tcp", "sizes": [65484, 300000], "send_buffer": 4000},
        ).finish()
    )
    assert all(row["ok"] == 1 for row in rows), rows
    refused = {**base, "port": free_port(), "transport": "tcp", "calls": 1, "warmup": 0}
    rows = rows_of(App(apps / "echo-client", refused).finish())
    assert [row["error"] for row in rows] == ["cannot connect: Connection refused"], rows
    too_long = {**base, "procedure": "echo", "sizes": [8757], "calls": 1, "warmup": 0}
    rows = rows_of(App(apps / "echo-client", too_long).finish())
    assert rows[0]["ok"] == 0 and "encode" in rows[0]["error"], rows
    counters = server.stop()[-1]
    assert counters["bad_payload"] == counters["undecodable"] == counters["duplicates"] == 0


def check_no_answer(apps: Path) -> None:
    """One-way calls succeed only if the call behind them does; what becomes of them ends no step."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        one_way = {"procedure": "sink", "one_way": True, "transport": "tcp", "total_timeout_ms": 200}
        options = {"server": "127.0.0.1", "port": deaf.getsockname()[1], "calls": 2, **one_way}
        rows = rows_of(App(apps / "echo-client", {**options, "sizes": [10, 20]}).finish())
    assert [(row["ok"], row["error"]) for row in rows] == [(0, "RPC: Timed out")] * 4, rows


def check_large_datagrams(apps: Path) -> None:
    port = free_port()
    options = {
        "udp_port": port,
        "transports": ["udp"],
        "register": False,
        "udp_message_size": 60000,
    }
    server = App(apps / "echo-server", options)
    server.wait_ready()
    client = {"server": "127.0.0.1", "port": port, "procedure": "echo", "sizes": [50000]}
    rows = rows_of(App(apps / "echo-client", {**client, "udp_message_size": 60000}).finish())
    assert rows[0]["ok"] == 1, rows
    server.stop()


def check_raw(apps: Path) -> None:
    port = free_port()
    server = App(apps / "raw-server", {"udp_port": port, "tcp_port": port})
    server.wait_ready()
    base = {"server": "127.0.0.1", "port": port, "calls": 5, "warmup": 1, "threads": 2}
    udp = {**base, "transport": "udp", "sizes": [0, 1, 15, 16, 17, 1473, 65507]}
    rows = rows_of(App(apps / "raw-client", udp).finish())
    assert len(rows) == 7 * 6 * 2 and all(row["ok"] == 1 for row in rows), rows
    tcp = {**base, "transport": "tcp", "sizes": [16, 17, 100000], "connection": "per-size"}
    rows = rows_of(App(apps / "raw-client", tcp).finish())
    assert len(rows) == 3 * 6 * 2 and all(row["ok"] == 1 for row in rows), rows
    counters = server.stop()[-1]
    assert (counters["datagrams"], counters["messages"]) == (84, 36), counters
    assert counters["bad_payload"] == counters["retransmits"] == 0, counters
    lost = {**base, "port": free_port(), "transport": "udp", "threads": 1, "calls": 1, "warmup": 0}
    lost |= {"retry_timeout_ms": 20, "total_timeout_ms": 110}
    rows = rows_of(App(apps / "raw-client", lost).finish())
    assert rows[0]["retransmits"] == 5 and "timed out" in rows[0]["error"], rows


def called(lines: list) -> list[tuple]:
    """What each batch called."""
    names = ("procedure", "size", "function")
    return [
        tuple(line.get(name) for name in names)
        for line in lines
        if isinstance(line, dict)
    ]


def check_functions(apps: Path) -> None:
    """All of them, over RPC and plain sockets, on one connection and on one for each."""
    everything = [(each.name, each.size, each.number) for each in FUNCTIONS]
    sizes = sum(each.size for each in FUNCTIONS)
    for app, counted in (("echo", "bytes_in"), ("raw", "bytes")):
        port = free_port()
        options = {"program": "functions", "register": False} if app == "echo" else {}
        server = App(
            apps / f"{app}-server", {"udp_port": port, "tcp_port": port, **options}
        )
        server.wait_ready()
        base = {
            "server": "127.0.0.1",
            "port": port,
            "functions": list(NAMES),
            "calls": 2,
            "warmup": 1,
        }
        for transport in ("udp", "tcp"):
            for extra in ({}, {"connection": "per-size", "threads": 2}):
                given = {**base, **extra, "transport": transport, "functions": list(NAMES)}
                lines = App(apps / f"{app}-client", given).finish()
                rows = rows_of(lines)
                threads = given.get("threads", 1)
                assert len(rows) == 12 * 3 * threads, rows
                assert all(row["ok"] == 1 for row in rows), rows
                assert called(lines) == [
                    each for each in everything for _ in range(threads)
                ]
        counters = server.stop()[-1]
        rounds = 2 * 3 * (1 + 2)
        assert (counters["calls"], counters["bad_payload"]) == (12 * rounds, 0), (
            counters
        )
        header = 16 * 12 if app == "raw" else 0
        assert counters[counted] == rounds * (sizes + header), counters
        if app == "echo":
            assert counters["by_procedure"] == dict.fromkeys(NAMES, rounds), counters
            assert counters["bytes_out"] == rounds * (sizes - 24 + 8), counters


def check_names(apps: Path) -> None:
    """The one program does nothing under a name that is not an application's."""
    done = subprocess.run([apps / "apps"], capture_output=True, text=True, check=False)
    assert (done.returncode, "no such application" in done.stderr) == (127, True), done


def main() -> None:
    apps = Path(sys.argv[1]).resolve()
    for check in (check_names, check_echo, check_no_answer, check_large_datagrams, check_raw, check_functions):
        check(apps)
        print(f"@T {check.__name__} ok")


if __name__ == "__main__":
    main()
