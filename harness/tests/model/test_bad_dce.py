# SPDX-License-Identifier: Apache-2.0
"""DCE RPC in scenarios: what C706 and the runtime cannot do is one line with what is allowed."""

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.model.sizes import ALLOWED
from sundial.workloads.dce.model import Dce
from sundial.workloads.functions import NAMES

HEAD = "description: A test\ntopology: two-hosts-10base-t\nworkloads:\n"
DCE = "app: dce, sizes: [0, 4016]"
KNOWN = f"all, or one or more of {', '.join(NAMES)}, or their numbers from 1 to 12"


def write(folder: Path, *workloads: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(HEAD + "".join(f"  - {{{workload}}}\n" for workload in workloads))
    return str(path)


REFUSED = [
    ("transports: tcp", "transports: 'tcp' is not known; allowed: one or more of udp"),
    ("fragment: 4097", "fragment: fragment 4097 is not a multiple of 8; allowed: such as 4096"),
    ("fragment: 1456", "fragment: '1456' is out of range; allowed: a size from 1464 B to 8 KiB, such as '4096'"),
    ("fragment: 8200", "fragment: '8200' is out of range; allowed: a size from 1464 B to 8 KiB, such as '4096'"),
    ("window: 3 KiB", "window: window 3072 below a fragment of 4096 bytes; allowed: at least one fragment"),
    ("window: 2 KiB", "window: '2 KiB' is out of range; allowed: a size from 3 KiB to 64 KiB, such as '32 KiB'"),
    ("window: 5000", "window: window 5000 is no whole number of KiB; allowed: such as 32 KiB"),
    ("semantics: broadcast, sizes: [4017]", "sizes: 4017 bytes do not fit dce put over udp; allowed: 0 to 4016 bytes (one fragment of a broadcast)"),
    ("semantics: broadcast, binding: mapper", "binding: mapper with broadcast: which machine would be asked?; allowed: string"),
    ("semantics: broadcast, policy: osf", "policy: osf with broadcast, which may not be in fragments; allowed: window or halves"),
    ("semantics: maybe, procedures: [put, get]", "semantics: maybe with get: there is no response that could bring its bytes; allowed: procedures: null, put"),
    ("semantics: maybe, procedures: echo", "semantics: maybe with echo: there is no response that could bring its bytes; allowed: procedures: null, put"),
    ("resend: 31 s", "resend: resend is longer than give_up: nothing would be sent again; allowed: up to give_up"),
    ("sizes: [196609]", "sizes: 196609 bytes do not fit dce put over udp; allowed: 0 to 196608 bytes (this testbed's own limit)"),
    ("sizes: '0:999:1'", "sizes: 1000 sizes, each of which is a procedure; allowed: up to 999"),
    ("threads: 33", "threads: 33 is out of range; allowed: a whole number from 1 to 32"),
    ("port: 135", "port: 135 is out of range; allowed: a whole number from 1024 to 65535"),
]  # fmt: skip


REFUSED_FUNCTIONS = [
    ("functions: 13", f"functions: 13 is not known; allowed: {KNOWN}"),
    ("functions: [void, float]", f"functions: 'float' is not known; allowed: {KNOWN}"),
    ("functions: []", f"functions: the list is empty; allowed: {KNOWN}"),
    ("functions: all, procedures: put", "procedures: procedures with functions, whose values are their own; allowed: procedures or functions"),
    ("functions: all, sizes: [4]", "sizes: sizes with functions, whose values are their own; allowed: sizes or functions"),
    ("functions: all, order: seeded", "order: order seeded with functions; allowed: their order in functions alone"),
    ("functions: all, calls: {0: 9, 800: 3}", "calls: calls by size with functions; allowed: one number of calls"),
    ("functions: '1,2', semantics: maybe", "semantics: maybe with boolean: there is no response that could bring its bytes; allowed: functions: void"),
    ("functions: all, semantics: broadcast", "functions: string_array has 4807 bytes, but a broadcast is one fragment of 4016; allowed: other functions, or a larger fragment"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "line"), REFUSED_FUNCTIONS)
def test_what_cannot_be_with_functions(tmp_path: Path, written: str, line: str) -> None:
    path = write(tmp_path, f"app: dce, {written}")
    with pytest.raises(BadInput) as caught:
        load_experiments(path)
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines() == [f"{path}:4: workloads.0.{line}"]


def test_either_sizes_or_functions(tmp_path: Path) -> None:
    path = write(tmp_path, "app: dce, procedures: put")
    with pytest.raises(BadInput) as caught:
        load_experiments(path)
    said = f"workloads.0: sizes is missing; allowed: {ALLOWED}; or functions in place of sizes"
    assert str(caught.value).splitlines() == [f"{path}:4: {said}"]


def test_functions_are_taken_by_name_and_number(tmp_path: Path) -> None:
    (workload,) = load_experiments(write(tmp_path, "app: dce, functions: '12,void,2'"))[0].workloads
    assert isinstance(workload, Dce)
    assert workload.functions == ("distance", "void", "boolean")
    assert (workload.procedures, workload.sizes) == ((), ())
    (workload,) = load_experiments(write(tmp_path, DCE))[0].workloads
    assert isinstance(workload, Dce)
    assert (workload.procedures, workload.functions) == (("put",), None)


@pytest.mark.parametrize(("written", "line"), REFUSED)
def test_what_cannot_be(tmp_path: Path, written: str, line: str) -> None:
    fields = f"app: dce, {written}" if "sizes:" in written else f"{DCE}, {written}"
    path = write(tmp_path, fields)
    with pytest.raises(BadInput) as caught:
        load_experiments(path)
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines() == [f"{path}:4: workloads.0.{line}"]


def test_a_broadcast_reaches_one_segment(tmp_path: Path) -> None:
    topology = tmp_path / "routed.yaml"
    topology.write_text(
        "description: Two networks\n"
        "machines:\n"
        "  client: {interfaces: {eth0: {address: 10.0.0.1/24}}, routes: [{to: 10.1.0.0/24, via: 10.0.0.254}]}\n"
        "  router: {interfaces: {eth0: {address: 10.0.0.254/24}, eth1: {address: 10.1.0.254/24}}}\n"
        "  server: {interfaces: {eth0: {address: 10.1.0.1/24}}, routes: [{to: 10.0.0.0/24, via: 10.1.0.254}]}\n"
        "segments:\n"
        "  near: {kind: hub, rate: 10 Mbit/s, ports: ['client:eth0', 'router:eth0']}\n"
        "  far: {kind: hub, rate: 10 Mbit/s, ports: ['router:eth1', 'server:eth0']}\n"
    )
    path = write(tmp_path, f"{DCE}, semantics: broadcast, clients: [client]")
    with pytest.raises(BadInput, match="broadcast from 'client', which shares no segment with 'server'"):
        load_experiments(path, topology=str(topology))


@pytest.mark.parametrize(
    ("written", "line"),
    [
        (
            "threads: 9, sizes: [32128]",
            "9 callers of 'server', which boots ssscore, with 32768 bytes under way each: its sockets keep 262144; "
            "allowed: up to 8 callers, or a smaller window",
        ),
        (
            "threads: 16, window: 8 KiB, sizes: [196608]",
            "16 callers of 'server', which boots ssscore, with up to 196608 bytes: its memory is for 15; "
            "allowed: up to 15 callers, or smaller sizes",
        ),
    ],
)
def test_what_a_small_server_cannot_hold(tmp_path: Path, written: str, line: str) -> None:
    path = write(tmp_path, f"app: dce, {written}")
    load_experiments(path)
    with pytest.raises(BadInput) as caught:
        load_experiments(path, overrides=["machines.server.image=ssscore"])
    assert str(caught.value).splitlines() == [f"{path}:4: workloads.0.threads: {line}"]


@pytest.mark.parametrize(
    "written", ["threads: 8, sizes: [32128]", "threads: 32, sizes: [4016]", "threads: 32, functions: all"]
)
def test_what_it_can(tmp_path: Path, written: str) -> None:
    load_experiments(write(tmp_path, f"app: dce, {written}"), topology="sss-two-100base-tx")


def test_one_mapper_a_server(tmp_path: Path) -> None:
    path = write(tmp_path, f"{DCE}, binding: mapper", f"{DCE}, binding: mapper, port: 1028")
    with pytest.raises(BadInput) as caught:
        load_experiments(path)
    assert "5: workloads.1.port: port 1028, but the endpoint mapper of 'server' gives port 1027" in str(caught.value)


def test_edges_are_those_of_fragments_and_packets(tmp_path: Path) -> None:
    (workload,) = load_experiments(write(tmp_path, "app: dce, sizes: [0, edges, 5409]"))[0].workloads
    assert isinstance(workload, Dce)
    assert workload.sizes == (0, 1392, 1393, 1394, 2872, 2873, 2874, 4016, 4017, 4018, 5408, 5409)
