#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of DCE RPC over the host's loopback: loopback.py FOLDER-OF-APPS FOLDER-OF-OBJECTS-FOR-GUESTS."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from loopback import App, free_port

SIZES = [0, 1392, 4016, 4017, 64256, 196608]
FUNCTIONS = (
    "void boolean int long string_32 string_512 string_1024 int_array float_array string_array person distance".split()
)
FUNCTION_SIZES = [0, 1, 4, 8, 32, 512, 1024, 800, 800, 1200, 17, 24]


def serve(apps: Path, **options: object) -> tuple[App, dict]:
    """A server of SIZES, and what its clients need."""
    port = free_port()
    server = App(apps / "dce-server", {"port": port, "interface_sizes": SIZES, **options})
    server.wait_ready()
    return server, {"server": "127.0.0.1", "port": port, "interface_sizes": SIZES, "ack_delay_ms": 20}


MACHINES = itertools.count()


def call(apps: Path, options: dict) -> App:
    """A client on a machine of its own: activities come from its name."""
    os.environ["SUNDIAL_MACHINE"] = f"client{next(MACHINES)}"
    return App(apps / "dce-client", options)


def batches(lines: list) -> list[tuple[dict, list[dict]]]:
    """Each batch with its rows."""
    found: list[tuple[dict, list[dict]]] = []
    for line in lines:
        if isinstance(line, list):
            found[-1][1].append(dict(zip(found[-1][0]["columns"], line, strict=True)))
        elif line["type"] == "batch":
            found.append((line, []))
        else:
            raise AssertionError(line)
    return found


def check_calls(apps: Path) -> None:
    """All procedures, semantics, policies and byte orders; what was counted on both sides agrees."""
    # Room for the windows of four callers at a time, with what the kernel adds to each datagram.
    server, base = serve(apps, socket_buffer=1 << 20)
    expected: dict[str, int] = {}
    total: dict[str, int] = {}
    activities = 0
    for procedure, opnum in (("null", 0), ("put", 1), ("get", 1000), ("echo", 2000)):
        for semantics, extra in (
            ("at_most_once", {"policy": "window"}),
            ("at_most_once", {"policy": "halves", "byte_order": "big", "threads": 4}),
            ("idempotent", {"policy": "osf", "fragment_bytes": 1464, "connection": "per-size"}),
        ):
            sizes = {} if procedure == "null" else {"sizes": SIZES}
            options = {**base, **extra, **sizes, "procedure": procedure, "semantics": semantics}
            found = batches(call(apps, {**options, "calls": 3, "warmup": 1}).finish())
            threads = extra.get("threads", 1)
            assert len(found) == threads * len(sizes.get("sizes", [0])), found
            for batch, rows in found:
                assert len(rows) == 4 and all(row["ok"] == 1 for row in rows), (options, rows)
                assert all(row["retransmits"] == 0 for row in rows), rows
                if semantics == "at_most_once":
                    assert batch["counters"]["acks"] == 1, batch
                for name, number in batch["counters"].items():
                    total[name] = total.get(name, 0) + number
            for index in range(len(sizes.get("sizes", [0]))):
                key = str(opnum + index)
                expected[key] = expected.get(key, 0) + 4 * threads
            if semantics == "at_most_once":
                activities += threads
            elif procedure in ("put", "echo"):  # more than a fragment goes at most once
                activities += sum(size > 944 for size in SIZES)
    counters = server.stop()[-1]
    assert counters["by_opnum"] == expected, counters
    assert counters["executed"] == sum(expected.values()), counters
    assert counters["bad_payload"] == counters["undecodable"] == counters["kept"] == 0, counters
    assert counters["who_are_you"] == total["who_are_you"] == activities, (counters, total)
    assert counters["facks"] == total["facks_received"] and counters["facks_received"] == total["facks"]
    assert counters["acks"] == total["acks"], (counters, total)
    for name in ("malformed", "strays", "dropped", "overruns", "rejects", "duplicates", "fragments_resent"):
        assert counters[name] == total[name] == 0, (name, counters, total)


def check_mapper(apps: Path) -> None:
    """The port from the endpoint mapper, whatever the order of either side."""
    mapper = free_port()
    server, base = serve(apps, mapper_port=mapper, byte_order="big")
    for order in ("little", "big"):
        lines = call(apps, {**base, "port": 0, "mapper_port": mapper, "byte_order": order}).finish()
        binding, batch, row = lines
        assert binding["type"] == "binding" and binding["ok"], binding
        assert (binding["port"], binding["attempts"], binding["sent"]) == (base["port"], 1, 1), binding
        assert batch["server_port"] == base["port"] and row[3] == 1, lines
    assert server.stop()[-1]["mapped"] == 2
    gone = {**base, "port": 0, "mapper_port": mapper, "give_up_ms": 50, "resend_ms": 20, "binding_timeout_ms": 60}
    lines = call(apps, {**gone, "calls": 2, "threads": 2}).finish()
    binding, found = lines[0], batches(lines[1:])
    assert (binding["ok"], binding["port"], binding["error"]) == (False, 0, "status 1c010001"), binding
    assert [batch["server_port"] for batch, _ in found] == [0, 0], found
    rows = [row for _, own in found for row in own]
    assert {(row["error"], row["xid"], row["ok"]) for row in rows} == {("no port", None, 0)} and len(rows) == 4, rows
    assert not any(any(batch["counters"].values()) for batch, _ in found), found


def check_functions(apps: Path) -> None:
    """All twelve, whatever the orders; arguments that are none, or not the function's; another interface."""
    mapper = free_port()
    for order in ("little", "big"):
        server, base = serve(apps, interface="functions", interface_sizes=[], mapper_port=mapper, byte_order=order)
        base = {**base, "interface_sizes": []}
        for extra in (
            {"byte_order": "little", "fragment_bytes": 1464},
            {"byte_order": "big", "semantics": "idempotent", "policy": "osf", "connection": "per-size"},
            {"byte_order": order, "threads": 3, "port": 0, "mapper_port": mapper},
        ):
            lines = call(apps, {**base, **extra, "functions": FUNCTIONS, "calls": 2, "warmup": 1}).finish()
            found = batches([line for line in lines if isinstance(line, list) or line["type"] == "batch"])
            threads = extra.get("threads", 1)
            assert [(batch["function"], batch["procedure"]) for batch, _ in found[::threads]] == list(
                enumerate(FUNCTIONS, 1)
            )
            for batch, rows in found:
                assert len(rows) == 3 and all(row["ok"] == 1 for row in rows), (batch, rows)
                assert batch["size"] == FUNCTION_SIZES[batch["function"] - 1], batch
        maybe = {**base, "functions": ["void"], "semantics": "maybe"}
        ((batch, rows),) = batches(call(apps, maybe).finish())
        assert batch["procedure"] == "void" and rows[0]["ok"] == 1
        ((_, rows),) = batches(call(apps, {**base, "procedure": "null"}).finish())
        assert rows[0]["error"] == "reject 1c010003", rows
        counters = server.stop()[-1]
        assert counters["by_opnum"] == {str(number): 15 + (number == 1) for number in range(1, 13)}, counters
        assert counters["bad_payload"] == counters["undecodable"] == counters["malformed"] == 0, counters


def check_maybe_and_broadcast(apps: Path) -> None:
    server, base = serve(apps)
    put = {**base, "procedure": "put", "sizes": [1392, 64256]}
    for batch, rows in batches(call(apps, {**put, "semantics": "maybe"}).finish()):
        assert rows[0]["ok"] == 1 and batch["counters"]["acks"] == 0, (batch, rows)
    lines = call(apps, {**base, "semantics": "broadcast", "server": "127.255.255.255"}).finish()
    assert lines[-1][3] == 1, lines
    assert server.stop()[-1]["by_opnum"] == {"0": 1, "2": 1, "5": 1}


def check_failures(apps: Path) -> None:
    """Faults, rejects, cancels, and silence."""
    server, base = serve(apps, work_ms=200)
    put = {**base, "procedure": "put", "sizes": [10], "interface_sizes": [10]}
    (found,) = batches(call(apps, put).finish())
    assert found[1][0]["error"] == "fault 1c000007" and found[0]["counters"]["faults"] == 1, found
    put = {**put, "interface_sizes": [*range(11, 11 + len(SIZES)), 10]}
    (found,) = batches(call(apps, put).finish())
    assert found[1][0]["error"] == "reject 1c010002" and found[0]["counters"]["rejects"] == 1, found
    (found,) = batches(call(apps, {**base, "ping_ms": 30}).finish())
    assert found[1][0]["ok"] == 1 and found[0]["counters"]["working"] == found[0]["counters"]["pings"] > 0, found
    (found,) = batches(call(apps, {**base, "cancel_ms": 20}).finish())
    assert found[1][0]["error"] == "fault 1c00000d" and found[0]["counters"]["cancel_acks"] == 1, found
    counters = server.stop()[-1]
    assert counters["undecodable"] == 1 and counters["cancels"] == 1, counters
    silent = {**base, "port": free_port(), "resend_ms": 10, "ping_ms": 10, "give_up_ms": 600}
    (found,) = batches(call(apps, silent).finish())
    assert found[1][0]["error"] == "no answer" and found[0]["counters"]["pings"] > 0, found


FUNCTION = {"functions": FUNCTIONS, "interface_sizes": [], "procedure": "null", "sizes": None}


def check_options(apps: Path) -> None:
    """What is refused, with the option's name and what is allowed."""
    client = {"server": "127.0.0.1", "port": 1, "interface_sizes": [8, 5000], "procedure": "put", "sizes": [8]}
    for changes, said in (
        ({"fragment_bytes": 1463}, "fragment_bytes: must be an integer from 1464 to 8192"),
        ({"fragment_bytes": 2001}, "fragment_bytes: must be a multiple of 8"),
        ({"window_bytes": 4000}, "window_bytes: must be a multiple of 1024"),
        ({"window_bytes": 4096, "fragment_bytes": 8192}, "window_bytes: must be a multiple of 1024"),
        ({"sizes": [9]}, "sizes: 9 is not among interface_sizes"),
        ({"sizes": [196609]}, "sizes: must be an integer from 0 to 196608"),
        ({"interface_sizes": list(range(1000))}, "interface_sizes: at most 999"),
        ({"threads": 33}, "threads: must be an integer from 1 to 32"),
        ({"procedure": "get", "semantics": "maybe"}, 'semantics: "maybe" only with'),
        ({"semantics": "broadcast", "sizes": [5000]}, "sizes: a broadcast is at most one fragment"),
        ({"semantics": "broadcast", "port": 0}, "port: must be given"),
        ({"procedure": "null"}, 'sizes: the procedure "null" has none'),
        ({"more": 1}, "more: unknown"),
        ({**FUNCTION, "interface_sizes": [8]}, "interface_sizes: the interface of the functions has none"),
        ({**FUNCTION, "sizes": [8]}, "sizes: unknown"),
        ({**FUNCTION, "procedure": "put", "sizes": []}, "procedure: not with functions"),
        ({**FUNCTION, "semantics": "maybe"}, 'semantics: "maybe" only with void'),
        ({**FUNCTION, "semantics": "broadcast"}, "functions: a broadcast of string_array takes fragments of 4887"),
        ({**FUNCTION, "functions": ["float"]}, "functions: must be"),
    ):
        given = {name: value for name, value in (client | changes).items() if value is not None}
        refused = call(apps, given)
        (line,) = refused.lines()
        assert line["type"] == "error" and line["message"].startswith(f"option {said}"), line
        assert refused.process.wait() == 2


def check_markers(apps: Path) -> None:
    """As compiled for guests: each function that steps are stamped at is there once, and none is left by a jump."""
    names = (
        "xmitq_send xmitq_append recvq_fack client_machine_packet server_machine_packet runtime_send runtime_wait "
        "runtime_receive dce_marshal dce_copy dce_transmit dce_null put_i get_i echo_i function_i "
        "dce_procedure_null dce_procedure_put dce_procedure_get dce_procedure_echo dce_procedure_function"
    ).split()
    objects = sorted(Path(sys.argv[2]).glob("*.o"))
    command = ["objdump", "-dr", "--no-show-raw-insn", *objects]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in names:
        assert listing.count(f"<{name}>:\n") == 1, name
        for copy in ("part", "constprop", "isra"):
            assert f"<{name}.{copy}" not in listing, (name, copy)
        body = listing.split(f"<{name}>:\n")[1].split("\n\n")[0].splitlines()
        assert any("\tret" in line for line in body), name
        for line, after in itertools.pairwise([*body, ""]):
            # A jump to another object's function has a relocation; those by table are in switches.
            by_table = "\tjmp    *%" in line and name != "xmitq_send"
            leaves = "\tj" in line and ("R_X86_64" in after or f"<{name}" not in line)
            assert by_table or not leaves, (name, line, after)


def main() -> None:
    apps = Path(sys.argv[1]).resolve()
    of_interfaces = (check_calls, check_functions, check_mapper, check_maybe_and_broadcast)
    for check in (*of_interfaces, check_failures, check_options, check_markers):
        check(apps)
        print(f"@T dce {check.__name__} ok")


if __name__ == "__main__":
    main()
