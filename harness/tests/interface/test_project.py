# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501
"""The programs of an interface: compiled here, they call each other over sockets, and their messages are judged."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.interface.judge import Message, facts, judge
from sundial.interface.language import parse
from sundial.interface.messages import records
from sundial.interface.project import project
from sundial.machines.waiting import wait_until
from sundial.model.catalog import ROOT

EVERY = Path(__file__).parent / "every.x"
CHECKED = "-O1 -std=c11 -Wall -Wextra -Wno-unused-parameter -Werror -fno-strict-aliasing -fsanitize=address,undefined -fno-sanitize-recover"
CLIENT, SERVER = ("127.0.0.1", 1), ("127.0.0.1", 2)
Relayed = list[tuple[bool, bytes]]


def written(file: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name, (text, mode) in project(file, "sundial").items():
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    return folder


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = written(EVERY, tmp_path_factory.mktemp("every"))
    subprocess.run(["make", "-s", "-j2", f"CFLAGS={CHECKED}", f"LDFLAGS={CHECKED}"], cwd=folder, check=True)
    return folder


def free_port() -> int:
    """One that neither UDP nor TCP has."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            with contextlib.suppress(OSError):
                udp.bind(tcp.getsockname())
                return int(tcp.getsockname()[1])


@contextlib.contextmanager
def served(server_program: Path) -> Iterator[int]:
    """The port of a server that says nothing and serves until the end."""
    number = free_port()

    def serves() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", number)) == 0

    with subprocess.Popen([server_program, str(number)], stderr=subprocess.PIPE, text=True) as server:
        try:
            wait_until(serves, seconds=30, what="a server")
            yield number
            assert server.poll() is None
        finally:
            server.terminate()
        assert server.stderr is not None
        assert server.stderr.read() == ""


@pytest.fixture
def port(every: Path) -> Iterator[int]:
    with served(every / "every-server") as number:
        yield number


def relay_datagrams(near: socket.socket, port: int, seen: Relayed) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as far:
        far.settimeout(30)
        far.connect(("127.0.0.1", port))
        while True:
            data, client = near.recvfrom(1 << 16)
            if not data:
                return
            seen.append((False, data))
            far.send(data)
            seen.append((True, far.recv(1 << 16)))
            near.sendto(seen[-1][1], client)


def relay_stream(near: socket.socket, port: int, seen: Relayed) -> None:
    """Sends on byte by byte: records come in pieces."""
    client, _ = near.accept()
    with client, socket.create_connection(("127.0.0.1", port)) as far:
        for one in (client, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def back() -> None:
            while data := far.recv(1 << 16):
                seen.append((True, data))
                client.sendall(data)

        answers = threading.Thread(target=back)
        answers.start()
        while data := client.recv(1 << 16):
            seen.append((False, data))
            for byte in data:
                far.sendall(bytes([byte]))
        far.shutdown(socket.SHUT_WR)
        answers.join()


def called(every: Path, port: int, transport: str) -> tuple[str, list[Message]]:
    """What a client printed, and the messages that went through a relay between it and the server."""
    seen: Relayed = []
    stream = transport == "tcp"
    with socket.socket(type=socket.SOCK_STREAM if stream else socket.SOCK_DGRAM) as near:
        near.bind(("127.0.0.1", 0))
        if stream:
            near.listen()
        relay = threading.Thread(target=relay_stream if stream else relay_datagrams, args=(near, port, seen))
        relay.start()
        words = [str(every / "every-client"), "127.0.0.1", str(near.getsockname()[1]), transport, "3"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        if not stream:
            with socket.socket(type=socket.SOCK_DGRAM) as end:
                end.sendto(b"", near.getsockname())
        relay.join()
    assert (done.returncode, done.stderr) == (0, "")
    if stream:
        whole = [b"".join(data for way, data in seen if way == reply) for reply in (False, True)]
        parts = [[(bool(reply), each.data) for each in records(whole[reply])] for reply in (0, 1)]
        seen = [each for pair in zip(*parts, strict=True) for each in pair]
    ends = ((CLIENT, SERVER), (SERVER, CLIENT))
    return done.stdout, [Message(transport, *ends[way], data, f"message {n}") for n, (way, data) in enumerate(seen)]


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_both_programs_say_what_the_interface_says(every: Path, port: int, transport: str) -> None:
    """The client's words and the bytes are compared by another hand: values.py reads what xdr.c wrote."""
    output, messages = called(every, port, transport)
    interface = parse(EVERY.read_text(), "every.x")
    lines = facts(("127.0.0.1",), output)
    judged = judge(interface, messages, lines)
    assert [str(each) for each in judged.findings] == []
    assert sum(judged.calls.values()) == len(lines) == 21
    assert set(judged.calls) == {"NOTHING_1", "ECHO_1", "ADD_1", "NAME_1", "LISTS_1", "NOTHING_2"}


def test_a_server_answers_what_it_does_not_serve(port: int) -> None:
    def asked(*words: int, more: bytes = b"") -> str:
        with socket.socket(type=socket.SOCK_DGRAM) as door:
            door.settimeout(30)
            door.connect(("127.0.0.1", port))
            door.send(b"".join(word.to_bytes(4) for word in words) + more)
            return door.recv(1 << 16).hex(" ", 4)

    head, none = (7, 0, 2), (0, 0, 0, 0)
    begin = "00000007 00000001 00000000 00000000 00000000 "
    program = 0x20000002
    assert asked(*head, 5, 1, 1, *none) == f"{begin}00000001"
    assert asked(*head, program, 3, 1, *none) == f"{begin}00000002 00000001 00000002"
    assert asked(*head, program, 2, 1, *none) == f"{begin}00000003"
    assert asked(*head, program, 1, 2, *none, 1) == f"{begin}00000004"
    assert asked(*head, program, 1, 2, *none, 1, 2, 3) == f"{begin}00000004"
    assert asked(*head, program, 1, 3, *none, 1, more=b"ab\0\0") == f"{begin}00000004"  # what pads is not zeros
    assert asked(*head, program, 1, 3, *none, 0xFFFFFFFF) == f"{begin}00000004"
    lists = [1, 7] * 5000
    assert asked(*head, program, 1, 4, *none, *lists, 0, 0) == f"{begin}00000004"  # deeper than 4096
    assert asked(*head, program, 2, 0, *none) == f"{begin}00000000"
    assert asked(7, 0, 3, program, 1, 0, *none) == "00000007 00000001 00000001 00000000 00000002 00000002"


def test_the_walk_of_the_page_is_what_it_says(tmp_path: Path) -> None:
    """docs/programs.md: its interface, and its own code in the server's place."""
    page = (ROOT / "docs" / "programs.md").read_text().partition("## Your own RPC interface")[2]
    interface, add = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    (tmp_path / "calc.x").write_text(interface)
    folder = written(tmp_path / "calc.x", tmp_path / "calc")
    server = (folder / "server.c").read_text()
    sample = "    // Your own: results->result = ...; return true;\n    return xdr_sample(memory, xdr_calc_ADD_1_results, results);\n"
    assert sample in server
    (folder / "server.c").write_text(server.replace(sample, add))
    # The make that runs the tests has jobs of its own.
    variables = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    made = subprocess.run(["make", "-s"], cwd=folder, check=True, capture_output=True, text=True, env=variables)
    assert made.stderr == ""
    with served(folder / "calc-server") as number:
        words = [str(folder / "calc-client"), "127.0.0.1", str(number), "tcp", "1"]
        said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    assert [line.partition("SUCCESS ")[2] for line in said.splitlines()] == [
        "| 1 2 | 3",
        "| x746578742031 2 3 | x746578742031",
    ]


def test_the_scenario_and_the_check_are_of_the_interface(tmp_path: Path) -> None:
    files = project(EVERY, "/opt/my sundial")
    assert set(files) == {
        "every.x", "every.h", "every_rpc.c", "every_serve.c", "server.c", "client.c", "xdr.h", "xdr.c", "rpc.h", "rpc.c",
        "Makefile", "every.yaml", "check",
    }  # fmt: skip
    assert files["check"][0].endswith('exec \'/opt/my sundial\' rpc verify --lines "$(dirname "$0")/every.x" "$1"\n')
    assert files["check"][1] == 0o755
    assert "after: [server, over-udp]" in files["every.yaml"][0]
    large = tmp_path / "large.x"
    large.write_text("program P { version V { void PUT(opaque data[40000]) = 1; } = 1; } = 1;")
    assert "over-udp" not in project(large, "sundial")["large.yaml"][0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("two-words.x", "", "two-words.x: cannot be the name of an interface; allowed: a letter, then up to 31"),
        ("rpc.x", "", "rpc.x: is the name of another file; allowed"),
        ("size.x", "", "size.x: cannot be the name of an interface"),
        ("calc.idl", "", "calc.idl: cannot be the name of an interface"),
        ("a.x", "const A = 1;", "a.x: there is no program; allowed: program NAME"),
        ("a.x", "program P { version V { void A(opaque a[2000000]) = 1; } = 1; } = 1;", "A_1_arguments has at least 2000000 bytes; allowed: up to 1048576"),
        ("a.x", "typedef b *a;\ntypedef a *b;\nprogram P { version V { void A(a) = 1; } = 1; } = 1;", "a.x:1: a is only pointers to itself"),
        ("a.x", "struct s { struct { int a; } b; }; typedef int s_b;\nprogram P { version V { void A(s) = 1; } = 1; } = 1;", "s_b would be the name of two types in C"),
    ],
)  # fmt: skip
def test_what_cannot_be_c_is_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=re.escape(words)):
        project(tmp_path / name, "sundial")


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.x").write_bytes(b"\xe4")
    for name, words in (("none.x", "none.x: No such file"), ("latin.x", "latin.x: is not UTF-8")):
        with pytest.raises(BadInput, match=words):
            project(tmp_path / name, "sundial")
