# SPDX-License-Identifier: Apache-2.0
import os
import threading
from pathlib import Path

from sundial.machines.cores import assign, settle


def test_each_has_a_core_of_its_own_beginning_anywhere() -> None:
    assert assign([10, 11], {0, 1}, first=0) == {10: 0, 11: 1}
    assert assign([10, 11], {0, 1}, first=7) == {10: 1, 11: 0}
    assert assign([10, 11], {2, 5, 9}, first=2) == {10: 9, 11: 2}


def test_nobody_is_bound_where_cores_are_too_few() -> None:
    assert assign([10, 11, 12], {0, 1}) == {}
    assert assign([], {0}) == {}


def test_only_the_threads_of_guests_are_bound(tmp_path: Path) -> None:
    found: dict[str, set[int]] = {}

    def thread(name: str) -> int:
        """A thread of this process, which stands for one of QEMU's."""
        started, bound = threading.Event(), threading.Event()
        ends.append(bound)
        number: list[int] = []

        def live() -> None:
            number.append(threading.get_native_id())
            started.set()
            bound.wait(30)
            found[name] = os.sched_getaffinity(0)

        threads.append(threading.Thread(target=live))
        threads[-1].start()
        started.wait(30)
        return number[0]

    threads: list[threading.Thread] = []
    ends: list[threading.Event] = []
    for name in ("ALL CPUs/TCG", "IO mon_iothread"):
        folder = tmp_path / "77" / "task" / str(thread(name))
        folder.mkdir(parents=True)
        (folder / "comm").write_text(f"{name}\n")
    settle([77], tmp_path)
    for end in ends:
        end.set()
    for each in threads:
        each.join(30)
    assert len(found["ALL CPUs/TCG"]) == 1
    assert found["IO mon_iothread"] == os.sched_getaffinity(0)


def test_a_process_that_is_gone_is_no_matter(tmp_path: Path) -> None:
    settle([77], tmp_path)
