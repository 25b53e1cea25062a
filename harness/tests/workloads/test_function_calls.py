# SPDX-License-Identifier: Apache-2.0
"""The twelve functions over Sun RPC and plain sockets: their bytes by hand, and what scenarios may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.expect import Shape
from sundial.model.load import load_experiments
from sundial.model.sizes import ALLOWED
from sundial.workloads.functions import BY_NAME, NAMES
from sundial.workloads.raw import expect as raw
from sundial.workloads.raw import expect_functions as in_memory
from sundial.workloads.sunrpc import expect as sunrpc
from sundial.workloads.sunrpc import expect_functions as xdr

HEAD = "description: A test\ntopology: two-hosts-10base-t\nworkloads:\n"
RPC, RAW = "app: sunrpc, transports: [udp]", "app: raw, transports: [udp]"

XDR = {
    "void": "",
    "boolean": "00000001",
    "int": "075bcd15",
    "long": "112210f47de98115",
    "string_32": "00000020" + b"abcdefghijklmnopqrstuvwxyzabcdef".hex(),
    "person": "00000009" + b"Nine char".hex() + "000000" + "0000001e" + "428d0000",
    "distance": "00000003 00000000 3f000000 3f800000 00000003 40400000 40200000 3f800000".replace(" ", ""),
}
"""RFC 4506; floats as IEEE 754 has them."""
IN_MEMORY = {
    "void": "",
    "boolean": "01",
    "int": "15cd5b07",
    "long": "1581e97df4102211",
    "string_32": b"abcdefghijklmnopqrstuvwxyzabcdef".hex(),
    "person": b"Nine char".hex() + "1e000000" + "00008d42",
    "distance": "00000000 0000003f 0000803f 00004040 00002040 0000803f".replace(" ", ""),
}
ROOT_OF_13 = "400cd82b446159f3"


@pytest.mark.parametrize("name", XDR)
def test_values_in_xdr(name: str) -> None:
    assert xdr.arguments(name).hex() == XDR[name]
    assert xdr.results(name).hex() == (ROOT_OF_13 if name == "distance" else XDR[name])


def test_arrays_in_xdr() -> None:
    words = xdr.arguments("string_array")
    assert words == bytes.fromhex("000000c8") + (bytes.fromhex("00000006") + b"abcdef\0\0") * 200
    assert xdr.arguments("int_array").hex().startswith("000000c8" + "00000000" + "00000001" + "00000002")
    assert xdr.arguments("int_array").hex().endswith("000000c6" + "000000c7")
    assert xdr.arguments("float_array").hex().startswith("000000c8" + "00000000" + "3f000000" + "3f800000")
    assert len(words) == xdr.LARGEST == 4 + 200 * (4 + 8)


@pytest.mark.parametrize("name", IN_MEMORY)
def test_values_in_memory(name: str) -> None:
    assert in_memory.values(name, reply=False).hex() == IN_MEMORY[name]
    reply = bytes.fromhex(ROOT_OF_13)[::-1].hex() if name == "distance" else IN_MEMORY[name]
    assert in_memory.values(name, reply=True).hex() == reply


def test_arrays_in_memory() -> None:
    assert in_memory.values("string_array", reply=True) == b"abcdef" * 200
    assert in_memory.values("int_array", reply=False).hex().startswith("00000000" + "01000000" + "02000000")
    assert in_memory.values("float_array", reply=False).hex().startswith("00000000" + "0000003f" + "0000803f")


@pytest.mark.parametrize("name", NAMES)
def test_values_in_memory_have_the_functions_size(name: str) -> None:
    assert len(in_memory.values(name, reply=False)) == BY_NAME[name].size


def test_messages() -> None:
    person, distance = BY_NAME["person"].size, BY_NAME["distance"].size
    assert sunrpc.messages("person", person) == (40 + 24, 24 + 24)
    assert sunrpc.messages("distance", distance, credential=24) == (40 + 24 + 32, 24 + 8)
    call = raw.expect_call(Shape("udp", "distance", distance, 1500))
    assert (call.request.message, call.reply.message) == (16 + 24, 16 + 8)


@pytest.mark.parametrize("size", [0, 16, 18])
def test_a_size_that_is_not_the_functions(size: int) -> None:
    with pytest.raises(ValueError, match="the values of function person have 17"):
        sunrpc.messages("person", size)
    with pytest.raises(ValueError, match="the values of function person have 17"):
        raw.expect_call(Shape("udp", "person", size, 1500))


def test_a_word_ends_a_message_where_a_number_does() -> None:
    """What decides of an empty last fragment where a buffer is filled exactly."""
    assert [name for name in NAMES if not xdr.ends_in_word(name)[0]] == [
        "void", "string_32", "string_512", "string_1024", "string_array",
    ]  # fmt: skip
    assert xdr.ends_in_word("void")[1]


def _written(folder: Path, workload: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(f"{HEAD}  - {{{workload}}}\n")
    return str(path)


REFUSED = [
    (RPC, ": sizes is missing; allowed: " + ALLOWED + "; or functions in place of sizes"),
    (RAW, ": sizes is missing; allowed: " + ALLOWED + "; or functions in place of sizes"),
    (f"{RPC}, functions: all, sizes: [4]",
     ".sizes: sizes has no effect with functions, whose values are fixed; allowed: sizes or functions"),
    (f"{RAW}, functions: all, sizes: [16]",
     ".sizes: sizes has no effect with functions, whose values are fixed; allowed: sizes or functions"),
    (f"{RPC}, functions: all, procedures: echo",
     ".procedures: procedures has no effect with functions, whose values are fixed; allowed: procedures or functions"),
    (f"{RPC}, functions: all, sizes: [4], procedures: echo",
     ".sizes: sizes has no effect with functions, whose values are fixed; allowed: sizes or functions"),
    (f"{RPC}, functions: all, order: seeded",
     ".order: order seeded has no effect with functions; allowed: the order in functions"),
    (f"{RPC}, functions: all, calls: {{0: 5, 100: 2}}",
     ".calls: calls by size cannot be combined with functions; allowed: one number of calls"),
    ("app: sunrpc, transports: [tcp], functions: all, one_way: true",
     ".one_way: one_way cannot be combined with functions, whose calls all have replies; allowed: false"),
    ("app: sunrpc, transports: [mbcf3], functions: all, depth: 2",
     ".depth: depth 2 cannot be combined with functions, which are called in sequence; allowed: 1"),
    ("app: sunrpc, transports: [mbcf1], functions: all",
     ".functions: function string_array does not fit a call of 1376 bytes over mbcf1; "
     "allowed: other functions, or another transport or message size"),
    (f"{RPC}, functions: [int, string_1024], udp_message_size: 1000",
     ".functions: function string_1024 does not fit a UDP message of 1000 bytes over udp; "
     "allowed: other functions, or another transport or message size"),
    (f"{RPC}, functions: 13",
     f".functions: 13 is unknown; allowed: all, or one or more of {', '.join(NAMES)}, or their numbers from 1 to 12"),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "line"), REFUSED)
def test_what_cannot_be(tmp_path: Path, workload: str, line: str) -> None:
    path = _written(tmp_path, workload)
    with pytest.raises(BadInput) as caught:
        load_experiments(path)
    assert caught.value.exit_code == 2
    assert str(caught.value) == f"{path}:4: workloads.0{line}"


@pytest.mark.parametrize("app", [RPC, RAW])
def test_what_is_recorded_reads_as_it_was_written(tmp_path: Path, app: str) -> None:
    (experiment,) = load_experiments(_written(tmp_path, f"{app}, functions: [12, void]"))
    (workload,) = experiment.scenario_json()["workloads"]
    assert workload["functions"] == ["distance", "void"]
    assert not {"sizes", "procedures"} & workload.keys()


def test_a_workload_by_size_says_nothing_of_functions(tmp_path: Path) -> None:
    (experiment,) = load_experiments(_written(tmp_path, f"{RPC}, sizes: [4]"))
    (workload,) = experiment.scenario_json()["workloads"]
    assert "functions" not in workload
    assert (workload["procedures"], workload["sizes"]) == (["echo"], [4])
