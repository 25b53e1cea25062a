# SPDX-License-Identifier: Apache-2.0
"""DCE RPC between booted nodes, and between them and the Linux guest: the same programs, options and records on both."""

import errno
from pathlib import Path
from typing import NamedTuple

import pytest
from testing.built import current
from testing.guest import Guest, interface, job
from testing.nodes import node_job

pytestmark = pytest.mark.vm

NODE, PEER = 1, 2
SIZES = [0, 1392, 4016, 24096]
CALLS, WARMUP = 3, 1
SSS, LINUX = "ssscore", "linux"
BROADCAST = "10.0.0.255"
PATIENT = {"resend_ms": 20_000, "ping_ms": 20_000}
"""The machines run at the host's pace, and a busy host must not be taken for a loss."""
MEMORY = ("-m", "32M")
"""What a node has by default; the tests' machines have the least that their image boots with."""


class Pair(NamedTuple):
    """A client that is done, and the last counters of its server."""

    client: Guest
    counters: dict


def machine_job(image: str, number: int, peer: int, **fields: object) -> dict:
    if image == SSS:
        return node_job(number, peer, **fields)
    return job(f"n{number}", [interface(number, (peer,))], **fields)


def run_calls(folder: Path, images: tuple[str, str], steps: list[dict], expected: int, **server: object) -> Pair:
    """Steps of dce-client, until dce-server has counted all that they ask for and the last acknowledgement."""
    folders = {name: current(name).folder for name in set(images)}
    ends = folder / "client.sock", folder / "server.sock"
    base = {"server": "10.0.0.2", "port": 1027, "interface_sizes": SIZES, "ack_delay_ms": 50, **PATIENT}
    calls = [{"app": "dce-client", "options": {**base, "calls": CALLS, "warmup": WARMUP, **step}} for step in steps]
    serving = [
        {"app": "dce-server", "options": {"interface_sizes": SIZES, "resend_ms": PATIENT["resend_ms"], **server}}
    ]
    extra = [MEMORY if image == SSS else () for image in images]
    peers = (
        Guest(folder / "client", folders[images[0]], machine_job(images[0], NODE, PEER, steps=calls), extra[0]),
        Guest(folder / "server", folders[images[1]], machine_job(images[1], PEER, NODE, services=serving), extra[1]),
    )
    with peers[0] as client, peers[1] as serves:
        serves.start((ends[1], ends[0]))
        serves.wait_for("done")  # it serves
        client.start(ends)
        client.wait_for("done")

        def counted() -> bool:
            lines = serves.lines("counters")
            return bool(lines) and lines[-1]["executed"] == expected and lines[-1]["kept"] == 0

        serves.wait_until(counted, "not all was counted")
        assert client.lines("error") == serves.lines("error") == [], client.describe()
        return Pair(client, serves.lines("counters")[-1])


PAIRS = [(SSS, SSS), *(pytest.param(pair, marks=pytest.mark.night) for pair in ((LINUX, SSS), (SSS, LINUX)))]


@pytest.mark.parametrize("images", PAIRS, ids="-".join)
def test_calls_of_all_procedures_with_whole_and_cut_fragments(tmp_path: Path, images: tuple[str, str]) -> None:
    steps = [{"procedure": "null"}, *({"procedure": name, "sizes": SIZES} for name in ("put", "get", "echo"))]
    each = CALLS + WARMUP
    pair = run_calls(tmp_path, images, steps, each * (1 + 3 * len(SIZES)))
    batches = pair.client.batches()
    assert [(header["procedure"], header["size"]) for header, _ in batches] == [
        ("null", 0),
        *((name, size) for name in ("put", "get", "echo") for size in SIZES),
    ]
    for header, rows in batches:
        assert [(row["ok"], row["error"]) for row in rows] == [(1, None)] * each, header
    total = {name: sum(header["counters"][name] for header, _ in batches) for name in batches[0][0]["counters"]}
    opnums = {"0": each, **{str(first + i): each for first in (1, 1000, 2000) for i in range(len(SIZES))}}
    assert pair.counters["by_opnum"] == opnums
    assert pair.counters["bad_payload"] == pair.counters["undecodable"] == 0
    # 24096 bytes are six fragments, in bursts of 1, 2 and the rest: two ask, and arrive before the stream is complete.
    assert total["facks"] == pair.counters["facks_received"] == 2 * 2 * each
    assert total["facks_received"] == pair.counters["facks"] == 2 * 2 * each
    assert total["acks"] == pair.counters["acks"] == len(batches)
    for name in ("malformed", "dropped", "overruns", "rejects", "faults"):
        assert pair.counters[name] == total[name] == 0, name


@pytest.mark.parametrize("images", PAIRS, ids="-".join)
def test_threads_are_activities_of_their_own(tmp_path: Path, images: tuple[str, str]) -> None:
    threads = 4
    step = {"procedure": "echo", "sizes": SIZES, "threads": threads, "policy": "halves", "byte_order": "big"}
    pair = run_calls(tmp_path, images, [step], threads * len(SIZES) * (CALLS + WARMUP))
    batches = pair.client.batches()
    assert [header["thread"] for header, _ in batches] == [*range(threads)] * len(SIZES)
    assert len({header["activity"] for header, _ in batches}) == threads
    assert all(row["ok"] == 1 for _, rows in batches for row in rows)
    for index, (_, rows) in enumerate(batches):
        first = index // threads * (CALLS + WARMUP)
        assert [row["xid"] for row in rows] == [*range(first, first + CALLS + WARMUP)]


def test_the_mapper_and_a_broadcast(tmp_path: Path) -> None:
    steps = [
        {"port": 0, "byte_order": "big"},
        {"server": BROADCAST, "semantics": "broadcast", "procedure": "put", "sizes": [1392]},
    ]
    pair = run_calls(tmp_path, (SSS, SSS), steps, 2 * (CALLS + WARMUP), mapper_port=135)
    (binding,) = pair.client.lines("binding")
    assert (binding["ok"], binding["port"], binding["attempts"]) == (True, 1027, 1)
    assert pair.counters["mapped"] == 1
    assert all(row["ok"] == 1 for _, rows in pair.client.batches() for row in rows)


def test_work_takes_its_time_and_a_cancel_ends_it(tmp_path: Path) -> None:
    once = {"calls": 1, "warmup": 0}
    steps = [
        {**once, "ping_ms": 30},
        {**once, "cancel_ms": 20},
        {**once, "port": 1028, "give_up_ms": 200, "resend_ms": 50},
    ]
    # Long enough for a ping and its answer on a busy host: these guests have the host's time.
    pair = run_calls(tmp_path, (SSS, SSS), steps, 2, work_ms=2000)
    (slow, (done,)), (_, (cancelled,)), (_, (silent,)) = pair.client.batches()
    assert done["ok"] == 1
    assert done["end"] - done["start"] >= 2_000_000_000
    assert slow["counters"]["pings"] >= slow["counters"]["working"] > 0
    assert cancelled["error"] == "fault 1c00000d"
    assert silent["error"] == "no answer"


WRONG_OPTIONS = [
    ({"fragment_bytes": 2001}, "option fragment_bytes: must be a multiple of 8"),
    ({"server": "10.0.0"}, "option server: must be an address like 10.0.0.2"),
    ({"procedure": "put", "sizes": [9]}, "option sizes: 9 is not among interface_sizes"),
    ({"interface_sizes": [*range(1000)]}, "option interface_sizes: at most 999"),
    ({"threads": 33}, "option threads: must be an integer from 1 to 32"),
    ({"more": 1}, "option more: unknown"),
]


def test_a_wrong_option_is_one_line_and_fails_its_step_alone(bootable: Path, tmp_path: Path) -> None:
    options = {"server": "10.0.0.2", "port": 1027, "interface_sizes": [8]}
    steps = [{"app": "dce-client", "options": {**options, **changes}} for changes, _ in WRONG_OPTIONS]
    with Guest(tmp_path / "g", bootable, node_job(NODE, PEER, steps=[*steps, {"app": "hello"}])) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        guest.wait_for("done")
    messages = {line["message"] for line in guest.lines("error")}
    assert [said for _, said in WRONG_OPTIONS if said not in messages] == [], messages
    *wrong, hello = (line["status"] for line in guest.lines("step"))
    assert (len(wrong), 0 in wrong, hello) == (len(steps), False, 0)


def test_a_node_without_the_memory_says_so(bootable: Path, tmp_path: Path) -> None:
    """Two tables of 7 MiB do not fit the smallest node. How much is left after the first one follows from the image's
    size: the second server finds no memory for its table, or none to begin with."""
    services = [{"app": "dce-server", "options": {"port": port, "interface_sizes": SIZES}} for port in (1027, 1028)]
    with Guest(tmp_path / "g", bootable, node_job(NODE, PEER, services=services)) as guest:
        guest.start((tmp_path / "a", tmp_path / "b"))
        guest.wait_for("done")
    errors = guest.lines("error")
    assert {line["app"] for line in errors} == {"dce-server"}
    said = [line["message"] for line in errors]
    no_table = len(said) == 2 and said[0].startswith("out of memory:") and said[1] == "ended with status 1"
    no_program = said == [f"cannot be started: error {errno.ENOMEM}"]
    no_program &= "task dce-server cannot start: no memory is left for it" in guest.console_path.read_text()
    assert no_table or no_program, said
