# SPDX-License-Identifier: Apache-2.0
"""Which functions are stamped, and where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.model.scenario import KINDS
from sundial.model.workload import Traced
from sundial.plan.build import plan_run
from sundial.plan.paths import RunPaths
from sundial.plan.points import Place, Table, Tables, points_of
from sundial.plan.trace import TRACES, Function

PATHS = RunPaths(capture=Path("/run/wire"), sockets=Path("/run/s"), shm=Path("/dev/shm/sundial-x"))
PROGRAM = {
    "call": (Place(0x401000, 32, 0xA1),),
    "send": (Place(0x402000, 16, 0xA2),),
    "twice": (Place(0x403000, 8, 0xA3), Place(0x404000, 8, 0xA4)),
}
OTHER = {"call": (Place(0x401010, 8, 0xB1),), "send": PROGRAM["send"]}
KERNEL = {
    "udp_sendmsg": (Place(0xFFFFFFFF81000000, 64),),
    "alias": (Place(0xFFFFFFFF81000000, 64),),
    "within": (Place(0xFFFFFFFF81000020, 8),),
    "send": (Place(0x99, 1),),
}
TABLES = Tables(
    {"client": "apps", "node-client": "mbcf-apps"},
    {"apps": Table("program apps", PROGRAM), "mbcf-apps": Table("program mbcf-apps", OTHER)},
    Table("the kernel", KERNEL),
)


def traced(*overrides: str, scenario: str = "quickstart") -> dict[str, tuple[Function, ...]]:
    (experiment,) = load_experiments(scenario, overrides=overrides)
    return dict(plan_run(experiment, PATHS).traced)


def test_kinds_that_can_be_traced_say_what_of() -> None:
    assert {name for name, kind in KINDS.items() if issubclass(kind.model, Traced)} == set(TRACES) >= {"sunrpc"}


def test_nothing_is_traced_unless_it_is_asked_for() -> None:
    assert traced() == traced("trace=none") == {}


def test_steps_are_of_both_ends_and_name_the_calls_of_clients() -> None:
    functions = traced("trace=steps")
    assert list(functions) == ["server", "client"]
    calls = [function.names[0] for function in functions["client"] if function.role == "call"]
    assert calls == ["clnt_dg_call", "clnt_vc_call"]
    assert not [function for function in functions["server"] if function.role == "call"]
    for each in functions.values():
        assert [function.names for function in each if function.role == "transmit"] == [("start_xmit",)]


def test_functions_are_taken_by_name() -> None:
    client = traced("trace=[clnt_dg_call, kernel:ip_output]")["client"]
    assert client == (Function(("clnt_dg_call",), "echo-client", anywhere=True), Function(("ip_output",)))


def test_rings_and_stubs_are_divided_where_they_poll() -> None:
    functions = traced("trace=steps", "transports=vrpc", scenario="vrpc-sweep")
    polls = {name: [each.names[0] for each in listed if each.role == "poll"] for name, listed in functions.items()}
    assert polls == {"client": ["finish"], "server": ["look"]}
    assert not [each for each in functions["client"] if each.names[0].startswith("mbcf_")]
    both = traced("trace=steps", scenario="vrpc-sweep")["server"]
    assert {"mbcf_receive", "vmmc_received", "udp_received", "vrpc_line_end"} <= {each.names[0] for each in both}
    stubs = traced("trace=steps", scenario="shrimp-rpc-sweep")
    assert [each.names[0] for each in stubs["server"] if each.role == "poll"] == ["serve_next"]
    assert {"shrimp_enter_echo_null", "shrimp_enter_echo_inout_64"} <= {each.names[0] for each in stubs["server"]}
    # The compiler has made a client's stub a part of its caller.
    assert not [each for each in stubs["client"] if each.application is not None]


def test_points_say_where_functions_are() -> None:
    functions = (
        Function(("call",), "client", role="call"),
        Function(("gone", "send"), "client", "entry"),
        Function(("udp_sendmsg",), stamps="exit"),
        Function(("missing",), needed=False),
        Function(("alias",), stamps="entry"),  # the same function by another name
    )
    chosen = points_of("client", functions, TABLES)
    assert chosen.text() == "401000 20 both a1\n402000 10 entry a2\nffffffff81000000 40 both\n"
    assert [(point.name, point.program, point.role) for point in chosen.points.points] == [
        ("call", "apps", "call"),
        ("send", "apps", None),
        ("udp_sendmsg", None, None),
    ]


def test_programs_may_be_at_the_same_addresses() -> None:
    functions = [Function((name,), application) for name in ("call", "send") for application in TABLES.applications]
    chosen = points_of("client", functions, TABLES)
    # What is the same code in both is one point.
    assert chosen.text() == "401000 20 both a1\n401010 8 both b1\n402000 10 both a2\n"
    assert [point.program for point in chosen.points.points] == ["apps", "mbcf-apps", "apps"]


def test_a_name_is_the_programs_before_the_kernels() -> None:
    both = (Function(("send",), "client", anywhere=True), Function(("udp_sendmsg",), "client", anywhere=True))
    assert [point.program for point in points_of("client", both, TABLES).points.points] == ["apps", None]


@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ([Function(("udp_sendmesg",))], "the kernel of machine 'c' has no function udp_sendmesg; allowed: udp_sendmsg"),
        ([Function(("cal",), "client")], "program apps of machine 'c' has no function cal; allowed: call"),
        (
            [Function(("sendd",), "client", anywhere=True)],
            "program apps and the kernel of machine 'c' has no function sendd; allowed: send",
        ),
        ([Function(("xyzzy",))], "has no function xyzzy; allowed: functions in its table"),
        ([Function(("twice",), "client")], "twice is the name of 2 functions of program apps on machine 'c'"),
        ([Function(("call",), "other")], "the image of machine 'c' has no symbol table of other"),
        (
            [Function(("udp_sendmsg",)), Function(("within",))],
            "within of machine 'c' has the addresses of another function; allowed: functions with separate addresses",
        ),
    ],
)
def test_what_cannot_be_stamped_is_one_line(functions: list[Function], words: str) -> None:
    with pytest.raises(BadInput) as refused:
        points_of("c", functions, TABLES)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
