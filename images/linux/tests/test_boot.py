# SPDX-License-Identifier: Apache-2.0
"""The built image in plain QEMU: the runner's protocol, every workload, and faults."""

import base64
import contextlib
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.guest import ICOUNT, PATIENCE_S, Guest, interface, job, run_pair

pytestmark = pytest.mark.vm

ECHO_SERVICES = [
    {"app": "rpcbind", "options": {}},
    {"app": "echo-server", "options": {"transports": ["udp", "tcp"]}},
]


def echo(**options: object) -> dict:
    settings = {
        "server": "10.0.0.2",
        "transport": "udp",
        "procedure": "echo",
        "series": 0,
        "sizes": [0, 16, 1472, 8192],
        "calls": 3,
        "warmup": 1,
        **options,
    }
    return {"app": "echo-client", "options": settings}


def raw(**options: object) -> dict:
    settings = {"server": "10.0.0.2", "sizes": [16, 1473, 8192], "calls": 3, "warmup": 1, **options}
    return {"app": "raw-client", "options": settings}


def pair(
    folder: Path, image: Path, services: list, steps: list, counted: Callable[[dict], bool] | None = None
) -> tuple[Guest, Guest]:
    return run_pair(
        folder,
        image,
        job("client", [interface(1, (2,))], steps=steps),
        job("server", [interface(2, (1,))], services=services),
        counted,
    )


def assert_all_ok(client: Guest) -> None:
    assert client.lines("error") == [], client.describe()
    assert all(step["status"] == 0 for step in client.lines("step")), client.describe()
    assert client.lines("done") == [{"type": "done", "status": 0}]
    for header, rows in client.batches():
        assert all(row["ok"] == 1 and row["error"] is None for row in rows), (header, rows)
        assert all(row["end"] > row["start"] for row in rows)


@pytest.mark.night
def test_echo_over_both_transports_and_all_procedures(image: Path, tmp_path: Path) -> None:
    client, server = pair(
        tmp_path,
        image,
        ECHO_SERVICES,
        [
            echo(),
            echo(transport="tcp", connection="per-size", send_buffer=4000, tcp_nodelay=False),
            echo(procedure="echo_string", auth="sys", auth_machine="vm"),
            echo(procedure="sink", transport="tcp", one_way=True),
            echo(procedure="source", threads=3),
            echo(procedure="null", sizes=[0]),
        ],
        lambda counters: counters["calls"] >= 4 * 4 * 7 + 4,
    )
    assert_all_ok(client)
    hello = client.lines("hello")[0]
    assert (hello["machine"], hello["clock"]) == ("client", "monotonic")
    assert [binding["ok"] for binding in client.lines("binding")] == [True] * 6
    batches = client.batches()
    assert len(batches) == 4 * 4 + 4 * 3 + 1
    assert all(len(rows) == 4 for _, rows in batches)
    threads = {header["thread"] for header, _ in batches if header["procedure"] == "source"}
    assert threads == {0, 1, 2}
    xids = [row["xid"] for _, rows in batches for row in rows]
    assert len(set(xids)) == len(xids)
    counters = server.lines("counters")[-1]
    assert counters["bad_payload"] == 0
    assert counters["by_procedure"]["sink_one_way"] == 16
    assert counters["by_procedure"]["echo"] == 32


@pytest.mark.night
def test_raw_sockets(image: Path, tmp_path: Path) -> None:
    client, server = pair(
        tmp_path,
        image,
        [{"app": "raw-server", "options": {}}],
        [raw(transport="udp", sizes=[0, 1, 15, 16, 8192]), raw(transport="tcp", threads=2)],
        lambda counters: counters["messages"] >= 24,
    )
    assert_all_ok(client)
    counters = server.lines("counters")[-1]
    assert counters["bad_payload"] == 0
    # A busy host makes the client send again, and loses what comes before the server is up.
    again = sum(row["retransmits"] for _, rows in client.batches() for row in rows)
    assert 20 <= counters["datagrams"] <= 20 + again
    assert counters["messages"] == 24


@pytest.mark.night
def test_iperf3(image: Path, tmp_path: Path) -> None:
    client, _ = pair(
        tmp_path,
        image,
        [{"app": "iperf3-server", "options": {}}],
        [{"app": "iperf3-client", "options": {"server": "10.0.0.2", "duration_ms": 1000}}],
    )
    assert_all_ok(client)
    result = client.lines("iperf3")[0]["result"]
    assert result["end"]["sum_received"]["bytes"] > 0


@pytest.mark.night
def test_the_wire_carries_nothing_but_the_experiment(image: Path, tmp_path: Path) -> None:
    """Two silent machines with addresses: their control frames and not one frame more."""
    with Guest(tmp_path / "g", image, job("a", [interface(1, (2,))]), ICOUNT) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        guest.wait_for("done")
        time.sleep(2)  # many virtual seconds: an idle machine does not wait for the host's clock
    capture = (tmp_path / "g" / "wire.pcap").read_bytes()
    assert capture.count(b"\x88\xb5sundial-done\x00") == 1
    assert len(capture) == 24 + 16 + 27


@pytest.mark.night
def test_a_waiting_machine_says_ready_once(image: Path, tmp_path: Path) -> None:
    waiting = {"version": 1, "wait": True}
    with Guest(tmp_path / "g", image, waiting, ICOUNT) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        capture = tmp_path / "g" / "wire.pcap"
        guest.wait_until(lambda: capture.exists() and capture.stat().st_size > 24, "no frame")
        time.sleep(1)
        assert capture.read_bytes()[24:].count(b"\x88\xb5sundial-ready") == 1
        assert capture.stat().st_size == 24 + 16 + 27


@pytest.mark.night
def test_equal_machines_behave_equally_in_virtual_time(image: Path, tmp_path: Path) -> None:
    outcomes = []
    for name in ("first", "second"):
        both = job(
            "server", [interface(2, (1,))], clock="tsc", services=ECHO_SERVICES, steps=[echo()]
        )
        with Guest(tmp_path / name, image, both, ICOUNT) as guest:
            guest.start((tmp_path / f"{name}.a", tmp_path / f"{name}.b"))
            guest.wait_for("counters")
        outcomes.append(
            (guest.samples_path.read_bytes(), (tmp_path / name / "wire.pcap").read_bytes())
        )
    assert outcomes[0] == outcomes[1]


@pytest.mark.night
def test_a_crashing_service_is_named_with_its_signal(image: Path, tmp_path: Path) -> None:
    """The server is killed in the middle of a step of the same machine."""
    port_path = tmp_path / "exec"
    extra = (
        *("-chardev", f"socket,id=exec,path={port_path},server=on,wait=off"),
        *("-device", "virtserialport,chardev=exec,name=sundial.exec"),
    )
    steps = [echo(port=1025, sizes=[0], calls=3000, total_timeout_ms=3, retry_timeout_ms=2)]
    both = job(
        "server", [interface(2, (1,))], services=ECHO_SERVICES, steps=steps, interactive=True
    )
    with Guest(tmp_path / "g", image, both, extra) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        guest.wait_for("hello")
        port = ExecPort(port_path)
        port.run("sh", "-c", "until pidof echo-client; do :; done; kill -SEGV $(pidof echo-server)")
        port.close()
        assert guest.wait_for("done")["status"] == 1
        (error,) = guest.lines("error")
        assert error["app"] == "echo-server"
        assert error["message"].startswith("killed by signal 11")
        position = [line.get("type") for line in guest.samples() if isinstance(line, dict)]
        assert position.index("error") < position.index("step")


def test_a_file_takes_the_place_of_one_application_only(image: Path, tmp_path: Path) -> None:
    both = job(
        "server",
        [interface(2, (1,))],
        files={"/usr/lib/sundial/raw-server": "#!/bin/sh\nexit 3\n"},
        services=[*ECHO_SERVICES, {"app": "raw-server", "options": {}}],
    )
    with Guest(tmp_path / "g", image, both) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        assert guest.wait_for("done")["status"] == 1
        (error,) = guest.lines("error")
        assert (error["app"], error["message"]) == ("raw-server", "ended with status 3")


def test_a_job_that_is_wrong_ends_with_an_error(image: Path, tmp_path: Path) -> None:
    wrong = job("a", [{**interface(1, ()), "mtu": 5}])
    with Guest(tmp_path / "g", image, wrong) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        assert guest.wait_for("done")["status"] == 1
        assert "mtu" in guest.lines("error")[0]["message"]


def test_a_wrong_option_fails_its_step_and_no_other(image: Path, tmp_path: Path) -> None:
    steps = [echo(frobnicate=1), echo(port=9, sizes=[0], calls=1, warmup=0, total_timeout_ms=300)]
    with Guest(tmp_path / "g", image, job("a", [interface(1, (2,))], steps=steps)) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        assert guest.wait_for("done")["status"] == 1
        assert "frobnicate" in guest.lines("error")[0]["message"]
        assert [step["status"] for step in guest.lines("step")] == [2, 0]
        row = guest.batches()[0][1][0]
        assert row["ok"] == 0 and "Timed out" in row["error"]


class ExecPort:
    """The host's end of the port sundial.exec."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        self._number = 0

    def run(self, *argv: str) -> tuple[int, bytes, bytes]:
        """Exit status, output and error output of a command without input."""
        self._number += 1
        outputs = {"stdout": b"", "stderr": b""}
        self.say(id=self._number, argv=argv)
        self.say(id=self._number, input=None)
        while "status" not in (answer := self.hear()):
            assert answer.pop("id") == self._number
            ((name, text),) = answer.items()
            outputs[name] += base64.b64decode(text)
            self.say(id=self._number, taken=len(text) // 4 * 3)
        return answer["status"], outputs["stdout"], outputs["stderr"]

    def say(self, **request: object) -> None:
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def hear(self) -> dict:
        return json.loads(self._lines.readline())

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def test_an_interactive_machine_serves_commands_and_a_shell(image: Path, tmp_path: Path) -> None:
    port_path, console_path = tmp_path / "exec", tmp_path / "console"
    extra = (
        *("-chardev", f"socket,id=exec,path={port_path},server=on,wait=off"),
        *("-device", "virtserialport,chardev=exec,name=sundial.exec"),
        *("-chardev", f"socket,id=tty,path={console_path},server=on,wait=off"),
    )
    interactive = job("up", [interface(1, (2,))], interactive=True)
    guest = Guest(tmp_path / "g", image, interactive, extra)
    command = guest.command
    guest.command = lambda wire: [
        "chardev:tty" if word.startswith("file:") and word.endswith("console.log") else word
        for word in command(wire)
    ]
    with guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        guest.wait_for("done")
        port = ExecPort(port_path)
        assert port.run("sh", "-c", "echo out; echo err >&2; exit 3") == (3, b"out\n", b"err\n")
        assert port.run("sh", "-c", "kill -9 $$")[0] == 128 + 9
        assert port.run("sh", "-lc", "tc -Version; ip -Version")[1].count(b"iproute2") == 2
        for program in ("tcpdump --version", "ethtool eth0", "tc qdisc", "ip addr", "ls /", "modprobe sch_netem"):
            assert port.run(*program.split())[0] == 0, program
        # Where pages can be moved about or stalls be counted, neither is done.
        quiet = port.run("sh", "-c", "cd /proc; cat sys/vm/compaction_proactiveness; ls pressure; exit 0")
        assert quiet[1] in (b"0\n", b"")
        port.close()
        console = socket.socket(socket.AF_UNIX)
        console.settimeout(PATIENCE_S)
        console.connect(str(console_path))
        console.sendall(b"echo $((6*7))\n")
        seen = b""
        while b"\n42" not in seen:
            seen += console.recv(4096)
        console.close()


def test_a_bridge_with_netem_delays_what_passes(image: Path, tmp_path: Path) -> None:
    """The bridge guest alone: its second port is answered by this test."""
    bridged = job(
        "middle",
        [{"device": "eth0", "offloads": False}, {"device": "eth1", "offloads": False}],
        bridge={"ports": ["eth0", "eth1"], "netem": {"eth0": "", "eth1": "delay 2s"}},
    )
    far = tmp_path / "far"
    extra = (
        "-netdev",
        f"dgram,id=n1,local.type=unix,local.path={tmp_path}/c,remote.type=unix,remote.path={far}",
        "-device",
        "virtio-net-pci,netdev=n1,tx=timer,x-txtimer=1,ioeventfd=off,romfile=,addr=0x11",
    )
    near = tmp_path / "near"
    with contextlib.ExitStack() as stack:
        guest = stack.enter_context(Guest(tmp_path / "g", image, bridged, extra))
        hosts = [
            stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) for _ in range(2)
        ]
        for host, path in zip(hosts, (near, far), strict=True):
            host.bind(str(path))
            host.settimeout(PATIENCE_S)
        guest.start((tmp_path / "a", near))
        assert guest.wait_for("done")["status"] == 0, guest.describe()
        east, west = (
            b"\xff" * 6 + b"\x02\x53\x44\x00\x00" + sender + b"\x88\xb6" + b"hello".ljust(46, b".")
            for sender in (b"\x08", b"\x09")
        )
        hosts[0].sendto(east, str(tmp_path / "a"))
        hosts[1].sendto(west, str(tmp_path / "c"))
        while hosts[0].recv(2000) != west:  # sent later, the other way, which has no netem
            pass
        hosts[1].setblocking(False)
        with pytest.raises(BlockingIOError):
            hosts[1].recv(2000)
        hosts[1].settimeout(PATIENCE_S)
        assert hosts[1].recv(2000) == east  # and nothing of the bridge's own before it


@pytest.mark.night
def test_a_kernel_panic_ends_the_machine(image: Path, tmp_path: Path) -> None:
    port_path = tmp_path / "exec"
    extra = (
        *("-chardev", f"socket,id=exec,path={port_path},server=on,wait=off"),
        *("-device", "virtserialport,chardev=exec,name=sundial.exec"),
    )
    with Guest(tmp_path / "g", image, job("a", [], interactive=True), extra) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        guest.wait_for("done")
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(port_path))
        connection.sendall(b'{"id":1,"argv":["sh","-c","echo c > /proc/sysrq-trigger"]}\n')
        guest.wait_until_ended()
        assert "panic" in guest.console_path.read_text()
        connection.close()
