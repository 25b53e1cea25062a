# SPDX-License-Identifier: Apache-2.0
"""Every mistake in a scenario or an override is one line with file, line, field and what is allowed."""

import re
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model import experiment
from sundial.model.images import IMAGES
from sundial.model.load import load_experiments

GOOD = """\
description: An echo
topology: two-hosts-10base-t
default_scale: smoke
workloads:
  - app: sunrpc
    transports: [udp]
    sizes: [0, 16]
    calls: 3
  - app: raw
    transports: [tcp]
    sizes: [16]
scale:
  smoke: {calls: 2}
"""
CALLS = "a whole number from 1 to 1000000"
MANY = "a whole number from 1 to 1000000, or a mapping such as {0: 3000, 1024: 1000}: calls from that size upward"

CASES = [
    ("app: sunrpc", "app: dcerpc", ["5: workloads.0.app: 'dcerpc' is not known; allowed: sunrpc, raw, iperf3, mbcf, dce, grpc, rpyc, vmmc, shrimprpc"]),
    ("transports: [udp]", "transports: [sctp]", ["6: workloads.0.transports: 'sctp' is not known; allowed: one or more of udp, tcp, mbcf1, mbcf2, mbcf12, mbcf3, mbcf3a, mbcf3b, vrpc, vrpc-mbcf"]),
    ("sizes: [0, 16]", "sizes: [8757]", ["7: workloads.0.sizes: 8757 bytes do not fit sunrpc echo over udp; allowed: 0 to 8756 bytes (a UDP message of 8800 bytes; udp_message_size changes it)"]),
    ("sizes: [0, 16]", "sizes: [9001]\n    transports: [tcp]\n    procedures: echo_string", ['8: is not YAML: found duplicate key "transports" with value "[\'tcp\']" (original value: "[\'udp\']")']),
    ("sizes: [16]", "sizes: [15]", ["11: workloads.1.sizes: 15 bytes do not fit raw echo over tcp; allowed: 16 to 1048576 bytes (the payload's header at least)"]),
    ("sizes: [16]", "sizes: [16:8:4]", ["11: workloads.1.sizes: '16:8:4' is no range; allowed: FIRST:LAST:STEP with FIRST <= LAST and STEP >= 1"]),
    ("{calls: 2}", "{calls: 0}", [f"13: scale.smoke.calls: 0 is out of range; allowed: {CALLS}", f"13: scale.smoke.calls: 0 is out of range; allowed: {CALLS}"]),
    ("  smoke:", "  huge:", ["12: scale: default_scale is missing or names none of them; allowed: huge"]),
    ("    calls: 3", "    one_way: true", ["8: workloads.0.one_way: one_way with echo: only sink has no result; allowed: procedures: sink"]),
    ("    calls: 3", "    one_way: true\n    procedures: sink", ["8: workloads.0.one_way: one_way over udp: libtirpc does not send a call without waiting for its reply; allowed: transports: tcp, mbcf1, mbcf2, mbcf12, mbcf3, mbcf3a, mbcf3b"]),
    ("    calls: 3", "    call: 3", ["8: workloads.0.call: unknown field; allowed: clients, server, series, socket_buffer, tcp_nodelay, serving, sizes, calls, warmup, order, connection, threads, retry_timeout, total_timeout, functions, trace, app, transports, procedures, one_way, depth, ack, semantics, reply_cache, die, wait, deliberate_above, auth, send_buffer, recv_buffer, udp_message_size"]),
    ("    calls: 3", "    server: host9", ["8: workloads.0.server: topology 'two-hosts-10base-t' has no host 'host9'; allowed: client, server"]),
    ("    calls: 3", "    clients: [server]", ["8: workloads.0.clients: 'server' is the server, and what passes its loopback interface is not captured; allowed: other machines, or in virtual time loopback: captured of server"]),
    ("    calls: 3", "    retry_timeout: 1500 us", ["8: workloads.0.retry_timeout: '1500 us' has the wrong unit 'us' (known: ms, s, min); allowed: a time in whole ms from 1 ms to 60 min, such as '500 ms'"]),
    ("    calls: 3", "    retry_timeout: 30 s", ["8: workloads.0.retry_timeout: retry_timeout is longer than total_timeout: nothing would be sent again; allowed: up to total_timeout"]),
    ("    calls: 3", "    auth: kerberos", ["8: workloads.0.auth: 'kerberos' is not known; allowed: none, sys"]),
    ("topology: two-hosts-10base-t", "seed: -1\ntopology: two-hosts-10base-t", ["2: seed: -1 is out of range; allowed: a whole number from 0 to 9223372036854775807"]),
    ("default_scale: smoke", "deadline: 44 h\ndefault_scale: smoke", ["3: deadline: '44 h' is out of range; allowed: a time from 1 ms to 24 h, such as '10 min'"]),
    ("default_scale: smoke", "vary: [{sizes: 5}, 3]\ndefault_scale: smoke", ["3: vary: is not a list of mappings; allowed: - {KEY: VALUE, ...}"]),
    ("default_scale: smoke", "vary: [{topology: office}]\ndefault_scale: smoke", ["3: vary.0.topology: cannot be varied"]),
    ("default_scale: smoke", "vary: [{segments.wan.rate: 1 kbit/s}]\ndefault_scale: smoke", ["3: segments.wan.rate: there is no segment 'wan' in topology 'two-hosts-10base-t'; allowed: lan"]),
]  # fmt: skip


def write(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(("old", "new", "lines"), CASES, ids=[f"{case[1][:40]!r}" for case in CASES])
def test_mistake(tmp_path: Path, old: str, new: str, lines: list[str]) -> None:
    assert GOOD.count(old) >= 1
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        load_experiments(path)
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines() == list(dict.fromkeys(f"{path}:{line}" for line in lines))


TRACE = "none, steps, or a list of up to 256 functions, such as [clnt_dg_call, kernel:udp_sendmsg]"
OVERRIDES = [
    ("sizes", "--set: 'sizes' is not understood; allowed: KEY=VALUE, such as sizes=16:8192:16"),
    ("sizes=", "--set: 'sizes=' is not understood; allowed: KEY=VALUE, such as sizes=16:8192:16"),
    ("calls=0", f"--set: calls: 0 is out of range; allowed: {CALLS}"),
    ("calls=many", f"--set: calls: 'many' is no number of calls; allowed: {MANY}"),
    ("calls=[", "--set: calls: '[' is not YAML: expected the node content, but found '<stream end>'"),
    ("duration=2 s", "--set: duration: no workload of scenario 'mine' has this field"),
    ("mtu=67", "--set: mtu: 67 is out of range; allowed: a whole number from 68 to 18174"),
    ("mtu=87", "{file}:10: workloads.1.transports: TCP over an MTU of 87 bytes: Linux sends longer segments, which IP would have to fragment; allowed: an MTU of 88 or more, or udp alone"),
    ("mtu=1501", "--set: mtu: MTU 1501 of client:eth0 is above that of segment 'lan'; allowed: 68 to 1500"),
    ("mtu=big", "--set: mtu: 'big' is not a whole number; allowed: a whole number from 68 to 18174"),
    ("machines.klient.mips=250", "--set: machines.klient.mips: there is no machine 'klient' in topology 'two-hosts-10base-t'; allowed: client, server"),
    ("segments.lan.rate=fast", "--set: segments.lan.rate: 'fast' is not a rate; allowed: a rate from 10 Mbit/s to 100 Mbit/s, such as '10 Mbit/s'"),
    ("segments.lan.ports.7=client:eth0", "--set: segments.lan.ports.7: index '7' is out of range; allowed: 0 to 1"),
    ("segments.lan.rate.unit=1", "--set: segments.lan.rate.unit: 'unit': this value has no fields"),
    ("deadline=5", "--set: deadline: '5' has no unit; allowed: a time from 1 ms to 24 h, such as '10 min'"),
    ("seed=x", "--set: seed: 'x' is not a whole number; allowed: a whole number from 0 to 9223372036854775807"),
    ("workloads.0.trace=all", f"--set: workloads.0.trace: 'all' is no way to trace; allowed: {TRACE}"),
    ("workloads.0.trace=[]", f"--set: workloads.0.trace: [] is no way to trace; allowed: {TRACE}"),
    ("workloads.0.trace=[a b]", f"--set: workloads.0.trace: 'a b' cannot be a function's name; allowed: {TRACE}"),
    ("clock=wall", "--set: clock: 'wall' is not known; allowed: virtual, real"),
    ("accelerator=kvm", "--set: accelerator: KVM cannot keep virtual time; allowed: auto or tcg, or the clock real"),
    ("accelerator=xen", "--set: accelerator: 'xen' is not known; allowed: auto, tcg, kvm"),
    ("scale=paper", "scale: there is no scale 'paper'; allowed: smoke"),
    ("sizes=2000-01-01", "--set: sizes: '2000-01-01' is not a plain value; allowed: text, numbers, true, false"),
]  # fmt: skip


@pytest.mark.parametrize(("override", "line"), OVERRIDES)
def test_wrong_override(tmp_path: Path, override: str, line: str) -> None:
    path = write(tmp_path, GOOD)
    with pytest.raises(BadInput) as caught:
        load_experiments(path, overrides=[override])
    assert str(caught.value).splitlines()[0] == line.replace("{file}", path)


def test_a_trace_needs_virtual_time(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    with pytest.raises(BadInput) as caught:
        load_experiments(path, overrides=["workloads.0.trace=steps"], clock="real")
    words = "--set: workloads.0.trace: functions are stamped in virtual time alone; allowed: none, or the clock virtual"
    assert str(caught.value).splitlines() == [words]
    assert load_experiments(path, overrides=["trace=none"], clock="real")


def test_a_trace_needs_a_kernel_that_says_where_its_functions_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_experiments("sss-rpc-sweep", overrides=["trace=steps"])
    silent = IMAGES["ssscore"].model_copy(update={"fixed_kernel": False})
    monkeypatch.setattr(experiment, "IMAGES", {**IMAGES, "ssscore": silent})
    with pytest.raises(BadInput) as caught:
        load_experiments("sss-rpc-sweep", overrides=["trace=steps"])
    words = "'server' boots ssscore, whose kernel does not say where its functions are; allowed: none, or machines that"
    assert (
        str(caught.value)
        == f"--set: trace: {words} boot linux or linux-python or linux-python-current or linux-python-paper"
    )


def test_tcp_has_a_least_mtu_that_udp_has_not(tmp_path: Path) -> None:
    for scenario, mtu in ((GOOD, 88), (GOOD.replace("[tcp]", "[udp]"), 68)):
        (experiment,) = load_experiments(write(tmp_path, scenario), overrides=[f"mtu={mtu}"])
        assert {nic.mtu for nic in experiment.network.nics()} == {mtu}
    with pytest.raises(BadInput, match="TCP over an MTU of 87 bytes"):
        load_experiments("iperf3", overrides=["mtu=87"])


def test_iperf3_knows_whole_seconds() -> None:
    assert load_experiments("iperf3", overrides=["duration=1 min"])
    with pytest.raises(BadInput, match="duration: 1500 ms are no whole second; allowed: whole seconds"):
        load_experiments("iperf3", overrides=["duration=1500 ms"])


def test_an_unknown_key_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput,
        match=r"^--set: sices: unknown key; allowed: accelerator, ack, ack_delay, auth, bdp_probe, binding, byte_order, calls, cancel, clients, clock",
    ):
        load_experiments(write(tmp_path, GOOD), overrides=["sices=5"])


def test_a_seed_out_of_range_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^seed: -1 is out of range; allowed: a whole number from 0"):
        load_experiments(write(tmp_path, GOOD), seed=-1)


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("rate=5 Mbit/s", "rate: rate over tcp, which sends as fast as it can; allowed: transports: udp"),
        ("serving.socket_buffer=8192", "serving.socket_buffer: serving.socket_buffer with iperf3, whose client tells its "
         "server; allowed: socket_buffer for both ends"),
    ],
)  # fmt: skip
def test_what_iperf3_would_not_heed_is_refused(written: str, line: str) -> None:
    with pytest.raises(BadInput, match=re.escape(line)):
        load_experiments("iperf3", overrides=["transports=tcp", written])


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("tcp_nodelay: false", "tcp_nodelay: tcp_nodelay over udp; allowed: transports: tcp"),
        ("serving: {tcp_nodelay: true}", "serving.tcp_nodelay: serving.tcp_nodelay over udp; allowed: transports: tcp"),
        ("serving: {send_buffer: 8000}", "serving.send_buffer: serving.send_buffer with raw, which has no records; "
         "allowed: leave it out"),
    ],
)  # fmt: skip
def test_an_option_of_sockets_that_nothing_has_is_refused(tmp_path: Path, more: str, line: str) -> None:
    scenario = f"description: d\ntopology: two-hosts-10base-t\nworkloads:\n  - {{app: raw, transports: udp, sizes: 16, {more}}}\n"
    with pytest.raises(BadInput, match=re.escape(line)):
        load_experiments(write(tmp_path, scenario))
