# SPDX-License-Identifier: Apache-2.0
"""The store under several writers and kills: a result is there whole or not at all, and differences are kept."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from sundial.machines.waiting import wait_until
from sundial.sweep.result import Result
from sundial.sweep.store import Kept, Store

HARNESS = Path(__file__).resolve().parents[2]
KEY = "ab" + "0" * 62


def put(store: Store, content: str = "one", *, captures: bool = True, verifier: str = "v", drop: bool = False) -> Kept:
    with store.making() as folder:
        made = folder / "made"
        made.mkdir()
        (made / "capture").write_text(content)
        files = {"capture": hashlib.sha256(content.encode()).hexdigest()}
        if drop:
            (made / "capture").unlink()
        return store.put(Result(KEY, verifier, "pass", files=files), made, captures=captures)


def test_a_result_is_kept_and_an_equal_one_is_counted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.find(KEY) is None
    first = put(store)
    assert (first.again, first.has_captures, first.result.verdict) == (0, True, "pass")
    assert put(store).again == 1
    assert put(Store(tmp_path)).again == 2


def test_other_bytes_are_kept_beside_and_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put(store)
    assert put(store, "other").differing == ["capture"]
    assert (store.place(KEY) / "run" / "capture").read_text() == "one"
    (other,) = store.place(KEY).glob("differs/*/run/capture")
    assert other.read_text() == "other"


def test_captures_come_back_and_another_verifier_replaces_the_verdict(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert not put(store, drop=True, captures=False).has_captures
    found = put(store)
    assert (found.has_captures, found.again) == (True, 1)
    found = put(store, verifier="w")
    assert (found.result.verifier, found.again) == ("w", 2)


def test_a_result_that_cannot_be_read_is_replaced(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put(store)
    (store.place(KEY) / "result.json").write_text('{"format": 1')
    assert store.find(KEY) is None
    assert put(store).result.verdict == "pass"


def test_results_differ_by_verdict_or_error_where_files_do_not_say_it() -> None:
    one = Result(KEY, "v", "failed", first="its kernel panicked")
    assert one.bytes != replace(one, first="its job failed").bytes
    assert one.bytes != Result(KEY, "v", "pass").bytes
    assert replace(one, host={"name": "a"}).bytes == one.bytes


def _write(folder: str, number: int) -> None:
    store = Store(Path(folder))
    for _ in range(12):
        put(store, verifier=f"v{number % 2}")


@pytest.mark.timeout(300)
def test_eight_writers_lose_nothing(tmp_path: Path) -> None:
    context = get_context("spawn")
    writers = [context.Process(target=_write, args=(str(tmp_path), number)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 8
    found = Store(tmp_path).find(KEY)
    assert found is not None
    assert (found.differing, found.has_captures) == ([], True)
    assert list((tmp_path / "making").iterdir()) == []


def test_a_maker_that_is_killed_leaves_what_tidying_removes(tmp_path: Path) -> None:
    program = (
        "import sys, time, pathlib; from sundial.sweep.store import Store\n"
        "with Store(pathlib.Path(sys.argv[1])).making() as folder: (folder / 'made').mkdir(); time.sleep(300)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=HARNESS)
    try:
        wait_until(lambda: bool(list(tmp_path.glob("making/*/made"))), seconds=300, what="a folder")
        assert Store(tmp_path).tidy() == 0, "its maker lives"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert Store(tmp_path).tidy() == 1
    assert list((tmp_path / "making").iterdir()) == []
