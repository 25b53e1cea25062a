# SPDX-License-Identifier: Apache-2.0
"""What guests and files say is shown, and steers no terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sundial.cli.talk import print_table, show_error
from sundial.errors import BadInput, Problem, RunFailed
from sundial.machines.console import tail
from sundial.printable import printable, printable_bytes, printable_lines
from sundial.run.guestfiles import GuestFiles
from sundial.run.supervisor import GuestFailed

HARNESS = Path(__file__).parents[1]
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnorw\u2028\u200b\x00\x7f\r"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnorw\u2028\u200b\x00\x7f\r"


def harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.splitlines())


def test_controls_are_escapes_and_letters_stay() -> None:
    assert printable(HOSTILE) == SHOWN
    assert printable("Kędziera 10 µs 日本 -> é") == "Kędziera 10 µs 日本 -> é"
    assert printable("a\nb\tc") == r"a\nb\tc"
    assert printable_lines("a\n\x1bb\n") == "a\n\\x1bb\n"
    assert printable_bytes(b"a\xff\x1b\xc3\xa9") == r"a\xff\x1bé"
    assert printable("\ud800\U000e0001") == r"\ud800\U000e0001"


def test_whatever_code_point_is_there_comes_out_printable() -> None:
    for start in range(0, 0x110000, 0x1000):
        assert printable("".join(map(chr, range(start, start + 0x1000)))).isprintable()


def test_errors_are_printable_for_the_terminal_and_for_json(capsys: pytest.CaptureFixture[str]) -> None:
    bad = BadInput.many([Problem(HOSTILE, HOSTILE, f"{HOSTILE}.yaml", 3, HOSTILE), Problem("fine")])
    failed = RunFailed(HOSTILE, machine="client", console_tail=[HOSTILE], hint=HOSTILE)
    for error in (bad, failed, bad.within(field=HOSTILE)):
        assert harmless(str(error))
        assert "\x1b" not in error.message
        assert all(harmless(text) for text in _texts(error.to_json()))
        show_error(error, as_json=False)
    print_table([["NAME", "WHAT"], [HOSTILE, "x"]])
    out, err = capsys.readouterr()
    assert harmless(out)
    assert harmless(err)
    assert "sundial: fine" in err


def test_a_hostile_guest_is_quoted(tmp_path: Path) -> None:
    line = {"type": "error", "app": HOSTILE, "message": HOSTILE}
    (tmp_path / "samples.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "console.log").write_bytes(b"one\n" + HOSTILE.encode("utf-8", "replace") + b"\xff\x9b2J\n")
    (found,) = GuestFiles("client", tmp_path).look()
    assert isinstance(found, GuestFailed)
    assert RunFailed(found.message, machine=found.machine).message.isprintable()
    said = tail(tmp_path / "console.log")
    assert said[0] == "one"
    assert all(text.isprintable() for text in said)


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "--pcap", f"evil{HOSTILE.replace(chr(0), '')}.pcap", "--protocol", "sunrpc-udp"),
        ("topology", "check", "hostile.yaml"),
        ("open", "\x1b[31mrun\u202e"),
        ("run", "quickstart", "--set", "\x1b[31mkey=1"),
    ],
)
def test_hostile_names_and_keys(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "hostile.yaml").write_text('description: x\n"\\e[31mred\\u202e": 1\nmachines: {"\\e[2J": {}}\n')
    done = subprocess.run(
        [sys.executable, "-m", "sundial.cli", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HARNESS)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert harmless(done.stderr.decode())
    assert b"\\x1b" in done.stderr


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
