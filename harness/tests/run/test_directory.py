# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sundial.errors import BadInput, RunFailed
from sundial.run.directory import (
    RESERVE,
    YOUNG_S,
    RunFolder,
    claim_exactly,
    claim_in,
    disk_full_is_a_failure,
    in_the_making,
    take_up_abandoned,
)


def test_the_first_free_number_is_taken(tmp_path: Path) -> None:
    (tmp_path / "quick-001").mkdir()
    folder = claim_in(tmp_path, "quick", ["client"])
    assert folder.final == tmp_path / "quick-002"
    assert folder.path == tmp_path / ".quick-002.partial"
    assert folder.node("client").is_dir()
    assert folder.wire.is_dir()
    folder.write_json("run.json", {"status": "interrupted"})
    assert folder.finish() == tmp_path / "quick-002"
    assert sorted(path.name for path in (tmp_path / "quick-002").iterdir()) == ["nodes", "run.json", "wire"]
    assert json.loads((tmp_path / "quick-002" / "run.json").read_text()) == {"status": "interrupted"}


def test_runs_at_once_get_different_names(tmp_path: Path) -> None:
    claimed: list[RunFolder] = []
    gate = threading.Barrier(8)

    def claim() -> None:
        gate.wait()
        claimed.append(claim_in(tmp_path, "quick", ["client"]))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({folder.finish() for folder in claimed}) == 8


def test_a_named_directory_must_be_new(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(BadInput, match="exists already"):
        claim_exactly(tmp_path / "mine", [])
    claim_exactly(tmp_path / "other", [])
    with pytest.raises(BadInput, match="another run is writing"):
        claim_exactly(tmp_path / "other", [])


def test_a_place_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be created"):
        claim_exactly(tmp_path / "file" / "run", [])


def test_a_name_taken_meanwhile_does_not_lose_the_run(tmp_path: Path) -> None:
    folder = claim_exactly(tmp_path / "mine", [])
    (tmp_path / "mine").mkdir()
    assert folder.finish() == tmp_path / "mine-2"


def test_the_reserve_is_given_up_for_the_last_words(tmp_path: Path) -> None:
    folder = claim_exactly(tmp_path / "mine", [])
    assert (folder.path / RESERVE).stat().st_size > 100_000
    folder.give_up_reserve()
    folder.give_up_reserve()
    assert not (folder.path / RESERVE).exists()


def test_a_full_disk_is_a_failed_run_and_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RunFailed, match="disk is full"), disk_full_is_a_failure():
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(PermissionError), disk_full_is_a_failure():
        raise PermissionError(errno.EACCES, "no")


def abandoned(captures: Path, stem: str, *, record: bool) -> None:
    """A run whose process was killed, without a guard."""
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from sundial.run.directory import claim_in\n"
        f"folder = claim_in(Path({str(captures)!r}), {stem!r}, ['client'])\n"
        f"if {record}: folder.write_json('run.json', {{'status': 'interrupted'}})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False)


def test_what_a_killed_process_left_gets_its_name(tmp_path: Path) -> None:
    living = claim_in(tmp_path, "living", ["client"])
    abandoned(tmp_path, "quick", record=True)
    assert [path.name for path in in_the_making(tmp_path)] == [".living-001.partial"]
    assert take_up_abandoned(tmp_path) == [tmp_path / "quick-001"]
    assert not (tmp_path / "quick-001" / RESERVE).exists()
    assert living.finish() == tmp_path / "living-001"


def test_the_next_run_takes_up_what_was_abandoned(tmp_path: Path) -> None:
    abandoned(tmp_path, "quick", record=True)
    assert claim_in(tmp_path, "quick", ["client"]).final == tmp_path / "quick-002"
    abandoned(tmp_path, "named", record=True)
    with pytest.raises(BadInput, match="exists already"):
        claim_exactly(tmp_path / "named-001", [])


def test_a_directory_without_a_record_is_removed_once_it_is_old(tmp_path: Path) -> None:
    abandoned(tmp_path, "quick", record=False)
    (left,) = tmp_path.iterdir()
    assert take_up_abandoned(tmp_path) == []
    assert left.is_dir()
    long_ago = time.time() - YOUNG_S - 1
    os.utime(left, (long_ago, long_ago))
    take_up_abandoned(tmp_path)
    assert not left.exists()


def test_a_disk_that_is_full_from_the_start_leaves_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        claim_exactly(tmp_path / "run", ["client"])
    assert list(tmp_path.iterdir()) == []
