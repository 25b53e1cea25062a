# SPDX-License-Identifier: Apache-2.0
"""What Python programs write and how they end, in a new interpreter and as the zygote's child."""

import errno
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import Programs, wait_until
from sundial.seams.samples import Line
from sundial.workloads import functions as harness
from sundial_guest import connections, functions


def test_a_batch_is_what_the_harness_reads(programs: Programs) -> None:
    status, toy = programs.run('{"do": "batch"}')
    assert status == 0
    header, *rows = [Line.validate_json(line) for line in toy.records.read_text().splitlines()] or [None]
    assert header is not None
    assert (header.type, header.step, header.app) == ("batch", 4, "toy-client")
    assert len(rows) == 2001
    assert [row[0] for row in rows] == list(range(2001))
    assert all(start <= end and rest == [1, 0, 7, None] for _, start, end, *rest in rows[:-1])
    assert rows[-1] == (2000, 1, 2, 0, 0, None, 'EOFError "x"')


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('{"port": 10}', "option port: must be an integer from 1 to 9"),
        ('{"port": true}', "option port: must be an integer from 1 to 9"),
        ('{"do": "jump"}', 'option do: must be one of "batch", "raise", "draw", "serve"'),
        ('{"more": 1}', "option more: unknown; there are port, do, die_call"),
        ('{"port": 1, "port": 2}', "options: a name is there twice"),
        ("[]", "options: must be a JSON object"),
    ],
)
def test_a_wrong_option_is_named(programs: Programs, given: str, message: str) -> None:
    status, toy = programs.run(given)
    assert status == 2
    assert toy.lines() == [{"type": "error", "step": 4, "app": "toy-client", "message": message}]


def test_options_can_be_checked_alone(programs: Programs) -> None:
    programs.environment["SUNDIAL_CHECK_OPTIONS"] = "1"
    assert programs.run('{"do": "raise"}')[0] == 0
    assert programs.run('{"do": "jump"}')[0] == 2


def test_an_exception_is_an_error_line(programs: Programs) -> None:
    status, toy = programs.run('{"do": "raise"}')
    assert status == 1
    assert toy.lines()[-1]["message"] == "KeyError: 'lost'"


def drawn(programs: Programs) -> dict:
    status, toy = programs.run('{"do": "draw"}')
    assert status == 0
    return toy.lines()[0]


def test_random_numbers_are_the_jobs(programs: Programs) -> None:
    first = drawn(programs)
    assert drawn(programs) == first
    for name, value in (("SUNDIAL_SEED", "12"), ("SUNDIAL_MACHINE", "n"), ("SUNDIAL_STEP", "5")):
        before = programs.environment[name]
        programs.environment[name] = value
        assert drawn(programs)["number"] != first["number"], name
        programs.environment[name] = before


def order(programs: Programs, options: str) -> bytes:
    variables = [f"{name}={value}" for name, value in programs.environment.items()]
    return b"".join(word.encode() + b"\0" for word in ["/usr/lib/sundial/toy-client", options, *variables])


def fork(programs: Programs, mine: socket.socket, options: str) -> tuple[int, int]:
    """An order of the runner's: the process, and the reading end of its standard output."""
    reading, writing = os.pipe()
    socket.send_fds(mine, [order(programs, options)], [writing])
    os.close(writing)
    return int.from_bytes(mine.recv(4), sys.byteorder), reading


def read_to_end(reading: int) -> bytes:
    with os.fdopen(reading, "rb") as output:
        return output.read()


def test_the_zygotes_child_does_what_a_new_interpreter_does(programs: Programs, channel) -> None:
    mine, theirs = channel
    fresh = drawn(programs)
    zygote = programs.start("zygote", "python-zygote", str(theirs.fileno()))
    theirs.close()
    assert mine.recv(16) == b"\0"
    for _ in range(2):
        pid, reading = fork(programs, mine, '{"do": "draw"}')
        assert pid != zygote.process.pid
        assert read_to_end(reading) == b""
    assert zygote.lines() == [{**fresh, "prepared": 1}] * 2
    mine.close()
    assert zygote.process.wait(60) == 0


def test_a_server_counts_and_ends_when_it_is_told(programs: Programs, channel) -> None:
    mine, theirs = channel
    zygote = programs.start("zygote", "python-zygote", str(theirs.fileno()))
    mine.recv(16)
    pid, reading = fork(programs, mine, '{"do": "serve"}')
    with os.fdopen(reading, "rb") as output:
        assert output.readline() == b"ready\n"
        assert Path(f"/proc/{pid}/comm").read_text() == "toy-client\n"
        wait_until(zygote.lines)
        os.kill(pid, signal.SIGTERM)
        assert output.read() == b""
    counted = {"port": 5, "calls": 2, "by_function": {"void": 2}, "failed": 1}
    lines = zygote.lines()
    # It waited between the two.
    assert [line.pop("context_switches").keys() for line in lines] == [{"void"}] * 2
    assert lines == [{"type": "counters", "step": 4, "app": "toy-client", **counted}] * 2


def test_a_server_is_killed_in_a_call_and_its_service_lives_on(programs: Programs) -> None:
    toy = programs.start("start", "/usr/lib/sundial/toy-client", '{"do": "serve", "die_call": 2}')
    wait_until(toy.lines)
    lines = toy.lines()
    assert (lines[0]["calls"], lines[0]["by_function"]) == (2, {"void": 2})
    children = Path(f"/proc/{toy.process.pid}/task/{toy.process.pid}/children").read_text().split()
    wait_until(lambda: Path(f"/proc/{children[0]}/stat").read_text().split()[2] == "Z")
    assert toy.process.poll() is None
    toy.process.send_signal(signal.SIGTERM)
    assert toy.process.wait(60) == 0
    assert len(toy.lines()) == 1


def test_a_zygote_with_threads_forks_nothing(programs: Programs, channel) -> None:
    mine, theirs = channel
    with (programs.folder / "sundial_toy/client.py").open("a") as module:
        module.write("import time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n")
    zygote = programs.start("zygote", "python-zygote", str(theirs.fileno()))
    theirs.close()
    mine.recv(16)
    mine.send(order(programs, "{}"))
    assert mine.recv(16) == b""
    assert b"has 2 threads" in zygote.process.communicate(timeout=60)[1]


def test_the_functions_are_those_of_the_harness() -> None:
    def plain(value: object) -> object:
        if hasattr(value, "weight"):
            return (value.name, value.age, value.weight)
        return tuple(value) if isinstance(value, list) else value

    assert [
        (each.number, each.name, each.size, tuple(map(plain, each.arguments)), plain(each.result), each.has_container)
        for each in functions.FUNCTIONS
    ] == [
        (each.number, each.name, each.size, tuple(map(plain, each.arguments)), plain(each.result), each.contains)
        for each in harness.FUNCTIONS
    ]


def test_a_connection_is_found_by_its_peer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address, port = server.getsockname()
        assert connections.find(address, port) is None
        with socket.create_connection((address, port)) as client:
            found = connections.find(address, port)
            assert found == client.fileno()
            assert connections.local_port(found) == client.getsockname()[1]
            assert connections.retransmits(found) == 0
            before = os.listdir("/proc/self/fd")
            assert connections.find(address, port) == found
            assert os.listdir("/proc/self/fd") == before
            client.send(b"still open")
            accepted, _ = server.accept()
            assert select.select([accepted], [], [], 10)[0]
            accepted.close()


@pytest.fixture
def closed() -> Iterator[tuple[str, int]]:
    """An end at which no program listens yet."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()


def test_a_server_that_is_still_starting_is_waited_for(
    closed: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUNDIAL_CLOCK", "monotonic")
    attempts: list[socket.socket] = []

    def connect() -> str:
        attempts.append(socket.socket())
        with attempts[-1] as client:
            if len(attempts) < 3:
                client.connect(closed)
        return "connected"

    assert connections.await_server(connect, 60) == "connected"
    assert len(attempts) == 3


@pytest.mark.parametrize(("clock", "patience_s"), [("tsc", 60), ("monotonic", 0)])
def test_who_refuses_is_not_waited_for(
    closed: tuple[str, int], monkeypatch: pytest.MonkeyPatch, clock: str, patience_s: float
) -> None:
    """Under the virtual clock servers are ready before steps begin; under the real one patience ends."""
    monkeypatch.setenv("SUNDIAL_CLOCK", clock)
    attempts: list[tuple[str, int]] = []

    def connect() -> socket.socket:
        attempts.append(closed)
        return socket.create_connection(closed)

    with pytest.raises(ConnectionRefusedError):
        connections.await_server(connect, patience_s)
    assert len(attempts) == 1


def test_another_failure_is_no_reason_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUNDIAL_CLOCK", "monotonic")

    def connect() -> None:
        raise PermissionError(errno.EACCES, "no")

    with pytest.raises(PermissionError):
        connections.await_server(connect, 60)
