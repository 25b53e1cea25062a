# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from sundial.machines.waiting import ManualClock
from sundial.run.guestfiles import (
    BYTES_PER_S,
    CONSOLE_BYTES,
    SAMPLES_BYTES,
    WORDS_MOST,
    Allowance,
    GuestFiles,
    look_at_all,
)
from sundial.run.supervisor import GuestExceeded, GuestFailed, MachinePanicked, MachineStopped


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


def test_the_first_program_that_failed_is_kept(tmp_path: Path) -> None:
    files = GuestFiles("client", tmp_path)
    lines = [(0, "echo-client"), (4, "raw-client"), (1, "iperf3")]
    text = "".join(
        f'{{"type":"step","step":{n},"app":"{app}","status":{status}}}\n' for n, (status, app) in enumerate(lines)
    )
    (tmp_path / "samples.jsonl").write_text('{"type":"step", oops\n' + text)
    assert files.look() == []
    assert files.failed_step == "raw-client ended with status 4"


def test_an_error_line_that_is_damaged_is_still_an_error(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text('{"type":"error", oops\n')
    (found,) = GuestFiles("client", tmp_path).look()
    assert isinstance(found, GuestFailed)


def test_a_client_that_finds_no_port_has_failed_in_these_words(tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    line = '{"type":"binding","step":0,"app":"echo-client","start":1,"end":9,"ok":%s,"attempts":7,"port":0%s}\n'
    files = GuestFiles("client", tmp_path)
    samples.write_text(line % ("true", ""))
    assert files.look() == []
    with samples.open("a") as stream:
        stream.write(line % ("false", ',"error":"RPC: Timed out"'))
    expected = "echo-client failed: no answer for the server's port after 7 requests: RPC: Timed out"
    assert files.look() == [GuestFailed("client", expected, gave_up=True)]
    with samples.open("a") as stream:
        stream.write('{"type":"step","step":0,"app":"echo-client","status":1}\n')
    assert files.look() == []
    assert files.failed_step == expected


def test_a_client_that_may_fail_goes_on_without_a_port(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text('{"type":"binding","app":"echo-client","ok":false}\n')
    assert look_at_all([GuestFiles("client", tmp_path)], may_give_up=True) == []


def test_the_first_error_is_reported_and_the_first_of_a_client_that_gave_up(tmp_path: Path) -> None:
    """However many lines there are, and whenever they are read."""
    samples = tmp_path / "samples.jsonl"
    files = GuestFiles("client", tmp_path)
    gave_up, error = (
        '{"type":"binding","app":"echo-client","ok":false}\n',
        '{"type":"error","app":"%s","message":"m"}\n',
    )
    samples.write_text(gave_up + gave_up + error % "first" + error % "second")
    assert [(bad.message.split()[0], bad.gave_up) for bad in files.look() if isinstance(bad, GuestFailed)] == [
        ("echo-client", True),
        ("first", False),
    ]
    with samples.open("a") as stream:
        stream.write(error % "third")
    assert files.look() == []


def test_a_panic_in_the_console_is_told(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("Kernel panic - not syncing: sysrq triggered crash\n")
    expected = MachinePanicked("client", "Kernel panic - not syncing: sysrq triggered crash")
    assert GuestFiles("client", tmp_path).look() == [expected]


@pytest.mark.parametrize(
    ("text", "stopped"),
    [
        ("[    4.201] reboot: Power down\r\n", "Power down"),
        ("noise\nreboot: Restarting system\n", "Restarting system"),
        ("[   14.201000] reboot: System halted", "System halted"),
        ("a script says: reboot: Power down\n", None),
        ("reboot: Power up\n", None),
    ],
)
def test_the_words_of_a_kernel_that_a_program_stopped_are_found(tmp_path: Path, text: str, stopped: str | None) -> None:
    (tmp_path / "console.log").write_text(text)
    expected = [] if stopped is None else [MachineStopped("client", stopped)]
    assert GuestFiles("client", tmp_path).look() == expected


def test_that_a_guest_is_alive_is_a_sign(tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    files = GuestFiles("client", tmp_path)
    samples.write_text('{"type":"hello"}\n')
    assert files.look() == []
    seen = files.seen_bytes
    for end in ('{"type":"al', 'ive"}\n'):
        with samples.open("a") as stream:
            stream.write(end)
        assert files.look() == []
    assert files.seen_bytes > seen


def test_limits_are_named(tmp_path: Path) -> None:
    allowance = Allowance(0.0)
    assert allowance.excess(SAMPLES_BYTES, CONSOLE_BYTES, 0.5) is None
    assert allowance.excess(SAMPLES_BYTES + 1, 0, 0.6) == "it wrote more than 2 GiB to samples"
    assert allowance.excess(0, CONSOLE_BYTES + 1, 0.6) == "it wrote more than 64 MiB to its console"


def test_a_rate_is_measured_over_a_second_or_more() -> None:
    allowance = Allowance(10.0)
    assert allowance.excess(4 * BYTES_PER_S, 0, 10.9) is None, "too early to tell"
    assert allowance.excess(4 * BYTES_PER_S, 0, 14.0) is None, "a host that slept is not a flood"
    said = allowance.excess(7 * BYTES_PER_S, 0, 15.5)
    assert said == "it writes 128 MiB a second to samples and console; allowed: 64"


@pytest.mark.parametrize("file", ["samples.jsonl", "console.log"])
def test_a_machine_that_fills_the_disk_has_failed(tmp_path: Path, file: str) -> None:
    clock = ManualClock()
    files = GuestFiles("client", tmp_path, clock)
    assert files.look() == []
    with (tmp_path / file).open("wb") as stream:
        os.truncate(stream.fileno(), CONSOLE_BYTES * 3)
    clock.pause(1.0)
    assert files.look() == [GuestExceeded("client", files.excess or "")]


def test_a_line_without_end_takes_no_memory(tmp_path: Path) -> None:
    files = GuestFiles("client", tmp_path, ManualClock())
    with (tmp_path / "samples.jsonl").open("wb") as stream:
        os.truncate(stream.fileno(), 32 << 20)
    assert files.look() == [GuestExceeded("client", "it wrote a line of more than 1 MiB to samples")]
    assert len(files._samples._rest) <= 1 << 20


def test_hostile_error_lines(tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    samples.write_text('{"type":"error","message":' + "[" * 100_000 + "\n")
    files = GuestFiles("client", tmp_path)
    assert files.look() == [GuestFailed("client", "a program failed with a malformed error line")]
    samples.write_text('{"type":"error","app":"x","message":"' + "m" * 100_000 + '"}\n')
    (found,) = GuestFiles("client", tmp_path).look()
    assert isinstance(found, GuestFailed)
    assert len(found.message) < WORDS_MOST + 10
