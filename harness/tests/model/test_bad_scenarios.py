# SPDX-License-Identifier: Apache-2.0
"""Mistakes in a scenario as a whole, and in overrides: one line with file, line, field and what is allowed."""

import re
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model import experiment
from sundial.model.images import IMAGES
from sundial.model.load import load_experiments
from tests.model.documents import refusal

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
SUNRPC = (
    "clients, server, series, socket_buffer, tcp_nodelay, serving, sizes, calls, warmup, order, connection, threads, retry_timeout, "
    "total_timeout, functions, trace, app, transports, procedures, one_way, depth, ack, semantics, reply_cache, die, wait, "
    "deliberate_above, auth, send_buffer, recv_buffer, udp_message_size"
)
"""Each kind of message once as it is printed; `test_every_field.py` has the fields."""
CASES = [
    ("app: sunrpc", "app: dcerpc", "5: workloads.0.app: 'dcerpc' is unknown; allowed: sunrpc, raw, iperf3, mbcf, dce, grpc, rpyc, vmmc, shrimprpc, command"),
    ("transports: [udp]", "transports: [sctp]", "6: workloads.0.transports: 'sctp' is unknown; allowed: one or more of udp, tcp, mbcf1, mbcf2, mbcf12, mbcf3, mbcf3a, mbcf3b, vrpc, vrpc-mbcf"),
    ("sizes: [0, 16]", "sizes: [16:8:4]", "7: workloads.0.sizes: '16:8:4' is not a range; allowed: FIRST:LAST:STEP with FIRST <= LAST and STEP >= 1"),
    ("sizes: [0, 16]", "transports: [tcp]", '7: is not YAML: found duplicate key "transports" with value "[\'tcp\']" (original value: "[\'udp\']")'),
    ("    calls: 3", "    call: 3", f"8: workloads.0.call: unknown field; did you mean 'calls'? allowed: {', '.join(SUNRPC.split(', ')[:12])} and {SUNRPC.count(', ') - 11} more"),
    ("    calls: 3", "    retry_timeout: 1500 us", "8: workloads.0.retry_timeout: '1500 us' has the wrong unit 'us' (known: ms, s, min); allowed: a time in whole ms from 1 ms to 60 min, such as '500 ms'"),
    ("    calls: 3", "    auth: kerberos", "8: workloads.0.auth: 'kerberos' is unknown; allowed: none, sys"),
    ("{calls: 2}", "{calls: 0}", f"13: scale.smoke.calls: 0 is out of range; allowed: {CALLS}"),
    ("  smoke:", "  huge:", "3: default_scale: there is no scale 'smoke'; allowed: huge"),
    ("default_scale: smoke\n", "", "11: scale: default_scale is missing; allowed: smoke"),
    ("default_scale: smoke", "vary: [{sizes: 5}, 3]\ndefault_scale: smoke", "3: vary.1: is not a mapping; allowed: - {KEY: VALUE, ...}"),
    ("default_scale: smoke", "vary: [{topology: office}]\ndefault_scale: smoke", "3: vary.0.topology: cannot be varied"),
    ("default_scale: smoke", "vary: {matrix: {calls: 5}}\ndefault_scale: smoke", "3: vary.matrix.calls: is not a list of values; allowed: {KEY: [VALUE, ...], ...}"),
    ("default_scale: smoke", "vary: {matrix: {}}\ndefault_scale: smoke", "3: vary.matrix: is not a mapping of lists; allowed: {KEY: [VALUE, ...], ...}"),
    ("default_scale: smoke", "vary: {matrix: {scale: [a]}}\ndefault_scale: smoke", "3: vary.matrix.scale: cannot be varied"),
    ("default_scale: smoke", "vary: {matrx: {calls: [5]}}\ndefault_scale: smoke", "3: vary: is neither a list of mappings nor a matrix; allowed: - {KEY: VALUE, ...}, or {matrix: {KEY: [VALUE, ...], ...}}"),
    ("default_scale: smoke", "vary: {matrix: {calls: [1, 2]}, exclude: [{cals: 1}]}\ndefault_scale: smoke", "3: vary.exclude.0.cals: is not a field of matrix; allowed: calls"),
    ("default_scale: smoke", "vary: {matrix: {calls: [1, 2]}, exclude: [{calls: 3}]}\ndefault_scale: smoke", "3: vary.exclude.0.calls: 3 is not a value of it; allowed: 1, 2"),
    ("default_scale: smoke", "vary: {matrix: {calls: [1]}, exclude: [{calls: 1}]}\ndefault_scale: smoke", "3: vary.exclude: leaves out every run; allowed: fewer entries"),
    ("default_scale: smoke", "vary: {matrix: {workloads.0.calls: [0]}}\ndefault_scale: smoke", f"3: workloads.0.calls: 0 is out of range; allowed: {CALLS}"),
    ("default_scale: smoke", f"vary: {{matrix: {{calls: {list(range(1, 18))}, sizes: {list(range(16))}}}}}\ndefault_scale: smoke", "3: vary.matrix: 272 runs; allowed: up to 256"),
    ("default_scale: smoke", "vary: [{segments.wan.rate: 1 kbit/s}]\ndefault_scale: smoke", "3: segments.wan.rate: there is no segment 'wan' in topology 'two-hosts-10base-t'; allowed: lan"),
]  # fmt: skip


def write(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(("old", "new", "line"), CASES, ids=[f"{case[1][:40]!r}" for case in CASES])
def test_mistake(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert GOOD.count(old) >= 1
    path = write(tmp_path, GOOD.replace(old, new, 1))
    assert refusal(lambda: load_experiments(path)) == [f"{path}:{line}"]


OVERRIDES = [
    ("sizes", "--set: 'sizes' is not KEY=VALUE; allowed: KEY=VALUE, such as sizes=16:8192:16"),
    ("sizes=", "--set: 'sizes=' is not KEY=VALUE; allowed: KEY=VALUE, such as sizes=16:8192:16"),
    ("calls=0", f"--set: calls: 0 is out of range; allowed: {CALLS}"),
    ("calls=[", "--set: calls: '[' is not YAML: expected the node content, but found '<stream end>'"),
    ("duration=2 s", "--set: duration: no workload of scenario 'mine' has this field"),
    ("mtu=67", "--set: mtu: 67 is out of range; allowed: a whole number from 68 to 18174"),
    ("mtu=87", "{file}:10: workloads.1.transports: TCP is not supported over an MTU of 87 bytes: IP would fragment Linux's segments; allowed: an MTU of at least 88, or only udp"),
    ("mtu=1501", "--set: mtu: MTU 1501 of client:eth0 is above that of segment 'lan'; allowed: 68 to 1500"),
    ("machines.klient.mips=250", "--set: machines.klient.mips: there is no machine 'klient' in topology 'two-hosts-10base-t'; did you mean 'client'? allowed: client, server"),
    ("segments.lan.ports.7=client:eth0", "--set: segments.lan.ports.7: index '7' is out of range; allowed: 0 to 1"),
    ("segments.lan.rate.unit=1", "--set: segments.lan.rate.unit: 'unit' is not a field of this value, which has none"),
    ("seed=x", "--set: seed: 'x' is not a whole number; allowed: a whole number from 0 to 9223372036854775807"),
    ("workloads.0.trace=[a b]", "--set: workloads.0.trace: 'a b' is not a valid function name; allowed: none, steps, or a list of up to 256 functions, such as [clnt_dg_call, kernel:udp_sendmsg]"),
    ("accelerator=kvm", "--set: accelerator: kvm does not support clock: virtual; allowed: auto or tcg, or clock: real"),
    ("scale=paper", "scale: there is no scale 'paper'; allowed: smoke"),
    ("sizes=2000-01-01", "--set: sizes: '2000-01-01' is not a plain value; allowed: text, numbers, true, false"),
]  # fmt: skip


@pytest.mark.parametrize(("override", "line"), OVERRIDES)
def test_wrong_override(tmp_path: Path, override: str, line: str) -> None:
    path = write(tmp_path, GOOD)
    assert refusal(lambda: load_experiments(path, overrides=[override])) == [line.replace("{file}", path)]


def test_a_trace_needs_virtual_time(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    words = "--set: workloads.0.trace: tracing requires clock: virtual; allowed: none, or clock: virtual"
    assert refusal(lambda: load_experiments(path, overrides=["workloads.0.trace=steps"], clock="real")) == [words]
    assert load_experiments(path, overrides=["trace=none"], clock="real")


def test_a_trace_needs_a_kernel_that_says_where_its_functions_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_experiments("sss-rpc-sweep", overrides=["trace=steps"])
    silent = IMAGES["ssscore"].model_copy(update={"fixed_kernel": False})
    monkeypatch.setattr(experiment, "IMAGES", {**IMAGES, "ssscore": silent})
    words = "'server' boots ssscore, which has no kernel symbol table, so it cannot be traced; allowed: none, or machines that"
    known = "boot linux or linux-python or linux-python-current or linux-python-paper"
    said = refusal(lambda: load_experiments("sss-rpc-sweep", overrides=["trace=steps"]))
    assert said == [f"--set: trace: {words} {known}"]


def test_tcp_has_a_least_mtu_that_udp_has_not(tmp_path: Path) -> None:
    for scenario, mtu in ((GOOD, 88), (GOOD.replace("[tcp]", "[udp]"), 68)):
        (experiment,) = load_experiments(write(tmp_path, scenario), overrides=[f"mtu={mtu}"])
        assert {nic.mtu for nic in experiment.network.nics()} == {mtu}


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("duration=1500 ms", "duration: 1500 ms is not a whole number of seconds; allowed: whole seconds"),
        ("rate=5 Mbit/s", "rate: rate has no effect over tcp; allowed: transports: udp"),
        ("serving.socket_buffer=8192", "serving.socket_buffer: serving.socket_buffer has no effect: an iperf3 server uses its client's value; allowed: socket_buffer for both ends"),
        ("mtu=87", "TCP is not supported over an MTU of 87 bytes"),
    ],
)  # fmt: skip
def test_option_without_effect_on_iperf3_is_rejected(override: str, line: str) -> None:
    with pytest.raises(BadInput, match=re.escape(line)):
        load_experiments("iperf3", overrides=["transports=tcp", override])


@pytest.mark.parametrize("varied", [False, True])
def test_an_unknown_key_lists_the_known_ones(tmp_path: Path, varied: bool) -> None:
    text, place = (GOOD + "vary: [{sices: 5}]\n", "mine.yaml:14") if varied else (GOOD, "--set")
    (line,) = refusal(lambda: load_experiments(write(tmp_path, text), overrides=[] if varied else ["sices=5"]))
    known = "accelerator, ack, ack_delay, auth, bdp_probe, binding, byte_order, calls, cancel, clients, clock"
    assert f"{place}: sices: unknown key; did you mean 'sizes'? allowed: {known}" in line


def test_a_seed_out_of_range_names_the_option(tmp_path: Path) -> None:
    (line,) = refusal(lambda: load_experiments(write(tmp_path, GOOD), seed=-1))
    assert line.startswith("seed: -1 is out of range; allowed: a whole number from 0")


def test_a_scenario_names_a_topology_that_exists(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("two-hosts-10base-t", "nowhere"))
    assert refusal(lambda: load_experiments(path))[0].startswith(
        f"{path}:2: topology: there is no topology 'nowhere'; allowed: lane-office"
    )


def test_a_matrix_is_a_run_for_each_combination_that_is_not_excluded(tmp_path: Path) -> None:
    delay = "segments.lan.cable_delay"
    matrix = f"{{matrix: {{calls: [1, 2], {delay}: [1 ns, 2 ns]}}, exclude: [{{calls: 2, {delay}: 1 ns}}]}}"
    path = write(tmp_path, GOOD + f"vary: {matrix}\n")
    variants = [each.variant for each in load_experiments(path)]
    assert variants == [
        "calls=1, segments.lan.cable_delay=1 ns",
        "calls=1, segments.lan.cable_delay=2 ns",
        "calls=2, segments.lan.cable_delay=2 ns",
    ]
    assert [each.variant for each in load_experiments(path, overrides=["calls=2"])] == [
        "segments.lan.cable_delay=1 ns",
        "segments.lan.cable_delay=2 ns",
    ]
    assert "vary" not in load_experiments(path)[0].scenario_json()


def test_seeds_are_varied_unless_the_command_line_has_one(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + "vary: {matrix: {seed: [3, 7]}}\n")
    assert [each.seed for each in load_experiments(path)] == [3, 7]
    assert [each.seed for each in load_experiments(path, seed=5)] == [5]
