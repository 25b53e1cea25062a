# SPDX-License-Identifier: Apache-2.0
"""SSS-CORE's kernel and the adapter of a backplane: what tasks may do and what not, how it ends, what it costs.

The tasks are cases of guest-apps/sss-core/tests/tasks/backplane.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from tests.run.live import require_guests
from tests.run.served import passed
from tests.run.tasks import Pair, build_task

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

NOT_THERE, NO_PLACE, NOT_MEMORY, EXISTS, NOT_ALLOWED, NO_ANSWER = -2, -11, -14, -17, -22, -110
NO_NAME, NO_KEY, NO_NODE, FULL, GONE = -257, -258, -259, -260, -261
PAGE_FAULT = -14
RESTART = {"app": "restart", "options": {}}
NS_OF_INSTRUCTION = 16
WORD_NS, MESSAGE_BYTES = 500, 64
QUICK = {"word_latency": f"{WORD_NS} ns", "link_rate": "4 Gbit/s", "dma_rate": "4 Gbit/s"}
SLOW = {"word_latency": "400 us", "link_rate": "1 Mbit/s", "dma_rate": "1 Mbit/s"}
MESSAGE_NS = WORD_NS + (MESSAGE_BYTES - 8) * 2 * 2
"""On the way, over the line and into memory."""
PART_OF_DMA = 0.95
DMA_BYTES_PER_S = 23_000_000
TRANSFERS, TRANSFER_BYTES = 20, 65536
STREAM = f"""\
description: one deliberate update behind another
topology: sss-two-vmmc
linger: 50 ms
workloads:
  - {{app: vmmc, operations: [du], modes: [stream], sizes: [{TRANSFER_BYTES}], calls: {TRANSFERS}, warmup: 0}}
"""
MOST = {"import": 3000, "start": 25, "notification": 350}
"""Instructions; an import's are those of both kernels."""


def sleep(milliseconds: int) -> dict[str, object]:
    return {"app": "sleep", "options": {"ns": milliseconds * 1_000_000}}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_guests("ssscore")
    return build_task(tmp_path_factory.mktemp("tasks"), "backplane")


def run_cases(program: Path, folder: Path, *cases: str, backplane: Mapping[str, str] | None = None) -> Pair:
    """The server's ends of the cases are there at once, the client's run one after another."""
    pair = Pair(program, folder, backplane)
    servers, clients = ([f"{case}-{end}" for case in cases] for end in ("server", "client"))
    pair.run(server=(servers, ()), client=((), clients))
    return pair


@pytest.fixture(scope="module")
def basics(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return run_cases(program, tmp_path_factory.mktemp("basics"), "store", "deliberate", "refusals", "isolation")


@pytest.fixture(scope="module")
def ends(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return run_cases(program, tmp_path_factory.mktemp("ends"), "gone", "leaving", "limits", "random")


def test_stores_go_there_and_back(basics: Pair) -> None:
    assert basics.results("client", "store-client") == {
        "export": [0],
        "import": [0],
        "pages": [4],
        "zero": [0],
        "own": [1],
        "unbind": [0],
        "unbind again": [NOT_THERE],
        "unimport": [0],
        "unexport": [0],
    }


def test_transfers_arrive_whole_and_wake_who_waits(basics: Pair) -> None:
    assert basics.results("server", "deliberate-server") == {"wrong": [0, 0, 0, 0]}


def test_transfers_beyond_an_import_or_a_source_are_refused_and_counted(basics: Pair) -> None:
    results = basics.results("client", "deliberate-client")
    assert results["errors"] == [0, 3]
    assert results["a source that is not there"] == [NOT_MEMORY]
    assert results["a source of another import"] == [NOT_THERE]
    assert results["unimport"] == [0]
    assert results["unimport again"] == [NOT_THERE]


def test_only_who_may_imports(basics: Pair) -> None:
    results = basics.results("client", "refusals-client")
    assert (results["another key"], results["no such name"], results["for others"]) == ([NO_KEY], [NO_NAME], [NO_NODE])
    assert (results["both singles"], results["full"], results["free again"], results["full again"]) == (
        [1],
        [FULL],
        [1],
        [FULL],
    )
    assert results["no such node"] == [NO_ANSWER]
    assert {name: results[name] for name in results if name in ("itself", "node 0", "no name")} == {
        "itself": [NOT_ALLOWED],
        "node 0": [NOT_ALLOWED],
        "no name": [NOT_ALLOWED],
    }
    assert results["not its word"] == results["not its memory"] == [NOT_MEMORY]


def test_only_pages_of_an_import_are_bound(basics: Pair) -> None:
    results = basics.results("client", "refusals-client")
    assert results["open"] == [1]
    for what in ("bind beyond", "bind too much", "bind nothing", "bind with unknown flags"):
        assert results[what] == [NOT_ALLOWED], what
    assert results["bind to none"] == [NOT_THERE]
    assert results["bind where something is"] == [EXISTS]


def test_only_a_tasks_own_memory_is_exported(basics: Pair) -> None:
    results = basics.results("server", "refusals-server")
    for what in ("no name", "no pages", "too many pages", "not whole pages", "read-only memory", "unknown flags"):
        assert results[what] in ([NOT_ALLOWED], [NOT_MEMORY]), what
    assert results["not its memory"] == results["not its word"] == [NOT_MEMORY]
    for what in ("the same name", "the same name, single", "a name that single ones have"):
        assert results[what] == [EXISTS], what
    assert results["unexport of none"] == [NOT_THERE]


def test_importers_learn_that_an_export_is_gone(ends: Pair) -> None:
    assert ends.results("client", "gone-client") == {
        "gone": [1, 1],
        "own": [1],
        "errors": [1, 0],
        "bind": [GONE],
        "import": [GONE, GONE],
        "unimport": [0],
    }
    results = ends.results("server", "gone-server")
    assert results["arrived later"] == [0]
    assert (results["unexport"], results["unexport again"]) == ([0], [NOT_THERE])


def test_a_transfer_of_a_task_that_has_ended_is_the_last_of_its_import(ends: Pair) -> None:
    assert ends.results("client", "leaving-client") == {"child": [0], "still full": [FULL], "free": [1]}
    assert ends.results("server", "leaving-server") == {"last word": [77]}


def test_what_is_used_up_is_refused_and_comes_back(ends: Pair) -> None:
    results = ends.results("client", "limits-child")
    assert results["exports"] == results["imports"] == results["sources"] == [240, 240]
    assert results["bound"] == [1024, 1024]
    assert results["one more"] == [NO_PLACE] * 8
    assert ends.results("client", "limits-client") == {"pages lost": [0]}


def test_nobody_reaches_what_is_anothers(basics: Pair) -> None:
    results = basics.results("client", "isolation-client")
    faults = [
        *("foreign page for transfers", "foreign bound page", "beyond", "unbound"),
        *("no longer imported", "no transfers any more"),
    ]
    assert {what: results[what] for what in faults} == {what: [PAGE_FAULT] for what in faults}
    messages = basics.faults("client")
    assert len(messages) == len(faults)
    assert all("(write, not mapped)" in message for message in messages)
    assert basics.results("client", "foreign") == {
        what: [NOT_THERE] for what in ("unexport", "unimport", "source", "bind", "unbind")
    }
    assert results["unmap"] == results["protect"] == [NOT_THERE]
    for what in ("share", "wait", "log", "export", "source"):
        assert results[what] == [NOT_MEMORY], what
    assert results["what another has stored"] == [0]


def test_whatever_a_task_asks_for_harms_nobody_and_leaves_nothing(ends: Pair) -> None:
    assert ends.results("client", "random-client") == {"child": [0] * 5, "pages lost": [0], "single": [1]}
    assert all(well > 200 for well in ends.results("client", "random-child")["went well"])


def test_stores_wait_while_the_outgoing_fifo_is_full(program: Path, tmp_path: Path) -> None:
    """4,000 packets of 40 bytes take 800 us of a line of 1,600 Mbit/s, whatever a store takes; the FIFO has 32 KiB."""
    results = run_cases(program, tmp_path, "flood").results("client", "flood-client")
    assert (results["child"], results["last"], results["others ran"]) == ([PAGE_FAULT], [4000], [1])
    assert 4000 * 200 - 32768 * 5 < results["ns"][0] < 4000 * 200 * 1.05


def test_who_floods_its_kernel_with_imports_waits_and_harms_nobody(program: Path, tmp_path: Path) -> None:
    """Twice 1,350 messages of 96 bytes take 0.77 ms each at 1 Mbit/s; the FIFO has 32 KiB. The end of 150 imports comes
    on top of a full one. Each import and its end is counted there, and another task is served meanwhile."""
    pair = run_cases(program, tmp_path, "messages", backplane=SLOW)
    assert pair.results("client", "messages-client") == {
        "while it sends": [1],
        "child": [PAGE_FAULT] * 2,
        "pages lost": [0],
    }
    assert pair.results("server", "messages-server") == {"before the others": [1], "imported": [3001]}


@pytest.mark.night
def test_transfers_wait_while_the_outgoing_fifo_is_full(program: Path, tmp_path: Path) -> None:
    """3,000 packets of 33 bytes: 1,320 ns each on a line from whose memory a byte is read in 40 ns."""
    pair = run_cases(program, tmp_path, "short", backplane={"link_rate": "200 Mbit/s", "dma_rate": "200 Mbit/s"})
    assert pair.results("client", "short-client") == {"errors": [0]}
    assert pair.results("server", "short-server") == {"last": [77]}


def test_an_exporter_whose_node_restarts_is_gone_until_it_exports_again(program: Path, tmp_path: Path) -> None:
    pair = Pair(program, tmp_path)
    pair.run(server=(["restart-server"], [sleep(30), RESTART]), client=((), ["restart-client"]))
    assert pair.results("client", "restart-client") == {"gone": [1, 0]}
    assert pair.results("server", "restart-server") == {"stored": [1, 2]}


@pytest.mark.night
def test_an_importer_whose_node_restarts_imports_again(program: Path, tmp_path: Path) -> None:
    pair = Pair(program, tmp_path)
    pair.run(server=(["crash-server"], ()), client=(["crash-client"], [RESTART, sleep(10)]))
    assert pair.results("client", "crash-client") == {"import": [0, 0]}
    assert pair.results("server", "crash-server") == {"last word": [77]}
    assert pair.faults("client") == pair.faults("server") == []


@pytest.mark.night
def test_two_runs_are_equal_to_the_byte(program: Path, tmp_path: Path) -> None:
    seen = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        pair = Pair(program, folder, cold=name == "b")
        pair.run(server=(["store-server", "deliberate-server"], ()), client=((), ["store-client", "deliberate-client"]))
        seen.append([(pair.out / "wire/backplane.pcapng").read_bytes(), pair.lines("client"), pair.lines("server")])
    assert seen[0] == seen[1]


@pytest.mark.night
def test_the_ways_to_the_backplane_stay_short(program: Path, tmp_path: Path) -> None:
    pair = run_cases(program, tmp_path, "costs", backplane=QUICK)
    client, server = pair.results("client", "costs-client"), pair.results("server", "costs-server")
    measured = {
        "import": client["import"][0] - 2 * MESSAGE_NS,
        "start": client["start"][0],
        "notification": server["noticed at"][0] - client["stored at"][0] - WORD_NS,
    }
    instructions = {name: ns // NS_OF_INSTRUCTION for name, ns in measured.items()}
    assert {name: count for name, count in instructions.items() if count > MOST[name]} == {}, instructions


def test_long_transfers_go_at_the_rate_of_memory(tmp_path: Path) -> None:
    require_guests("ssscore")
    (tmp_path / "stream.yaml").write_text(STREAM)
    passed(tmp_path / "stream.yaml", tmp_path / "run")
    samples = pl.read_parquet(tmp_path / "run" / "samples.parquet")
    # The first begins with its bytes being made; the last ends with the word that all has arrived.
    began_ns, ended_ns = samples.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    assert TRANSFERS * TRANSFER_BYTES / (ended_ns - began_ns) * 1e9 >= PART_OF_DMA * DMA_BYTES_PER_S
