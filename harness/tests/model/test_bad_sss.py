# SPDX-License-Identifier: Apache-2.0
"""SSS-CORE in topologies and scenarios: what fits, what each transport carries, and one line for what does not."""

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.images import IMAGES
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.model.workload import Sized
from sundial.workloads.sunrpc.scenario import SunRpc

HEAD = "description: A test\ntopology: sss-two-100base-tx\nworkloads:\n"
MBCF = "mbcf1, mbcf2, mbcf12, mbcf3, mbcf3a, mbcf3b"


def refused(folder: Path, workload: str, *overrides: str, topology: str | None = None) -> str:
    path = folder / "mine.yaml"
    path.write_text(f"{HEAD}  - {{{workload}}}\n")
    with pytest.raises(BadInput) as caught:
        load_experiments(str(path), topology=topology, overrides=overrides)
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()[0].removeprefix(f"{path}:4: workloads.0.")


def accepted(folder: Path, workload: str, *overrides: str, topology: str | None = None) -> Sized:
    path = folder / "mine.yaml"
    path.write_text(f"{HEAD}  - {{{workload}}}\n")
    found = load_experiments(str(path), topology=topology, overrides=overrides)[0].workloads[0]
    assert isinstance(found, Sized)
    return found


def test_a_machine_gets_what_its_image_is_content_with() -> None:
    nodes = build_network(load_topology("sss-cluster")).nodes
    assert [(node.name, node.image, node.memory >> 20) for node in nodes] == [
        ("n1", "ssscore", 32),
        ("n2", "ssscore", 32),
        ("n3", "ssscore", 32),
        ("n4", "ssscore", 32),
        ("linux", "linux", 96),
    ]
    assert IMAGES["ssscore"].start_ns < IMAGES["linux"].start_ns


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("machines.n1.memory=2 GiB", "machines.n1.memory: 2 GiB for 'n1', which boots ssscore; allowed: a size in whole MiB from 16 MiB to 1 GiB, such as '32 MiB'"),
        ("machines.linux.memory=32 MiB", "machines.linux.memory: 32 MiB for 'linux', which boots linux; allowed: a size in whole MiB from 96 MiB to 4 GiB, such as '96 MiB'"),
        ("defaults.memory=16 MiB", "defaults.memory: 16 MiB for 'linux', which boots linux; allowed: a size in whole MiB from 96 MiB to 4 GiB, such as '96 MiB'"),
        ("machines.n1.role=bridge", "machines.n1.role: image 'ssscore' cannot be a bridge; allowed: host"),
    ],
)  # fmt: skip
def test_memory_and_role_are_the_images(override: str, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_topology("sss-cluster", [override])
    assert str(caught.value).splitlines()[0] == f"--set: {line}"


RPC = "app: sunrpc, sizes: 64, transports: "
REFUSED = [
    ("app: raw, sizes: 64, transports: udp", "server: image 'ssscore' of 'server' does not run raw"),
    (f"{RPC}udp, depth: 2", f"depth: depth 2 over udp, whose client waits for the reply of each call; allowed: 1, or the transports {MBCF}"),
    (f"{RPC}[mbcf3, udp], ack: false", f"ack: ack false over udp, which has no such acknowledgement; allowed: true, or the transports {MBCF}"),
    (f"{RPC}mbcf3, depth: 0", "depth: 0 is out of range; allowed: a whole number from 1 to 32"),
    (f"{RPC}mbcf3, die: {{when: after, call: 0}}", "die.call: 0 is out of range; allowed: a whole number from 1 to 1000000"),
    (f"{RPC}mbcf4", "transports: 'mbcf4' is not known; allowed: one or more of udp, tcp, mbcf1, mbcf2, mbcf12, mbcf3, mbcf3a, mbcf3b, vrpc, vrpc-mbcf"),
    (f"{RPC}mbcf3, depth: 33", "depth: 33 is out of range; allowed: a whole number from 1 to 32"),
    (f"{RPC}udp, one_way: true, procedures: sink", f"one_way: one_way over udp: libtirpc does not send a call without waiting for its reply; allowed: transports: tcp, {MBCF}"),
    (f"{RPC}mbcf3, one_way: true", "one_way: one_way with echo: only sink has no result; allowed: procedures: sink"),
    (f"{RPC}[mbcf3, tcp], semantics: at_least_once", "semantics: at_least_once over tcp; allowed: at_most_once over tcp"),
    (f"{RPC}mbcf3, reply_cache: 4097, semantics: at_most_once", "reply_cache: 4097 is out of range; allowed: a whole number from 1 to 4096"),
    (f"{RPC}udp, semantics: exactly_once", "semantics: exactly_once over udp; allowed: at_least_once, at_most_once over udp"),
    (f"{RPC}udp, semantics: never", "semantics: 'never' is not known; allowed: at_least_once, at_most_once, exactly_once"),
    (f"{RPC}udp, reply_cache: 16", "reply_cache: reply_cache without at_most_once over udp or MBCF: no reply would be kept; allowed: semantics: at_most_once, transports: udp, mbcf1, mbcf2, mbcf12, mbcf3, mbcf3a, mbcf3b"),
    (f"{RPC}mbcf3, die: {{when: later, call: 1}}", "die.when: 'later' is not known; allowed: before, during, after"),
    (f"{RPC}mbcf3, die: {{when: after}}", "die: call is missing; allowed: a whole number from 1 to 1000000"),
    (f"{RPC}tcp, socket_buffer: 4000", "socket_buffer: socket_buffer with 'server', which boots ssscore: its sockets' buffers are fixed; allowed: leave it out"),
    (f"{RPC}tcp, serving: {{socket_buffer: 4000}}", "serving.socket_buffer: serving.socket_buffer with 'server', which boots ssscore: its sockets' buffers are fixed; allowed: leave it out"),
    (f"{RPC}[udp, vrpc-mbcf], send_buffer: 4000", "send_buffer: send_buffer over udp, vrpc-mbcf; allowed: transports: tcp"),
    (f"{RPC}mbcf3, udp_message_size: 4000", "udp_message_size: udp_message_size over mbcf3; allowed: transports: udp"),
    (f"{RPC}udp, serving: {{recv_buffer: 4000}}", "serving.recv_buffer: serving.recv_buffer over udp; allowed: transports: tcp"),
    (f"{RPC}udp, threads: 2", "threads: 2 threads with 'client', which boots ssscore: its client has one; allowed: 1; depth is calls under way over MBCF"),
    (f"{RPC}mbcf3, depth: 2, one_way: true, procedures: sink", "depth: depth 2 with one_way: there are no replies to wait for; allowed: 1"),
    (f"{RPC}tcp, tcp_nodelay: false", "tcp_nodelay: tcp_nodelay with 'server', which boots ssscore: its TCP never waits for more data; allowed: true"),
    ("app: sunrpc, transports: mbcf3, sizes: [edges]", "sizes: edges over MBCF: only those of udp and tcp are known; allowed: sizes and ranges FIRST:LAST:STEP"),
    ("app: sunrpc, transports: [udp, mbcf3], sizes: 9000", "sizes: 9000 bytes do not fit sunrpc echo over udp; allowed: 0 to 8756 bytes (a UDP message of 8800 bytes; udp_message_size changes it)"),
    ("app: sunrpc, transports: mbcf3, sizes: 65537", "sizes: 65537 bytes do not fit sunrpc echo over mbcf3; allowed: 0 to 65536 bytes (the MBCF library's buffers)"),
    ("app: mbcf, sizes: 64, operations: swap", "sizes: 64 bytes do not fit mbcf swap over mbcf; allowed: 8 to 8 bytes (one word)"),
    ("app: mbcf, sizes: 1377, operations: signal", "sizes: 1377 bytes do not fit mbcf signal over mbcf; allowed: 0 to 1376 bytes (one packet)"),
    ("app: mbcf, sizes: 4, operations: erase", "operations: 'erase' is not known; allowed: one or more of write, read, fifo, signal, swap, cas, fetch_add"),
    ("app: mbcf, sizes: 4, operations: [write, read], modes: stream", "modes: a stream of read: each of them has a result to wait for; allowed: round_trip, or the operations write, fifo, signal"),
    ("app: mbcf, sizes: 4, modes: burst", "modes: 'burst' is not known; allowed: one or more of round_trip, stream"),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "line"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refused(tmp_path: Path, workload: str, line: str) -> None:
    assert refused(tmp_path, workload) == line


def test_a_request_in_one_packet_says_why_it_ends_there(tmp_path: Path) -> None:
    allowed = "0 to 1332 bytes (1392 bytes of one TASKQUE write less 60 of headers; the other types carry more)"
    call = "app: sunrpc, transports: mbcf1, sizes: "
    assert (
        refused(tmp_path, f"{call}1333") == f"sizes: 1333 bytes do not fit sunrpc echo over mbcf1; allowed: {allowed}"
    )
    assert accepted(tmp_path, f"{call}1332").sizes == (1332,)
    assert refused(tmp_path, f"{call}1332, auth: sys").startswith("sizes: 1332 bytes do not fit")
    assert accepted(tmp_path, "app: sunrpc, transports: mbcf3b, sizes: 65536").sizes == (65536,)


def test_replies_are_written_and_may_be_long(tmp_path: Path) -> None:
    assert accepted(tmp_path, "app: sunrpc, transports: mbcf1, procedures: source, sizes: 65536").sizes == (65536,)


def test_a_reply_cache_needs_a_server_that_has_one(tmp_path: Path) -> None:
    wanted = f"{RPC}udp, semantics: at_most_once"
    assert accepted(tmp_path, wanted, "machines.client.image=linux")
    assert refused(tmp_path, wanted, "machines.server.image=linux") == (
        "semantics: at_most_once over udp with a server on image 'linux', which keeps no replies; "
        "allowed: at_least_once, or a server that boots ssscore"
    )


def test_a_server_whose_tasks_need_address_spaces_is_no_process(tmp_path: Path) -> None:
    assert accepted(tmp_path, f"{RPC}mbcf3b", "machines.client.image=linux")
    assert refused(tmp_path, f"{RPC}mbcf3b", "machines.server.image=linux") == (
        "transports: mbcf3b with a server on image 'linux', whose processes have no tasks; "
        "allowed: another transport, or a server on SSS-CORE"
    )


def test_mbcf_is_not_fragmented(tmp_path: Path) -> None:
    assert refused(tmp_path, f"{RPC}mbcf3", "mtu=1435") == (
        "server: MBCF on server:eth0 with an MTU of 1435 bytes: its packets are not fragmented; "
        "allowed: an MTU of 1436 or more"
    )
    assert accepted(tmp_path, f"{RPC}mbcf3", "mtu=1436")


def test_a_linux_machine_is_one_node_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    one = "{clients: n1, server: linux, app: sunrpc, transports: mbcf3, sizes: 4}"
    path.write_text(f"{HEAD}  - {one}\n  - {{clients: n1, server: linux, app: mbcf, sizes: 4}}\n")
    with pytest.raises(
        BadInput, match=r"5: workloads.1.server: 'linux' boots linux and serves MBCF already: there a process is a node"
    ):
        load_experiments(str(path), topology="sss-cluster")
    path.write_text(f"{HEAD}  - {one}\n  - {{clients: linux, server: n1, app: mbcf, sizes: 4}}\n")
    with pytest.raises(
        BadInput,
        match=r"5: workloads.1.clients: 'linux' boots linux and serves MBCF already: there a process is a node",
    ):
        load_experiments(str(path), topology="sss-cluster")
    path.write_text(f"{HEAD}  - {one}\n  - {{clients: linux, server: n1, app: sunrpc, transports: udp, sizes: 4}}\n")
    assert load_experiments(str(path), topology="sss-cluster")


def test_linux_needs_no_library_of_ours_for_sockets(tmp_path: Path) -> None:
    linux = accepted(tmp_path, f"{RPC}udp", topology="two-hosts-10base-t")
    assert isinstance(linux, SunRpc)
    assert (linux.semantics, linux.depth, linux.ack) == (None, 1, True)
