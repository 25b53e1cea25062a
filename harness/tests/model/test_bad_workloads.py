# SPDX-License-Identifier: Apache-2.0
"""What each kind of workload cannot do is one line with file, line, field and what is allowed."""

from pathlib import Path

import pytest

from sundial.model.load import load_experiments
from sundial.model.sizes import ALLOWED as SIZES
from sundial.workloads import functions
from sundial.workloads.grpc.expect import LIBRARIES
from sundial.workloads.rpyc import model as rpyc
from tests.model.documents import refusal, scenario

BACKPLANES = """\
description: Nodes on two backplanes, and on none
defaults: {image: ssscore}
machines:
  a: {interfaces: {eth0: {address: 10.0.0.1/24}, vmmc0: {}}}
  b: {interfaces: {eth0: {address: 10.0.0.2/24}, vmmc0: {}}}
  c: {interfaces: {eth0: {address: 10.0.0.3/24}, vmmc0: {}}}
  d: {interfaces: {eth0: {address: 10.0.0.4/24}, vmmc0: {}}}
  e: {interfaces: {eth0: {address: 10.0.0.5/24}}}
  f: {image: linux, interfaces: {eth0: {address: 10.0.0.6/24}}}
segments:
  lan: {kind: switch, rate: 100 Mbit/s, ports: ["a:eth0", "b:eth0", "c:eth0", "d:eth0", "e:eth0", "f:eth0"]}
  one: {kind: vmmc, ports: ["a:vmmc0", "b:vmmc0"]}
  other: {kind: vmmc, ports: ["c:vmmc0", "d:vmmc0"]}
"""
ROUTED = """\
description: Two networks
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}}, routes: [{to: 10.1.0.0/24, via: 10.0.0.254}]}
  router: {interfaces: {eth0: {address: 10.0.0.254/24}, eth1: {address: 10.1.0.254/24}}}
  server: {interfaces: {eth0: {address: 10.1.0.1/24}}, routes: [{to: 10.0.0.0/24, via: 10.1.0.254}]}
segments:
  near: {kind: hub, rate: 10 Mbit/s, ports: ['client:eth0', 'router:eth0']}
  far: {kind: hub, rate: 10 Mbit/s, ports: ['router:eth1', 'server:eth0']}
"""
LAN, SSS, VMMC, PYTHON = "two-hosts-10base-t", "sss-two-100base-tx", "sss-two-vmmc", "defaults.image=linux-python"
BASES: dict[str, tuple[str, ...]] = {
    "dce": (LAN, "app: dce, sizes: [0, 4016]"),
    "dce functions": (LAN, "app: dce, functions: all"),
    "dce routed": ("routed.yaml", "app: dce, sizes: 0, clients: [client]"),
    "dce clip": ("two-hosts-clip", "app: dce, sizes: 16"),
    "dce between sss": (SSS, "app: dce, sizes: 16"),
    "dce sss": (LAN, "app: dce", "machines.server.image=ssscore"),
    "grpc": (LAN, "app: grpc", PYTHON),
    "iperf3": ("office", "app: iperf3, transports: tcp"),
    "mbcf": (SSS, "app: mbcf, sizes: 4"),
    "rpyc": (LAN, "app: rpyc", PYTHON),
    "shrimprpc": (VMMC, "app: shrimprpc, sizes: 4"),
    "sunrpc": (LAN, "app: sunrpc, sizes: 64"),
    "sss": (SSS, "app: sunrpc, sizes: 64"),
    "sss lossy": ("sss-two-lossy", "app: sunrpc, sizes: 64"),
    "sss clip": ("two-hosts-clip", "app: sunrpc, sizes: 64", "defaults.image=ssscore", "mtu=1500"),
    "sss linux client": (SSS, "app: sunrpc, sizes: 64", "machines.client.image=linux"),
    "sss linux server": (SSS, "app: sunrpc, sizes: 64", "machines.server.image=linux"),
    "vmmc": ("backplanes.yaml", "app: vmmc, server: b, clients: a, sizes: [8, 64]"),
    "vrpc": (VMMC, "app: sunrpc, sizes: 4"),
}
"""By name: a topology, the fields of a workload that fits, and overrides."""

MBCF = "mbcf1, mbcf2, mbcf12, mbcf3, mbcf3a, mbcf3b"
WAITS = "whose client waits for each reply"
BACKPLANE = "allowed: machines with interfaces in one segment of kind vmmc"
FIXED = "which boots ssscore, whose sockets have fixed buffers; allowed: leave it out"
KEPT = f"allowed: semantics: at_most_once, transports: udp, {MBCF}"
TRANSFER = "allowed: 8 to 65536 bytes (one transfer)"
RPC_MESSAGE = "(a UDP message of 8800 bytes; udp_message_size changes it)"

RULES = [
    ("dce", "fragment: 4097", "fragment: fragment 4097 is not a multiple of 8; allowed: such as 4096"),
    ("dce", "window: 3 KiB", "window: window 3072 is less than a fragment of 4096 bytes; allowed: at least one fragment"),
    ("dce", "window: 5000", "window: window 5000 is not a whole number of KiB; allowed: such as 32 KiB"),
    ("dce", "semantics: broadcast, sizes: [4017]", "sizes: 4017 bytes do not fit dce put over udp; allowed: 0 to 4016 bytes (one fragment of a broadcast)"),
    ("dce", "semantics: broadcast, binding: mapper", "binding: mapper cannot be combined with broadcast; allowed: string"),
    ("dce", "semantics: broadcast, policy: osf", "policy: osf cannot be combined with broadcast, which must not be fragmented; allowed: window or halves"),
    ("dce", "semantics: maybe, procedures: [put, get]", "semantics: maybe calls have no response, so get cannot return data; allowed: procedures: null, put"),
    ("dce", "semantics: maybe, procedures: echo", "semantics: maybe calls have no response, so echo cannot return data; allowed: procedures: null, put"),
    ("dce", "resend: 31 s", "resend: resend is longer than give_up, so nothing would be retransmitted; allowed: up to give_up"),
    ("dce", "sizes: [196609]", "sizes: 196609 bytes do not fit dce put over udp; allowed: 0 to 196608 bytes (this testbed's own limit)"),
    ("dce", "sizes: '0:999:1'", "sizes: 1000 sizes are too many: each is a procedure; allowed: up to 999"),
    ("dce functions", "procedures: put", "procedures: procedures has no effect with functions, whose values are fixed; allowed: procedures or functions"),
    ("dce functions", "sizes: [4]", "sizes: sizes has no effect with functions, whose values are fixed; allowed: sizes or functions"),
    ("dce functions", "order: seeded", "order: order seeded has no effect with functions; allowed: the order in functions"),
    ("dce functions", "calls: {0: 9, 800: 3}", "calls: calls by size cannot be combined with functions; allowed: one number of calls"),
    ("dce functions", "functions: '1,2', semantics: maybe", "semantics: maybe calls have no response, so boolean cannot return data; allowed: functions: void"),
    ("dce functions", "semantics: broadcast", "functions: string_array has 4807 bytes and exceeds the one fragment of a broadcast, 4016 bytes; allowed: other functions, or a larger fragment"),
    ("dce routed", "semantics: broadcast", "semantics: broadcast from 'client' does not reach 'server', which is on another segment; allowed: both ends on one segment"),
    ("dce clip", "semantics: broadcast", "semantics: broadcast from 'client' cannot pass a segment with encapsulation: routed; allowed: another encapsulation, or other semantics"),
    ("dce between sss", "sizes: [16, 65508]", "sizes: 65508 bytes exceed what 'client' can call with, which boots ssscore; allowed: up to 65507 bytes"),
    ("dce sss", "threads: 9, sizes: [32128]", "threads: 9 callers of 'server', which boots ssscore, with 32768 bytes under way each, exceed its sockets' buffers of 262144 bytes; allowed: up to 8 callers, or a smaller window"),
    ("dce sss", "threads: 16, window: 8 KiB, sizes: [196608]", "threads: 16 callers of 'server', which boots ssscore, with up to 196608 bytes each, exceed its memory, which has room for 15; allowed: up to 15 callers, or smaller sizes"),
    ("grpc", "bdp_probe: true", "bdp_probe: bdp_probe sends PINGs, which control_frames: none rejects; allowed: control_frames: counted"),
    ("iperf3", "socket_buffer: 425985", "socket_buffer: 425985 bytes are more than Linux grants; allowed: up to 425984"),
    ("dce sss", "trace: steps, sizes: [16]", "trace: the steps of dce are not known on 'server', which boots ssscore; allowed: none, names of functions, or machines that boot linux"),
    ("sss", "transports: udp, depth: 2", f"depth: depth 2 is not supported over udp, {WAITS}; allowed: 1, or the transports {MBCF}"),
    ("sss", "transports: [mbcf3, udp], ack: false", f"ack: ack: false has no effect over udp, which has no such acknowledgement; allowed: true, or the transports {MBCF}"),
    ("sss", "transports: udp, one_way: true, procedures: sink", f"one_way: one_way is not supported over udp: libtirpc always waits for a reply; allowed: transports: tcp, {MBCF}"),
    ("sss", "transports: mbcf3, one_way: true", "one_way: one_way is not supported for echo: only sink has no result; allowed: procedures: sink"),
    ("sss", "transports: [mbcf3, tcp], semantics: at_least_once", "semantics: at_least_once is not supported over tcp; allowed: at_most_once over tcp"),
    ("sss", "transports: udp, semantics: exactly_once", "semantics: exactly_once is not supported over udp; allowed: at_least_once, at_most_once over udp"),
    ("sss", "transports: udp, reply_cache: 16", f"reply_cache: reply_cache has no effect without at_most_once over udp or MBCF; {KEPT}"),
    ("sss", "transports: tcp, socket_buffer: 4000", f"socket_buffer: socket_buffer has no effect on 'server', {FIXED}"),
    ("sss", "transports: tcp, serving: {socket_buffer: 4000}", f"serving.socket_buffer: serving.socket_buffer has no effect on 'server', {FIXED}"),
    ("sss", "transports: [udp, vrpc-mbcf], send_buffer: 4000", "send_buffer: send_buffer has no effect over udp, vrpc-mbcf; allowed: transports: tcp"),
    ("sss", "transports: mbcf3, udp_message_size: 4000", "udp_message_size: udp_message_size has no effect over mbcf3; allowed: transports: udp"),
    ("sss", "transports: udp, serving: {recv_buffer: 4000}", "serving.recv_buffer: serving.recv_buffer has no effect over udp; allowed: transports: tcp"),
    ("sss", "transports: udp, threads: 2", "threads: 2 threads are too many for 'client', which boots ssscore: its client has one; allowed: 1 (for parallel calls over MBCF use depth)"),
    ("sss", "transports: mbcf3, depth: 2, one_way: true, procedures: sink", "depth: depth 2 has no effect with one_way, which has no replies; allowed: 1"),
    ("sss", "transports: tcp, tcp_nodelay: false", "tcp_nodelay: tcp_nodelay has no effect on 'server', which boots ssscore, whose TCP always sends at once; allowed: true"),
    ("sss", "transports: mbcf3, sizes: [edges]", "sizes: edges is not supported over MBCF, only over udp and tcp; allowed: sizes and ranges FIRST:LAST:STEP"),
    ("sss", "transports: [udp, mbcf3], sizes: 9000", f"sizes: 9000 bytes do not fit sunrpc echo over udp; allowed: 0 to 8756 bytes {RPC_MESSAGE}"),
    ("sss", "transports: mbcf3, sizes: 65537", "sizes: 65537 bytes do not fit sunrpc echo over mbcf3; allowed: 0 to 65536 bytes (the MBCF library's buffers)"),
    ("sss", "transports: mbcf1, sizes: 1333", "sizes: 1333 bytes do not fit sunrpc echo over mbcf1; allowed: 0 to 1332 bytes (1392 bytes of one TASKQUE write less 60 of headers; the other types carry more)"),
    ("sss linux server", "transports: udp, semantics: at_most_once", "semantics: at_most_once over udp needs a server that keeps replies, and image 'linux' has none; allowed: at_least_once, or a server that boots ssscore"),
    ("sss linux server", "transports: mbcf3b", "transports: mbcf3b is not supported by a server on image 'linux', whose processes have no tasks; allowed: another transport, or a server on SSS-CORE"),
    ("sunrpc", "transports: udp, retry_timeout: 30 s", "retry_timeout: retry_timeout is longer than total_timeout, so no call would be retransmitted; allowed: up to total_timeout"),
    ("sunrpc", "transports: udp, server: host9", "server: topology 'two-hosts-10base-t' has no host 'host9'; allowed: client, server"),
    ("sunrpc", "transports: udp, clients: [server]", "clients: 'server' is the server, and its loopback interface is not captured; allowed: other machines, or with clock: virtual also loopback: captured of server"),
    ("sunrpc", "app: raw, transports: tcp, sizes: [15]", "sizes: 15 bytes do not fit raw echo over tcp; allowed: 16 to 1048576 bytes (at least the payload's header)"),
    ("sunrpc", "app: raw, transports: udp, tcp_nodelay: false", "tcp_nodelay: tcp_nodelay has no effect over udp; allowed: transports: tcp"),
    ("sunrpc", "app: raw, transports: udp, serving: {tcp_nodelay: true}", "serving.tcp_nodelay: serving.tcp_nodelay has no effect over udp; allowed: transports: tcp"),
    ("sunrpc", "app: raw, transports: udp, serving: {send_buffer: 8000}", "serving.send_buffer: serving.send_buffer has no effect on raw, which has no records; allowed: leave it out"),
    ("mbcf", "sizes: 64, operations: swap", "sizes: 64 bytes do not fit mbcf swap over mbcf; allowed: 8 to 8 bytes (one word)"),
    ("mbcf", "sizes: 1377, operations: signal", "sizes: 1377 bytes do not fit mbcf signal over mbcf; allowed: 0 to 1376 bytes (one packet)"),
    ("mbcf", "operations: [write, read], modes: stream", "modes: read cannot be a stream: each operation waits for its result; allowed: round_trip, or the operations write, fifo, signal"),
    ("shrimprpc", "sizes: 16385", "sizes: 16385 bytes do not fit shrimprpc inout over shrimprpc; allowed: 0 to 16384 bytes (ECHO_LIMIT of guest-apps/shrimp/echo.x)"),
    ("shrimprpc", "sizes: [0, 65536], procedures: [null, in]", "sizes: 65536 bytes do not fit shrimprpc in over shrimprpc; allowed: 0 to 16384 bytes (ECHO_LIMIT of guest-apps/shrimp/echo.x)"),
    ("shrimprpc", "sizes: edges", "sizes: edges is not supported over a backplane, only over udp and tcp; allowed: sizes and ranges FIRST:LAST:STEP"),
    ("vmmc", "app: shrimprpc, clients: e", f"clients: 'e' has no interface on a backplane; {BACKPLANE}"),
    ("vmmc", "clients: e", f"clients: 'e' has no interface on a backplane; {BACKPLANE}"),
    ("vmmc", "server: e", f"server: 'e' has no interface on a backplane; {BACKPLANE}"),
    ("vmmc", "clients: [a, c]", f"clients: c:vmmc0 is in 'other', and b:vmmc0 in 'one'; {BACKPLANE}"),
    ("vmmc", "clients: f", "clients: image 'linux' of 'f' does not run vmmc; allowed: machines that boot ssscore"),
    ("vmmc", "app: shrimprpc, clients: f", "clients: image 'linux' of 'f' does not run shrimprpc; allowed: machines that boot ssscore"),
    ("vmmc", "sizes: [0, 8]", f"sizes: 0 bytes do not fit vmmc round_trip over au; {TRANSFER}"),
    ("vmmc", "sizes: [8, 65544]", f"sizes: 65544 bytes do not fit vmmc round_trip over au; {TRANSFER}"),
    ("vmmc", "sizes: [8, 12]", "sizes: 12 bytes is not a multiple of 8; allowed: multiples of 8"),
    ("vmmc", "sizes: [edges]", "sizes: edges is not supported over a backplane, only over udp and tcp; allowed: sizes and ranges FIRST:LAST:STEP"),
    ("vmmc", "app: sunrpc, transports: vrpc, clients: e", f"clients: 'e' has no interface on a backplane; {BACKPLANE}"),
    ("vrpc", "transports: udp, wait: poll", "wait: wait has no effect over udp; allowed: transports: vrpc, vrpc-mbcf"),
    ("vrpc", "transports: vrpc-mbcf, deliberate_above: 5", "deliberate_above: deliberate_above has no effect over vrpc-mbcf, which has no deliberate updates; allowed: transports: vrpc"),
    ("vrpc", "transports: vrpc, depth: 2", f"depth: depth 2 is not supported over vrpc, {WAITS}; allowed: 1, or the transports {MBCF}"),
    ("vrpc", "transports: vrpc-mbcf, ack: false", f"ack: ack: false has no effect over vrpc-mbcf, which has no such acknowledgement; allowed: true, or the transports {MBCF}"),
    ("vrpc", "transports: vrpc, one_way: true, procedures: sink", f"one_way: one_way is not supported over vrpc; allowed: false, or the transports tcp, {MBCF}"),
    ("vrpc", "transports: vrpc, semantics: exactly_once", "semantics: exactly_once is not supported over vrpc; allowed: at_most_once over vrpc"),
    ("vrpc", "transports: [vrpc, vrpc-mbcf, tcp], semantics: at_most_once, reply_cache: 5", f"reply_cache: reply_cache has no effect without at_most_once over udp or MBCF; {KEPT}"),
    ("vrpc", "transports: vrpc, threads: 2", "threads: 2 threads are too many for 'client', which boots ssscore: its client has one; allowed: 1 (for parallel calls over MBCF use depth)"),
    ("vrpc", "transports: vrpc, sizes: 65537", "sizes: 65537 bytes do not fit sunrpc echo over vrpc; allowed: 0 to 65536 bytes (what a ring holds)"),
    ("sunrpc", "transports: vrpc", "server: vrpc is not available on 'server', which boots linux; allowed: machines that boot ssscore"),
    ("sunrpc", "transports: vrpc-mbcf", "server: vrpc-mbcf is not available on 'server', which boots linux; allowed: machines that boot ssscore"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "backplanes.yaml").write_text(BACKPLANES)
    (tmp_path / "routed.yaml").write_text(ROUTED)
    return tmp_path


@pytest.mark.parametrize(("base", "fields", "line"), RULES, ids=[f"{base}: {fields}" for base, fields, _ in RULES])
def test_rule(folder: Path, base: str, fields: str, line: str) -> None:
    topology, fitting, *overrides = BASES[base]
    path = scenario(folder, topology, f"<<: {{{fitting}}}, {fields}")
    said = refusal(lambda: load_experiments(path, overrides=overrides))
    assert said == [f"{path}:4: workloads.0.{line}"]


def test_neither_sizes_nor_functions(tmp_path: Path) -> None:
    path = scenario(tmp_path, LAN, "app: dce, procedures: put")
    line = f"workloads.0: sizes is missing; allowed: {SIZES}; or functions in place of sizes"
    assert refusal(lambda: load_experiments(path)) == [f"{path}:4: {line}"]


def taken(port: int, by: int = 0) -> str:
    """What is said of a port that workload `by` has."""
    return f"port: port {port} of 'server' is already used by the server of workloads.{by}; allowed: another port, or the same server"


PAIRS = [
    ("app: grpc, port: 18861", "app: rpyc", 1, taken(18861)),
    ("app: rpyc, port: 50051", "app: grpc", 1, taken(50051)),
    ("app: rpyc, port: 50050, tcp_nodelay: [false, true]", "app: grpc", 1, taken(50051)),
    ("app: rpyc, tcp_nodelay: true", "app: rpyc", 1, taken(18861)),
    ("app: rpyc, tcp_nodelay: [false, true]", "app: rpyc, port: 18862", 1, taken(18862)),
    ("app: rpyc, functions: 1, die: {call: 3}", "app: rpyc, functions: 1, die: {call: 3}", 1, taken(18861)),
    ("app: grpc, control_frames: counted", "app: grpc", 1, taken(50051)),
    ("app: grpc", "app: grpc, max_workers: 2", 1, taken(50051)),
    ("app: grpc", "app: grpc, die: {call: 3}", 1, taken(50051)),
    ("app: grpc, languages: [python, cpp]", "app: grpc, port: 50052", 1, taken(50052)),
    ("app: grpc, port: 5201", "app: iperf3, transports: udp", 0, taken(5201, 1)),
    ("app: iperf3, transports: udp", "app: grpc, port: 5201", 1, taken(5201)),
    ("app: grpc, port: 1026", "app: raw, transports: [udp, tcp], sizes: 64", 0, taken(1026, 1)),
    ("app: raw, transports: [udp, tcp], sizes: 64", "app: grpc, port: 1026", 1, taken(1026)),
    ("app: dce, sizes: 0, binding: mapper", "app: dce, sizes: 0, binding: mapper, port: 1028", 1, "port: port 1028 differs from port 1027 in the endpoint mapper of 'server'; allowed: the same port on one server, or binding: string"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "which", "line"), PAIRS)
def test_two_workloads_that_exclude_each_other(tmp_path: Path, first: str, second: str, which: int, line: str) -> None:
    path = scenario(tmp_path, LAN, first, second)
    said = refusal(lambda: load_experiments(path, overrides=[PYTHON]))
    assert said == [f"{path}:{4 + which}: workloads.{which}.{line}"]


@pytest.mark.parametrize(
    ("workloads", "line"),
    [
        (["app: iperf3, transports: udp"], "workloads.0.clients: 'client1' and 'client2'"),
        (["app: iperf3, transports: udp, clients: client2", "app: iperf3, transports: udp, clients: client3"], "workloads.1.clients: 'client2' and 'client3'"),
        (["app: iperf3, transports: udp, clients: client2", "app: iperf3, transports: udp, clients: client2"], None),
        (["app: iperf3, transports: udp, clients: client3", "app: iperf3, transports: udp, server: client2, clients: client1"], None),
        (["app: mbcf, sizes: 4"], "workloads.0.clients: 'client1' and 'client2'"),
        (["app: mbcf, sizes: 4, clients: client2", "app: mbcf, sizes: 8, clients: client2"], None),
    ],
)  # fmt: skip
def test_a_server_of_one_client_is_refused_several(tmp_path: Path, workloads: list[str], line: str | None) -> None:
    path = scenario(tmp_path, "office", *workloads)
    if line is None:
        load_experiments(path)
        return
    (said,) = refusal(lambda: load_experiments(path))
    app = "mbcf" if "mbcf" in workloads[0] else "iperf3"
    assert (
        f"{line} use 'server' at the same time, which {app} does not support; allowed: one client for each server"
        in said
    )


@pytest.mark.parametrize(
    ("second", "field"), [("n1, server: linux, app: mbcf", "server"), ("linux, server: n1, app: mbcf", "clients")]
)
def test_a_linux_machine_is_one_node_at_a_time(tmp_path: Path, second: str, field: str) -> None:
    first = "clients: n1, server: linux, app: sunrpc, transports: mbcf3, sizes: 4"
    path = scenario(tmp_path, "sss-cluster", first, f"clients: {second}, sizes: 4")
    (line,) = refusal(lambda: load_experiments(path))
    assert line.startswith(
        f"{path}:5: workloads.1.{field}: 'linux' boots linux, where only one process can be a node of MBCF, and has one already"
    )


ENDS = [
    ("grpc", "", ["machines.server.image=linux"], "server: image 'linux' of 'server' does not run grpc; allowed: machines that boot linux-python"),
    ("rpyc", "", ["machines.client.image=linux"], "clients: image 'linux' of 'client' does not run rpyc"),
    ("grpc", "languages: [python, cpp]", ["machines.client.image=linux-python-current"], "languages: 'client' boots linux-python-current, which has no gRPC in cpp; allowed: python"),
    ("grpc", "", ["mtu=80"], "app: gRPC is not supported over an MTU of 80 bytes: IP would fragment TCP's segments; allowed: an MTU of at least 88"),
    ("sss", "app: raw, transports: udp", [], "server: image 'ssscore' of 'server' does not run raw"),
    ("sss", "transports: mbcf3", ["mtu=1435"], "server: MBCF on server:eth0 does not fit an MTU of 1435 bytes: its packets are not fragmented; allowed: an MTU of at least 1436"),
    ("sss lossy", "transports: [udp, mbcf3]", ["segments.lan.impairments.both.corrupt=1 %"], "server: MBCF is not supported over 'lan', which corrupts frames: its packets have no checksum; allowed: corrupt: 0 %, or loss in its place"),
    ("sss clip", "transports: mbcf3", [], "server: MBCF is not supported on 'clip', which carries only IP: it has an Ethernet type of its own; allowed: a segment that carries Ethernet frames"),
    ("sss", "transports: mbcf1, sizes: 1332, auth: sys", [], "sizes: 1332 bytes do not fit sunrpc echo over mbcf1"),
]  # fmt: skip


@pytest.mark.parametrize(("base", "fields", "overrides", "line"), ENDS)
def test_machines_that_cannot_run_a_workload(
    tmp_path: Path, base: str, fields: str, overrides: list[str], line: str
) -> None:
    topology, fitting, *given = BASES[base]
    path = scenario(tmp_path, topology, f"<<: {{{fitting}}}, {fields}")
    said = refusal(lambda: load_experiments(path, overrides=[*given, *overrides]))
    assert said[0].startswith(f"{path}:4: workloads.0.{line}")


def test_version_of_grpc_that_was_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(LIBRARIES, "1.51.1")
    path = scenario(tmp_path, LAN, "app: grpc")
    line = (
        "app: 'server' boots linux-python with gRPC 1.51.1, which is not supported; allowed: an image with gRPC 1.85.1"
    )
    assert refusal(lambda: load_experiments(path, overrides=[PYTHON]))[0] == f"{path}:4: workloads.0.{line}"


@pytest.mark.parametrize(
    ("server", "client", "line"),
    [
        ({"rpyc": "5.3.0"}, {}, "distance: 'server' boots linux, which has no numpy; allowed: zip, or an image with numpy"),
        ({"rpyc": "3.4.4", "numpy": "1"}, {}, "app: 'server' boots linux with RPyC 3.4.4, which is not supported; allowed: an image with RPyC"),
        ({"rpyc": "5.3.0", "numpy": "1"}, {"rpyc": "6.0.2"}, "clients: RPyC 6.0.2 on 'client' differs from 5.3.0 on 'server'; allowed: images with one version"),
    ],
)  # fmt: skip
def test_packages_that_rpyc_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: dict[str, str], client: dict[str, str] | None, line: str
) -> None:
    monkeypatch.setattr(rpyc.RpycKind, "runs_on", lambda self, image: True)
    monkeypatch.setattr(rpyc, "packages", lambda image: client if image.name == "linux-python" else server)
    path = scenario(tmp_path, LAN, "app: rpyc")
    other = ["machines.client.image=linux-python"] if client else []
    assert refusal(lambda: load_experiments(path, overrides=other))[0].startswith(f"{path}:4: workloads.0.{line}")


LINUX = {"semantics": None, "depth": 1, "ack": True}
FITTING = [
    (LAN, "app: dce, functions: '12,void,2'", {"functions": ("distance", "void", "boolean"), "procedures": (), "sizes": ()}),
    (LAN, "app: dce, sizes: [0, 4016]", {"functions": None, "procedures": ("put",)}),
    (LAN, "app: dce, sizes: [0, edges, 5409]", {"sizes": (0, 1392, 1393, 1394, 2872, 2873, 2874, 4016, 4017, 4018, 5408, 5409)}),
    (LAN, "app: dce, threads: 9, sizes: [32128]", {}),
    (LAN, "app: dce, threads: 16, window: 8 KiB, sizes: [196608]", {}),
    (SSS, "app: dce, threads: 8, sizes: [32128]", {}),
    (SSS, "app: dce, threads: 32, sizes: [4016]", {}),
    (SSS, "app: dce, threads: 32, functions: all", {}),
    ("two-hosts-python", "app: grpc, functions: all", {"functions": functions.NAMES}),
    ("two-hosts-python", "app: grpc, functions: [1, 3, void]", {"functions": ("void", "int")}),
    ("two-hosts-python", "app: rpyc, functions: '12,person'", {"functions": ("distance", "person")}),
    ("two-hosts-python", "app: rpyc, functions: 2", {"functions": ("boolean",)}),
    (LAN, "app: iperf3, transports: udp, duration: 1 min", {"duration": 60_000}),
    (LAN, "app: sunrpc, sizes: 64, transports: udp", LINUX),
    (SSS, "app: sunrpc, transports: mbcf1, sizes: 1332", {"sizes": (1332,)}),
    (SSS, "app: sunrpc, transports: mbcf3b, sizes: 65536", {"sizes": (65536,)}),
    (SSS, "app: sunrpc, transports: mbcf1, procedures: source, sizes: 65536", {"sizes": (65536,)}),
    ("sss-cluster", "server: n1, clients: linux, app: sunrpc, transports: udp, semantics: at_most_once, sizes: 4", {}),
    ("sss-cluster", "server: n1, clients: linux, app: sunrpc, transports: mbcf3b, sizes: 4", {}),
    (SSS, "app: sunrpc, sizes: 4, transports: vrpc-mbcf, wait: notify", {"transports": ("vrpc-mbcf",), "wait": "notify"}),
    (VMMC, "app: shrimprpc, sizes: [4, 16384], procedures: [null, in, in_64], wait: notify", {"sizes": (4, 16384)}),
    (VMMC, "app: shrimprpc, sizes: 70000, procedures: [null, inout_64]", {"sizes": (70000,)}),
    (VMMC, "app: vmmc, sizes: [8, 64], operations: [du, au], modes: stream", {"sizes": (8, 64)}),
    (VMMC, "app: vmmc, sizes: ['8:40:16', 65536]", {"sizes": (8, 24, 40, 65536)}),
]  # fmt: skip


@pytest.mark.parametrize(("topology", "workload", "fields"), FITTING)
def test_what_fits(tmp_path: Path, topology: str, workload: str, fields: dict[str, object]) -> None:
    (found,) = load_experiments(scenario(tmp_path, topology, workload))[0].workloads
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize(
    "workloads",
    [
        ["app: grpc, port: 1026", "app: raw, transports: udp, sizes: 4"],
        ["app: grpc", "app: grpc, calls: 2", "app: dce, port: 50051, sizes: 0"],
        ["app: dce, port: 18861, sizes: 0", "app: rpyc, tcp_nodelay: [true, false]"],
    ],
)
def test_servers_that_share_no_port(tmp_path: Path, workloads: list[str]) -> None:
    assert load_experiments(scenario(tmp_path, LAN, *workloads), overrides=[PYTHON])


def test_servers_of_dce_that_sss_core_has_no_memory_for(tmp_path: Path) -> None:
    """Each has a table of 7 MiB."""
    ports = [f"app: dce, sizes: 0, port: {port}" for port in (1027, 1028, 1027, 1029)]
    assert load_experiments(scenario(tmp_path, SSS, *ports[:3]))
    assert load_experiments(scenario(tmp_path, SSS, *ports), overrides=["machines.server.memory=48 MiB"])
    assert load_experiments(scenario(tmp_path, LAN, *ports))
    path = scenario(tmp_path, SSS, *ports)
    line = "port: 3 servers on 'server', which boots ssscore, exceed its memory; allowed: a port of another workload, or memory of 16 MiB each"
    assert refusal(lambda: load_experiments(path)) == [f"{path}:7: workloads.3.{line}"]


def test_mbcf_beside_sockets_on_one_linux_machine(tmp_path: Path) -> None:
    served = "clients: n1, server: linux, app: sunrpc, transports: mbcf3, sizes: 4"
    calling = "clients: linux, server: n1, app: sunrpc, transports: udp, sizes: 4"
    assert load_experiments(scenario(tmp_path, "sss-cluster", served, calling))
