# SPDX-License-Identifier: Apache-2.0
import os
import threading
from pathlib import Path
from queue import SimpleQueue

from sundial.machines.cores import assign, hurry, keeps_time_for_others, may_hurry, settle


def test_each_has_a_core_of_its_own_beginning_anywhere() -> None:
    assert assign([10, 11], {0, 1}, first=0) == {10: 0, 11: 1}
    assert assign([10, 11], {0, 1}, first=7) == {10: 1, 11: 0}
    assert assign([10, 11], {2, 5, 9}, first=2) == {10: 9, 11: 2}


def test_nobody_is_bound_where_cores_are_too_few() -> None:
    assert assign([10, 11, 12], {0, 1}) == {}
    assert assign([], {0}) == {}


class Threads:
    """Threads of this process which stand for those of QEMU number 77, until `end`."""

    def __init__(self, proc: Path, *names: str) -> None:
        self.cores: dict[str, set[int]] = {}
        self.policies: dict[str, int] = {}
        self._end = threading.Event()
        self._threads = []
        for name in names:
            started: SimpleQueue[int] = SimpleQueue()
            self._threads.append(threading.Thread(target=self._live, args=(name, started)))
            self._threads[-1].start()
            folder = proc / "77" / "task" / str(started.get(timeout=600))
            folder.mkdir(parents=True)
            (folder / "comm").write_text(f"{name}\n")

    def end(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _live(self, name: str, started: SimpleQueue[int]) -> None:
        started.put(threading.get_native_id())
        self._end.wait(600)
        self.cores[name] = os.sched_getaffinity(0)
        self.policies[name] = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK


def test_only_the_threads_of_guests_are_bound(tmp_path: Path) -> None:
    threads = Threads(tmp_path, "ALL CPUs/TCG", "IO mon_iothread")
    settle([77], alone=True, proc=tmp_path)
    threads.end()
    assert len(threads.cores["ALL CPUs/TCG"]) == 1
    assert threads.cores["IO mon_iothread"] == os.sched_getaffinity(0)


def test_beside_another_run_nobody_is_bound_any_more(tmp_path: Path) -> None:
    threads = Threads(tmp_path, "ALL CPUs/TCG")
    settle([77], alone=True, proc=tmp_path)
    settle([77], alone=False, proc=tmp_path)
    threads.end()
    assert threads.cores["ALL CPUs/TCG"] == os.sched_getaffinity(0)


def test_guests_and_fabric_run_in_real_time_where_that_is_allowed(tmp_path: Path) -> None:
    threads, fabric = Threads(tmp_path, "ALL CPUs/TCG", "IO mon_iothread"), Threads(tmp_path / "other", "fabric")
    (number,) = (int(folder.name) for folder in (tmp_path / "other" / "77" / "task").iterdir())
    hurry([77], number, tmp_path)
    threads.end()
    fabric.end()
    expected = os.SCHED_RR if may_hurry() else os.SCHED_OTHER
    assert threads.policies == {"ALL CPUs/TCG": expected, "IO mon_iothread": os.SCHED_OTHER}
    assert fabric.policies == {"fabric": expected}
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_no_real_time_where_it_would_take_all_of_a_core(tmp_path: Path) -> None:
    limit = tmp_path / "sched_rt_runtime_us"
    limit.write_text("950000\n")
    assert keeps_time_for_others(limit)
    limit.write_text("-1\n")
    assert not keeps_time_for_others(limit)
    assert not keeps_time_for_others(tmp_path / "missing")


def test_a_process_that_is_gone_is_no_matter(tmp_path: Path) -> None:
    settle([77], alone=True, proc=tmp_path)
