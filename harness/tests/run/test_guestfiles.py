# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from sundial.run.guestfiles import GuestFiles
from sundial.run.supervisor import GuestFailed, MachinePanicked


def test_an_error_line_is_found_when_it_is_whole(tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    files = GuestFiles("server", tmp_path)
    assert files.look() == []
    samples.write_text('{"type":"hello","version":1}\n{"type":"batch","step":0}\n[0,1,2,1,0,7,null]\n{"type":"err')
    assert files.look() == []
    assert files.batches == 1
    with samples.open("a") as file:
        file.write('or","step":0,"app":"echo-server","message":"killed by signal 11"}\n')
    assert files.look() == [GuestFailed("server", "echo-server failed: killed by signal 11")]
    assert files.look() == []
    assert files.seen_bytes == samples.stat().st_size


def test_spaces_after_punctuation_do_not_hide_an_error(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text('{"type": "error", "app": "raw-client", "message": "no\\nroute"}\n')
    assert GuestFiles("client", tmp_path).look() == [GuestFailed("client", "raw-client failed: no route")]


def test_an_error_line_that_is_damaged_is_still_an_error(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text('{"type":"error", oops\n')
    (found,) = GuestFiles("client", tmp_path).look()
    assert isinstance(found, GuestFailed)


def test_a_panic_in_the_console_is_told(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("Kernel panic - not syncing: sysrq triggered crash\n")
    expected = MachinePanicked("client", "Kernel panic - not syncing: sysrq triggered crash")
    assert GuestFiles("client", tmp_path).look() == [expected]


def test_that_a_guest_is_alive_is_a_sign_and_no_work(tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    files = GuestFiles("client", tmp_path)
    samples.write_text('{"type":"hello"}\n')
    assert files.look() == []
    seen, told = files.seen_bytes, files.told_bytes
    for end in ('{"type":"al', 'ive"}\n'):
        with samples.open("a") as stream:
            stream.write(end)
        assert files.look() == []
        assert files.told_bytes == told
    assert files.seen_bytes > seen
