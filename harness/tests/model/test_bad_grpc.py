# SPDX-License-Identifier: Apache-2.0
"""gRPC in scenarios: what cannot be is one line with what is allowed."""

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.workloads import functions
from sundial.workloads.grpc.expect import LIBRARIES
from sundial.workloads.grpc.model import Grpc

HEAD = "description: A test\ntopology: two-hosts-10base-t\nworkloads:\n"
PYTHON = "defaults.image=linux-python"
KNOWN = f"all, or one or more of {', '.join(functions.NAMES)}, or their numbers from 1 to 12"
FIELDS = (
    "clients, server, series, app, functions, languages, port, calls, warmup, max_workers, bdp_probe, control_frames, die, "
    "total_timeout"
)


def taken(port: int, by: int = 0) -> str:
    """What is said of a port that is workload `by`'s."""
    return f"port {port} of 'server' is that of another server, of workloads.{by}; allowed: a port of its own, or the same server"


def write(folder: Path, *workloads: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(HEAD + "".join(f"  - {{{workload}}}\n" for workload in workloads))
    return str(path)


REFUSED = [
    ("functions: 13", f"functions: 13 is not known; allowed: {KNOWN}"),
    ("functions: [void, long_array]", f"functions: 'long_array' is not known; allowed: {KNOWN}"),
    ("functions: true", f"functions: True is not known; allowed: {KNOWN}"),
    ("functions: []", f"functions: the list is empty; allowed: {KNOWN}"),
    ("containers: [list]", f"containers: unknown field; allowed: {FIELDS}"),
    ("tcp_nodelay: true", f"tcp_nodelay: unknown field; allowed: {FIELDS}"),
    ("sizes: [4]", f"sizes: unknown field; allowed: {FIELDS}"),
    ("calls: 0", "calls: 0 is out of range; allowed: a whole number from 1 to 1000000"),
    ("calls: {0: 5}", "calls: {0: 5} is not a whole number; allowed: a whole number from 1 to 1000000"),
    ("max_workers: 65", "max_workers: 65 is out of range; allowed: a whole number from 1 to 64"),
    ("port: 80", "port: 80 is out of range; allowed: a whole number from 1024 to 65534"),
    ("languages: java", "languages: 'java' is not known; allowed: one or more of python, cpp"),
    ("languages: [python, 1]", "languages: 1 is not known; allowed: one or more of python, cpp"),
    ("languages: {python: true}", "languages: {'python': True} is not known; allowed: one or more of python, cpp"),
    ("languages: []", "languages: the list is empty; allowed: one or more of python, cpp"),
    (
        "port: 65535, languages: [python, cpp]",
        "port: 65535 is out of range; allowed: a whole number from 1024 to 65534",
    ),
    ("bdp_probe: yes please", "bdp_probe: 'yes please' is neither true nor false; allowed: true, false"),
    ("die: 3", "die: is not a mapping of fields; allowed: call"),
    ("die: {call: 0}", "die.call: 0 is out of range; allowed: a whole number from 1 to 1000000"),
    ("die: {}", "die: call is missing; allowed: a whole number from 1 to 1000000"),
    ("die: {call: 3, restart: true}", "die.restart: unknown field; allowed: call"),
    ("control_frames: some", "control_frames: 'some' is not known; allowed: none, counted"),
    (
        "bdp_probe: true",
        "bdp_probe: bdp_probe with control_frames none: its PINGs would all be mismatches; allowed: control_frames: counted",
    ),
]


def lines(path: str, *overrides: str) -> list[str]:
    with pytest.raises(BadInput) as caught:
        load_experiments(path, overrides=[PYTHON, *overrides])
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


@pytest.mark.parametrize(("written", "line"), REFUSED)
def test_what_cannot_be(tmp_path: Path, written: str, line: str) -> None:
    path = write(tmp_path, f"app: grpc, {written}")
    assert lines(path) == [f"{path}:4: workloads.0.{line}"]


@pytest.mark.parametrize("app", ["grpc", "rpyc"])
@pytest.mark.parametrize(("machine", "field"), [("server", "server"), ("client", "clients")])
def test_an_image_without_python(tmp_path: Path, app: str, machine: str, field: str) -> None:
    path = write(tmp_path, f"app: {app}")
    assert lines(path, f"machines.{machine}.image=linux") == [
        f"{path}:4: workloads.0.{field}: image 'linux' of {machine!r} does not run {app}"
    ]


@pytest.mark.parametrize(
    ("first", "second", "port"),
    [
        ("app: grpc, port: 18861", "app: rpyc", 18861),
        ("app: rpyc, port: 50051", "app: grpc", 50051),
        ("app: rpyc, port: 50050, tcp_nodelay: [false, true]", "app: grpc", 50051),
        ("app: grpc, control_frames: counted", "app: grpc", 50051),
    ],
)
def test_two_systems_on_one_port(tmp_path: Path, first: str, second: str, port: int) -> None:
    path = write(tmp_path, first, second)
    assert lines(path) == [f"{path}:5: workloads.1.port: {taken(port)}"]


@pytest.mark.parametrize(
    ("other", "port"),
    [("app: iperf3, transports: udp", 5201), ("app: raw, transports: [udp, tcp], sizes: 64", 1026)],
)
def test_the_port_of_a_server_that_has_no_other(tmp_path: Path, other: str, port: int) -> None:
    mine = f"app: grpc, port: {port}"
    path = write(tmp_path, mine, other)
    assert lines(path) == [f"{path}:4: workloads.0.port: {taken(port, 1)}"]
    path = write(tmp_path, other, mine)
    assert lines(path) == [f"{path}:5: workloads.1.port: {taken(port)}"]
    load_experiments(
        write(tmp_path, "app: grpc, port: 1026", "app: raw, transports: udp, sizes: 4"), overrides=[PYTHON]
    )


@pytest.mark.parametrize("machine", ["client", "server"])
def test_less_memory_than_python_needs(tmp_path: Path, machine: str) -> None:
    path = write(tmp_path, "app: grpc")
    assert lines(path, f"machines.{machine}.memory=160 MiB") == [
        f"--set: machines.{machine}.memory: 160 MiB for {machine!r}, which boots linux-python; "
        "allowed: a size in whole MiB from 192 MiB to 4 GiB, such as '256 MiB'"
    ]


def test_a_version_that_was_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(LIBRARIES, "1.51.1")
    path = write(tmp_path, "app: grpc")
    assert lines(path)[0] == (
        f"{path}:4: workloads.0.app: gRPC 1.51.1 on 'server', which boots linux-python: its frames were not measured; "
        "allowed: an image with gRPC 1.85.1"
    )


def test_an_image_without_the_language(tmp_path: Path) -> None:
    path = write(tmp_path, "app: grpc, languages: [python, cpp]")
    assert lines(path, "machines.client.image=linux-python-current") == [
        f"{path}:4: workloads.0.languages: no gRPC in cpp on 'client', which boots linux-python-current; allowed: python"
    ]


def test_an_mtu_that_tcp_cannot_use(tmp_path: Path) -> None:
    path = write(tmp_path, "app: grpc")
    assert "gRPC over an MTU of 80 bytes" in lines(path, "mtu=80")[0]


def test_a_server_has_its_port(tmp_path: Path) -> None:
    path = write(tmp_path, "app: grpc", "app: grpc, max_workers: 2", "app: grpc, max_workers: 2, port: 50052")
    assert lines(path) == [f"{path}:5: workloads.1.port: {taken(50051)}"]
    path = write(tmp_path, "app: grpc", "app: grpc, die: {call: 3}")
    assert lines(path)[0] == f"{path}:5: workloads.1.port: {taken(50051)}"
    path = write(tmp_path, "app: grpc, languages: [python, cpp]", "app: grpc, port: 50052")
    assert lines(path) == [f"{path}:5: workloads.1.port: {taken(50052)}"]
    load_experiments(
        write(tmp_path, "app: grpc", "app: grpc, calls: 2", "app: dce, port: 50051, sizes: 0"), overrides=[PYTHON]
    )


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("all", functions.NAMES),
        ("[1, 3, void]", ("void", "int")),
        ("'12,person'", ("distance", "person")),
        ("2", ("boolean",)),
    ],
)
def test_functions_by_number_and_name(tmp_path: Path, written: str, names: tuple[str, ...]) -> None:
    path = write(tmp_path, f"app: grpc, functions: {written}")
    (workload,) = load_experiments(path, overrides=[PYTHON])[0].workloads
    assert isinstance(workload, Grpc)
    assert workload.functions == names
