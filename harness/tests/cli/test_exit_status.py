# SPDX-License-Identifier: Apache-2.0
"""Exit status 1 is a mismatch and nothing else; whatever happens, the user sees one line and no traceback."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from sundial import faults
from sundial.cli import rooms
from sundial.cli.main import status_of, sundial
from sundial.cli.talk import show_error
from sundial.errors import BadInput, HostLacks, InternalError, RunFailed, VerificationFailed, from_host
from sundial.model.catalog import ROOT

Call = Callable[..., Result]
LAUNCH = [str(ROOT / "sundial")]


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "log"
    monkeypatch.setattr(rooms, "LOGS", folder)
    return folder


def stumble(error: BaseException) -> Callable[..., Any]:
    def room(*arguments: object, **named: object) -> Any:
        raise error

    return room


UNEXPECTED = [
    (ZeroDivisionError("division"), 70),
    (RecursionError("deep"), 70),
    (OverflowError("int too big"), 70),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), 70),
    (OSError(errno.ENOSPC, "No space left on device", "/x"), 4),
    (OSError(errno.EDQUOT, "Quota exceeded", "/x"), 4),
    (PermissionError(errno.EACCES, "Permission denied", "/x"), 3),
    (OSError(errno.EROFS, "Read-only file system", "/x"), 3),
    (OSError(errno.EMFILE, "Too many open files"), 3),
    (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300), 2),
    (MemoryError(), 3),
]


@pytest.mark.parametrize(("error", "status"), UNEXPECTED, ids=lambda value: type(value).__name__)
def test_what_nobody_expected(
    call: Call, make_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    make_run("quick-1")
    monkeypatch.setattr(rooms, "verify_run", stumble(error))
    result = call("verify", "latest")
    assert result.exit_code == status
    assert "Traceback" not in result.output
    assert result.stderr.splitlines()[0].startswith("sundial: ")


def test_the_traceback_of_a_fault_is_in_the_log(
    call: Call, make_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, logs: Path
) -> None:
    make_run("quick-1")
    monkeypatch.setattr(rooms, "verify_run", stumble(ZeroDivisionError("division")))
    result = call("verify", "latest", "--json")
    (log,) = logs.iterdir()
    assert json.loads(result.stdout)["log"] == str(log)
    assert result.stderr.splitlines() == [
        "sundial: internal error: ZeroDivisionError: division",
        f"hint: please report it with {log}",
    ]
    assert "in stumble" in log.read_text() or "in room" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_logs_do_not_pile_up(logs: Path) -> None:
    for number in range(faults.KEPT + 5):
        logs.mkdir(exist_ok=True)
        (logs / f"2000010{number:02d}.log").touch()
    faults.known(ValueError("x"), logs)
    assert len(list(logs.iterdir())) == faults.KEPT


def test_a_log_that_cannot_be_written_goes_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults.tempfile, "gettempdir", lambda: str(tmp_path))
    blocked = tmp_path / "file"
    blocked.touch()
    error = faults.known(ValueError("x"), blocked / "log")
    assert isinstance(error, InternalError)
    assert error.log is not None
    assert Path(error.log).parent == tmp_path


def test_a_known_error_stays_what_it_is(tmp_path: Path) -> None:
    known = BadInput("wrong")
    assert faults.known(known, tmp_path) is known
    assert from_host(OSError(errno.ENOENT, "gone", "/x")) is None
    assert not list(tmp_path.glob("*.log"))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (click.UsageError("no such option"), 2),
        (click.FileError("x"), 2),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
        (VerificationFailed("mismatch"), 70),
        (ValueError("x"), 70),
    ],
)
def test_what_reaches_the_top(error: BaseException, status: int) -> None:
    """Errors outside of a verb: an own error there would be a fault too, but for what click means by its own."""

    @click.command()
    def command() -> None:
        raise error

    expected = error.exit_code if isinstance(error, VerificationFailed) else status
    assert status_of(command, []) == expected


def test_classes_of_errors_have_their_own_status() -> None:
    statuses = {kind: kind.exit_code for kind in (VerificationFailed, BadInput, HostLacks, RunFailed, InternalError)}
    assert sorted(statuses.values()) == [1, 2, 3, 4, 70]
    assert "70 internal error of sundial" in (sundial.help or "")


def test_a_reader_that_leaves_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*LAUNCH, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("module", ["sitecustomize", "click"])
def test_ctrl_c_while_python_starts(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt\n")
    harness = ROOT / "harness"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{harness}"}
    launch = [sys.executable, "-P", "-S", str(harness / "sundial" / "cli" / "__main__.py")]  # as ./sundial does
    done = subprocess.run([*launch, "ls"], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "sundial: interrupted\n")


def test_a_line_number_is_no_picture(capsys: pytest.CaptureFixture[str]) -> None:
    """`:100:` is one in the markup of rich."""
    show_error(BadInput("is unknown", file="mine.yaml", line=100), as_json=False)
    assert ":100: is unknown" in capsys.readouterr().err
