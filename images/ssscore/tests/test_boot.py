# SPDX-License-Identifier: Apache-2.0
"""The built image on the machine of the harness: the job and what it answers, the monitor, faults, the clock's gates."""

import base64
import contextlib
import json
import socket
import time
from pathlib import Path

import pytest
from testing.guest import ICOUNT, PATIENCE_S, Guest, interface, run_pair
from testing.nodes import node_job, run_to_done

pytestmark = pytest.mark.vm

PLUGIN = Path(__file__).resolve().parents[3] / "harness/clock/build/sundial-clock.so"
WAIT = {"version": 1, "wait": True}
UUID = "00000000-0000-4000-8000-000000000001"
RECORD_HEADER, FILE_HEADER, CONTROL_FRAME = 16, 24, 27


def test_a_waiting_machine_says_ready_once_and_nothing_else(bootable: Path, tmp_path: Path) -> None:
    with Guest(tmp_path / "g", bootable, WAIT, ICOUNT) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        capture = tmp_path / "g/wire.pcap"
        guest.wait_until(lambda: capture.exists() and capture.stat().st_size > FILE_HEADER, "not ready")
        time.sleep(1)
    assert capture.read_bytes().count(b"\x88\xb5sundial-ready") == 1
    assert capture.stat().st_size == FILE_HEADER + RECORD_HEADER + CONTROL_FRAME


def test_a_job_is_run_and_told_of(bootable: Path, tmp_path: Path) -> None:
    steps = [{"app": "hello"}, {"app": "sleep", "options": {"ns": 50_000_000}}, {"app": "hello", "options": {"a": [1]}}]
    guest = run_to_done(tmp_path / "g", bootable, node_job(1, 2, clock="tsc", steps=steps))
    hello, *records = guest.samples()
    assert (hello["machine"], hello["clock"], hello["clock_hz"]) == ("n1", "tsc", 10**9)
    assert records == [
        {"type": "step", "step": 0, "app": "hello", "status": 0},
        {"type": "step", "step": 1, "app": "sleep", "status": 0},
        {"type": "step", "step": 2, "app": "hello", "status": 0},
        {"type": "done", "status": 0},
    ]
    capture = (tmp_path / "g/wire.pcap").read_bytes()
    assert capture.count(b"\x88\xb5sundial-done\x00") == 1
    assert len(capture) == FILE_HEADER + RECORD_HEADER + CONTROL_FRAME, "the wire carries nothing else"
    assert '"a": [1]' in guest.console_path.read_text()


def test_a_restart_goes_on_with_the_next_step(bootable: Path, tmp_path: Path) -> None:
    steps = [{"app": "hello"}, {"app": "restart"}, {"app": "kill", "options": {"task": "portmapper"}}]
    services = [{"app": "portmapper", "options": {}}]
    guest = run_to_done(tmp_path / "g", bootable, node_job(1, 2, clock="tsc", services=services, steps=steps))
    assert [line["app"] for line in guest.lines("step")] == ["hello", "restart", "kill"]
    assert guest.lines("error") == []
    assert guest.lines("done") == [{"type": "done", "status": 0}]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": [{"app": "absent"}]}, 'app "absent": this image has no such task'),
        ({"steps": [{"app": "init"}]}, "no such task"),
        ({"interfaces": [interface(1, ()), {**interface(1, ()), "device": "eth1"}]}, "eth1: this machine has 1"),
    ],
)
def test_a_bad_job_is_one_line(bootable: Path, tmp_path: Path, fields: dict, message: str) -> None:
    """What only the machine knows: its tasks and adapters. guest-apps/sss-core/tests/job_test.c has all other faults."""
    guest = run_to_done(tmp_path / "g", bootable, {**node_job(1, 2), **fields})
    (error,) = guest.lines("error")
    assert message in error["message"]
    assert guest.lines("done") == [{"type": "done", "status": 2}]
    assert (tmp_path / "g/wire.pcap").read_bytes().count(b"\x88\xb5sundial-done\x02") == 1
    assert message in guest.console_path.read_text()
    assert "PANIC" not in guest.console_path.read_text()


def test_no_json_is_one_line_too(bootable: Path, tmp_path: Path) -> None:
    with Guest(tmp_path / "g", bootable, {}, ICOUNT) as guest:
        (tmp_path / "g/job").write_bytes(b'{"version":1,'.ljust(65536, b"\n"))
        guest.start((tmp_path / "a", tmp_path / "b"))
        assert guest.wait_for("done")["status"] == 2
        assert "not JSON" in guest.lines("error")[0]["message"]


def test_a_task_that_is_killed_is_an_error(bootable: Path, tmp_path: Path) -> None:
    steps = [{"app": "kill", "options": {"task": "portmapper"}}]
    guest = run_to_done(tmp_path / "g", bootable, node_job(1, 2, steps=steps))
    assert guest.lines("error") == [
        {"type": "error", "step": 0, "app": "kill", "message": "no such service is alive"}
    ]
    assert guest.lines("step")[0]["status"] == 1
    assert guest.lines("done") == [{"type": "done", "status": 1}]


@pytest.mark.night
def test_remote_writes_between_two_nodes(bootable: Path, tmp_path: Path) -> None:
    options = {
        "server": 2,
        "operation": "write",
        "mode": "round_trip",
        "series": 0,
        "sizes": [4, 1024, 8192],
        "calls": 5,
        "warmup": 1,
    }
    client, server = run_pair(
        tmp_path,
        bootable,
        node_job(1, 2, steps=[{"app": "mbcf-client", "options": options}]),
        node_job(2, 1, services=[{"app": "portmapper", "options": {}}, {"app": "mbcf-server", "options": {}}]),
    )
    assert client.lines("error") == [], client.describe()
    batches = client.batches()
    assert [header["size"] for header, _ in batches] == [4, 1024, 8192]
    assert all(row["ok"] == 1 for _, rows in batches for row in rows)
    assert server.lines("error") == []


def test_the_example_of_the_readme(bootable: Path, tmp_path: Path) -> None:
    step = {"app": "sum", "options": {"server": 2, "numbers": [1, 2, 3]}}
    client, server = run_pair(
        tmp_path,
        bootable,
        node_job(1, 2, steps=[step]),
        node_job(2, 1, services=[{"app": "portmapper", "options": {}}, {"app": "sum", "options": {}}]),
    )
    assert client.lines("error") == server.lines("error") == []
    assert client.lines("sum") == [{"type": "sum", "app": "sum", "sum": 1006}]


class Interactive:
    """A machine with its console and its command port on sockets."""

    def __init__(self, folder: Path, image: Path, **fields: object) -> None:
        self._console, self._commands = folder / "console.sock", folder / "exec.sock"
        extra = (
            *("-chardev", f"socket,id=exec,server=on,wait=off,path={self._commands}"),
            *("-device", "virtserialport,chardev=exec,name=sundial.exec"),
            *("-chardev", f"socket,id=con,server=on,wait=off,path={self._console}", "-serial", "chardev:con"),
        )
        self.guest = Guest(folder, image, node_job(1, 2, interactive=True, **fields), extra)
        command = self.guest.command
        self.guest.command = lambda wire: without_serial(command(wire))  # type: ignore[method-assign]

    def start(self, folder: Path, stack: contextlib.ExitStack) -> None:
        stack.enter_context(self.guest)
        self.guest.start((folder / "a", folder / "b"))
        self.guest.wait_for("done")
        self.console, self.commands = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        self.console.connect(str(self._console))
        self.commands.connect(str(self._commands))
        for end in (self.console, self.commands):
            end.settimeout(PATIENCE_S)

    def ask(self, request: dict) -> dict:
        self.commands.sendall(json.dumps(request).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += self.commands.recv(65536)
        return json.loads(answer)

    def log(self) -> str:
        return base64.b64decode(self.ask({"argv": ["log"]})["stdout"]).decode()

    def type(self, text: str, until: str) -> str:
        self.console.sendall(text.encode())
        heard = ""
        while until not in heard:
            heard += self.console.recv(4096).decode()
        return heard


def without_serial(command: list[str]) -> list[str]:
    at = next(i for i, word in enumerate(command) if word == "-serial" and command[i + 1].startswith("file:"))
    return command[:at] + command[at + 2 :]


def test_the_monitor_answers_people_and_programs(bootable: Path, tmp_path: Path) -> None:
    machine = Interactive(tmp_path, bootable, services=[{"app": "portmapper", "options": {}}])
    with contextlib.ExitStack() as stack:
        machine.start(tmp_path, stack)
        answer = machine.ask({"id": 7, "argv": ["tasks"]})
        assert (answer["id"], answer["status"], answer["dropped"]) == (7, 0, 0)
        table = base64.b64decode(answer["stdout"]).decode().splitlines()
        assert [line.split()[1] for line in table] == ["name", "init", "portmapper"] or "portmapper" in table[1]
        for name in ("threads", "connections", "channels", "fifos", "counters", "memory", "net", "sockets", "log", "help"):
            assert machine.ask({"argv": [name]})["status"] == 0, name
        unknown = machine.ask({"id": "x", "shell": "reboot"})
        assert unknown["status"] == 1
        assert "there are help tasks" in base64.b64decode(unknown["stdout"]).decode()
        assert machine.ask({"id": 1}) == {"id": 1, "error": 'must have "argv" or "shell"'}
        assert "argv" in machine.ask({"argv": [3]})["error"]
        machine.commands.sendall(b"no json\n")
        assert "error" in json.loads(machine.commands.recv(4096))
        assert machine.ask({"argv": ["run", "hello", '{"x":1}']})["status"] == 0
        init = next(line.split()[0] for line in table if line.split()[1] == "init")
        refused = machine.ask({"argv": ["kill", init]})
        assert (refused["status"], b"init" in base64.b64decode(refused["stdout"])) == (1, True)
        assert machine.ask({"id": 2, "argv": ["run", "x" * 2000]}) == {"id": 2, "error": "argv: longer than 1023 bytes"}
        assert machine.ask({"id": 3, "argv": ["run", "x" * 9000]})["error"] == "a line longer than 4096 bytes"
        assert "portmapper" in machine.type("tasls\x7f\x7fks\r", "sss n1> ")
        machine.guest.wait_until(lambda: "hello" in machine.log(), "the task has said nothing")
        assert "sss n1>" not in machine.log(), "the log does not have what a person at the terminal sees"
        machine.type("halt\r", "off")
        machine.guest.wait_until_ended()


def test_a_panic_says_where_and_ends_the_machine(bootable: Path, tmp_path: Path) -> None:
    machine = Interactive(tmp_path, bootable)
    with contextlib.ExitStack() as stack:
        machine.start(tmp_path, stack)
        heard = machine.type("panic\r", "backtrace:")
        assert "PANIC: on request of the monitor" in heard
        machine.guest.wait_until_ended()


def test_a_machine_without_a_job_offers_the_monitor(bootable: Path, tmp_path: Path) -> None:
    with Guest(tmp_path / "g", bootable, {}) as guest:
        command = guest.command
        guest.command = lambda wire: without_job(command(wire))  # type: ignore[method-assign]
        guest.start((tmp_path / "a", tmp_path / "b"))
        guest.wait_until(
            lambda: guest.console_path.exists() and "sss ?> " in guest.console_path.read_text(), "no prompt"
        )


def without_job(command: list[str]) -> list[str]:
    at = command.index("-fw_cfg")
    return command[:at] + command[at + 2 :]


def frozen(folder: Path, image: Path, jitter: str) -> dict:
    """What the clock reports when the guest is ready: its instructions, its time, its gates."""
    report = folder / "report.json"
    plugin = f"file={PLUGIN},mode=boot,shift=3,report={report}{jitter}"
    with Guest(folder, image, WAIT, extra=(*ICOUNT, "-seed", "1", "-uuid", UUID, "-plugin", plugin)) as guest:
        guest.start((folder / "l", folder / "r"))
        guest.wait_until(report.exists, "not ready")
    return json.loads(report.read_text())


@pytest.mark.night
def test_a_boot_cut_into_pieces_is_the_same_boot(bootable: Path, tmp_path: Path) -> None:
    if not PLUGIN.exists():
        pytest.skip("the clock plugin is not built")
    whole = frozen(tmp_path / "whole", bootable, "")
    pieces = frozen(tmp_path / "pieces", bootable, ",jitter=300")
    assert pieces["gates"] > 1000 * whole["gates"]
    assert whole["status"] == "ready"
    for figure in ("instructions", "zero_ns", "status"):
        assert pieces[figure] == whole[figure]


def test_two_nodes_call_each_other_under_the_real_clock(bootable: Path, tmp_path: Path) -> None:
    binder = {"app": "portmapper", "options": {}}
    server = {"app": "echo-server", "options": {"transports": ["mbcf3"]}}
    options = {"server": 2, "transport": "mbcf3", "procedure": "echo", "series": 0, "sizes": [64], "calls": 5, "warmup": 0}
    caller = node_job(1, 2, services=[binder], steps=[{"app": "echo-client", "options": options}])
    client, _ = run_pair(tmp_path, bootable, caller, node_job(2, 1, services=[binder, server]))
    (batch, calls) = client.batches()[0]
    assert (client.samples()[0]["clock"], batch["transport"]) == ("monotonic", "mbcf3")
    assert [call["ok"] for call in calls] == [1] * 5
    assert all(before["end"] <= after["start"] for before, after in zip(calls, calls[1:], strict=False))
