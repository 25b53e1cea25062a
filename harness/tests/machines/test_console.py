# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from sundial.machines.console import PANIC_LINES, PanicWatch, last_words, qemu_words, tail


def test_last_lines_without_control_characters(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_bytes(b"one\r\n\r\n\x1b[1;31mtwo\x1b[0m\r\nthree\x07\r\n")
    assert tail(log, 2) == ("two", "three")
    assert tail(log) == ("one", "two", "three")


def test_a_log_that_is_missing_or_not_text_is_no_error(tmp_path: Path) -> None:
    assert tail(tmp_path / "none") == ()
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    assert all(isinstance(line, str) for line in tail(tmp_path / "binary"))


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text("".join(f"line {n}\n" for n in range(100_000)))
    assert tail(log, 1) == ("line 99999",)


def test_a_panic_is_found_even_across_two_looks(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    watch = PanicWatch(log)
    assert watch.look() is None
    log.write_bytes(b"[    1.0] runner up\r\n[    2.0] Kernel panic - not ")
    assert watch.look() is None
    with log.open("ab") as file:
        file.write(b"syncing: sysrq triggered crash\r\nCPU: 0")
    assert watch.look() == "Kernel panic - not syncing: sysrq triggered crash"
    assert watch.look() == "Kernel panic - not syncing: sysrq triggered crash"
    assert watch.seen_bytes == log.stat().st_size


def test_sss_core_gives_up_too(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_bytes(
        b"n1: up\r\nPANIC: page fault at 0x8 in task echo-server (3)\r\nrip ffffffff80101234 task_page+0x14\r\n"
    )
    assert PanicWatch(log).look() == "PANIC: page fault at 0x8 in task echo-server (3)"


def test_the_last_words_of_a_kernel_begin_where_it_gave_up(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    trace = [f"  #{number} ffffffff8010{number:04x} function+0x10" for number in range(30)]
    log.write_text("\n".join(["up", "working", "PANIC: no memory", *trace, ""]))
    assert last_words(log) == ("PANIC: no memory", *(line for line in trace))
    assert len(tail(log)) < len(trace)
    log.write_text("\n".join(["PANIC: loop", *["again"] * 1000]))
    assert len(last_words(log)) == PANIC_LINES
    log.write_text("all is well\n")
    assert last_words(log) == ("all is well",)


def test_an_ordinary_log_is_no_panic(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text("do not panic\nno PANIC\nkernel panic is what we do not have\n")
    watch = PanicWatch(log)
    assert watch.look() is None


LIBVIRT_LOG = """\
2026-11-27 02:45:01.123+0000: starting up libvirt version: 9.0.0, package: 9.0.0-4, qemu version: 7.2.0
LC_ALL=C \\
/usr/bin/qemu-system-x86_64 \\
-name guest=sundial-1-client,debug-threads=on \\
-msg timestamp=on
"""


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", ""),
        ("2026-11-27T02:45:02.000001Z qemu-system-x86_64: -m: no\n", "qemu-system-x86_64: -m: no"),
        ("sundial-clock: the ring is broken\n", "sundial-clock: the ring is broken"),
        ("**\nERROR:object.c:715: not reached\nBail out!\n", "**; ERROR:object.c:715: not reached; Bail out!"),
        ("malloc(): corrupted top size\n2026-11-27 02:45:03.001+0000: shutting down, reason=crashed\n",
         "malloc(): corrupted top size"),
    ],
)  # fmt: skip
def test_the_words_of_qemu_are_all_but_what_libvirt_writes(tmp_path: Path, said: str, words: str) -> None:
    log = tmp_path / "client.log"
    log.write_text(LIBVIRT_LOG + said)
    assert qemu_words(log) == words
