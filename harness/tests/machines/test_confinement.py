# SPDX-License-Identifier: Apache-2.0
"""What a QEMU that a guest has taken over can do: a Python stands in its place and tries."""

import json
import os
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sundial.machines.confinement import (
    FIRST_USER,
    NOBODY,
    Holds,
    hand_over,
    holds,
    qemu_user,
    take_back,
    throwaway_user,
)
from sundial.model.catalog import ROOT
from sundial.plan.confinement import FILE_BYTES_MOST, Allowed, policy_text

PROGRAM = ROOT / "harness" / "confine" / "build" / "sundial-confine"
PYTHON = Path("/usr/bin/python3").resolve()
TRY = """
import json, os, resource, signal, socket, sys
outcome = {}
def attempt(name, call):
    try:
        call()
        outcome[name] = "done"
    except OSError as error:
        outcome[name] = error.strerror
places = json.loads(sys.argv[1])
attempt("read own", lambda: open(places["own"] + "/mine").read())
attempt("write own", lambda: open(places["own"] + "/new", "w").write("x"))
attempt("bind own", lambda: socket.socket(socket.AF_UNIX).bind(places["own"] + "/s"))
attempt("read image", lambda: open(places["image"]).read())
attempt("write image", lambda: open(places["image"], "w"))
attempt("read other", lambda: open(places["other"] + "/secret").read())
attempt("write other", lambda: open(places["other"] + "/new", "w"))
attempt("list other", lambda: os.listdir(places["other"]))
attempt("run a program", lambda: os.execv(places["other"] + "/tool", ["tool"]))
attempt("signal", lambda: os.kill(int(places["victim"]), signal.SIGTERM))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", int(places["port"])), 2))
outcome["limit"] = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
outcome["user"] = os.getuid()
print(json.dumps(outcome))
"""


@pytest.fixture(scope="module")
def host() -> Holds:
    if not PROGRAM.is_file():
        pytest.skip("harness/confine is not built")
    return holds(PROGRAM)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "own" / "mine").write_text("mine")
    (tmp_path / "other" / "secret").write_text("secret")
    (tmp_path / "image").write_text("image")
    tool = tmp_path / "other" / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    return {name: str(tmp_path / name) for name in ("own", "other", "image")}


def attack(places: dict[str, str], tmp_path: Path, user: int | None) -> dict[str, Any]:
    policy = tmp_path / "policy"
    own = Path(places["own"])
    policy.write_text(policy_text(Allowed(PYTHON, [Path(places["image"])], [own], user=user)))
    hand_over([own, own / "mine"], user)
    with socket.create_server(("127.0.0.1", 0)) as server, subprocess.Popen(["sleep", "60"]) as victim:
        asked = {**places, "victim": str(victim.pid), "port": str(server.getsockname()[1])}
        environment = {**os.environ, "SUNDIAL_CONFINE": str(policy)}
        command = [str(PROGRAM), "-I", "-S", "-c", TRY, json.dumps(asked)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
        lives = victim.poll() is None
        victim.kill()
    assert done.stderr == ""
    outcome: dict[str, Any] = {**json.loads(done.stdout), "victim lives": lives}
    return outcome


def test_only_its_own(places: dict[str, str], tmp_path: Path, host: Holds) -> None:
    if not host.landlock:
        pytest.skip("the host has no Landlock")
    user = throwaway_user(Path("/proc/self/uid_map").read_text()) if os.geteuid() == 0 and host.user else None
    outcome = attack(places, tmp_path, user)
    for name in ("read own", "write own", "bind own", "read image"):
        assert outcome[name] == "done", name
    for name in ("write image", "read other", "write other", "list other", "run a program"):
        assert outcome[name] == "Permission denied", name
    if host.landlock >= 6:
        assert outcome["victim lives"]
    if host.network or host.landlock >= 4:
        assert outcome["connect"] != "done"
    assert outcome["limit"] == FILE_BYTES_MOST
    assert outcome["user"] == (os.geteuid() if user is None else user)
    take_back(Path(places["own"]), user)
    assert {path.stat().st_uid for path in Path(places["own"]).iterdir()} == {os.geteuid()}


def test_a_root_who_may_not_read_all_files_stays_root(tmp_path: Path, host: Holds) -> None:
    """As in a container of podman or docker."""
    if os.geteuid() != 0 or not host.landlock:
        pytest.skip("a root with Landlock is needed")
    program = tmp_path / "in-a-container"
    program.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-dac_read_search "{PROGRAM}" "$@"\n')
    program.chmod(0o755)
    assert holds(program) == replace(host, user=False)
    assert qemu_user(program) is None


def test_a_policy_that_is_not_understood_starts_nothing(tmp_path: Path, host: Holds) -> None:
    policy = tmp_path / "policy"
    policy.write_text("emulator /bin/true\nallow everything\n")
    environment = {**os.environ, "SUNDIAL_CONFINE": str(policy)}
    done = subprocess.run([PROGRAM], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 126
    assert done.stderr == f"sundial-confine: {policy}: line 2: 'allow' is not known, or not with this value\n"


def test_who_qemu_is() -> None:
    whole, container, tiny = "0 0 4294967295", "0 100000 65536", "0 1000 1"
    assert throwaway_user(whole, 5) == FIRST_USER + 5
    assert throwaway_user(container, 5) == NOBODY
    assert throwaway_user(tiny, 5) is None


def test_without_the_program_nothing_holds(tmp_path: Path) -> None:
    assert holds(tmp_path / "missing") == Holds(0, False, False)
