# SPDX-License-Identifier: Apache-2.0
"""Workers that a command starts: what is refused, and ssh to this host; no machine is booted."""

from __future__ import annotations

import getpass
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput, HostLacks
from sundial.machines.waiting import wait_until
from sundial.plan.request import Silence
from sundial.sweep.cluster import starting
from sundial.sweep.cluster.dask import distributed
from sundial.sweep.cluster.serve import make_certs
from sundial.sweep.place import Place, Started, place_of
from tests.sweep.bench import sweeping
from tests.sweep.side import FOLDER, MAKING
from tests.sweep.test_dask import free_port

pytestmark = pytest.mark.filterwarnings("default")
GRID: dict[str, Any] = {
    "topology": "two-hosts-wan",
    "axes": {"loss": {"key": "loss", "values": ["0 %", "5 %"]}},
    "seeds": "1..2",
    "check": "0 %",
}


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    make_certs(tmp_path / "certs")
    return tmp_path / "certs"


def test_places_of_workers_that_a_command_starts(certs: Path) -> None:
    hosts = ("a.example", "me@b", "localhost")
    assert place_of("ssh:a.example,me@b,localhost,me@b", certs) == Place(None, None, certs, Started("ssh", 3, hosts))
    assert place_of("ssh:localhost").started == Started("ssh", 1, ("localhost",))
    assert place_of("slurm:20", certs) == Place(None, None, certs, Started("slurm", 20))
    assert place_of("k8s:3").started == Started("k8s", 3)
    assert not place_of("k8s:3").is_here
    assert place_of("local:3").is_here


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssh:a.example", "--certs: is missing for ssh:"),
        ("ssh:localhost,a.example", "--certs: is missing for ssh:"),
        ("slurm:20", "--certs: is missing for slurm:"),
        ("slurm", "'slurm' is not a place for runs"),
        ("k8s:0", "'k8s:0' is not a place for runs"),
        ("ssh:", "'ssh:' is not a place for runs"),
        ("ssh:a b", "'ssh:a b' is not a place for runs"),
        ("ssh:-oProxyCommand=x", "'ssh:-oProxyCommand=x' is not a place for runs"),
    ],
)
def test_places_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        place_of(text)
    assert words in refused.value.message


@pytest.mark.parametrize(("kind", "package"), starting.PACKAGES.items())
def test_a_package_that_is_missing_is_named(kind: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "distributed", lambda: None)
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    with (
        pytest.raises(HostLacks, match=f"{package} is not installed") as lacks,
        starting.scheduler_at(Place(None, None, None, Started(kind, 1))),
    ):
        pass
    assert "pip install" in str(lacks.value.hint)


@pytest.fixture
def needs_dask() -> None:
    try:
        distributed()
    except HostLacks as lacks:
        pytest.skip(f"{lacks.message}: {lacks.hint}")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A queue of two jobs a submission that begins each at once; the folder of their scripts."""
    programs = tmp_path / "programs"
    programs.mkdir()
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    begin = f'cp "$1" {jobs}/$$ && (setsid sh "$1" >{jobs}/$$.log 2>&1 &) && echo "Submitted batch job $$"'
    for name, line in (("sbatch", begin), ("scancel", "true")):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return jobs


@pytest.mark.night
@pytest.mark.timeout(600)
def test_jobs_of_slurm_make_runs(
    needs_dask: None, slurm: Path, tmp_path: Path, certs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask

    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setattr(starting, "PRELOAD", "tests.sweep.fake_preload")
    place = place_of("slurm:2", certs)
    with dask.config.set({"jobqueue.slurm.cores": 4, "jobqueue.slurm.memory": "8 GB", "jobqueue.slurm.queue": "night"}):
        swept = sweeping(tmp_path, GRID, place=place).perform(MAKING, Silence())
    assert (swept.status, swept.counts.made, swept.counts.lost) == (0, 4, 0)
    scripts = [path.read_text() for path in slurm.iterdir() if path.suffix != ".log"]
    assert len(scripts) == 2
    assert all("#SBATCH -p night" in script for script in scripts)


@pytest.mark.night
def test_a_host_without_slurm_is_named(needs_dask: None, certs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv("PATH", "/nowhere")
    with (
        pytest.raises(HostLacks, match="sbatch is not installed"),
        starting.scheduler_at(Place(None, None, certs, Started("slurm", 1))),
    ):
        pass


@pytest.mark.night
def test_the_operator_takes_what_it_is_given(needs_dask: None) -> None:
    operator = pytest.importorskip("dask_kubernetes.operator")
    assert {"name", "n_workers", "worker_command"} <= set(inspect.signature(operator.KubeCluster).parameters)


@pytest.fixture
def localhost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A server of ssh that this user may log in to as `localhost`; its log."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("sshd is not installed")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # it asks for it
    home, port = tmp_path / "home", free_port()
    own = home / ".ssh"
    own.mkdir(parents=True, mode=0o700)
    for name in ("host", "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", own / name], check=True)
    (own / "authorized_keys").write_bytes((own / "id_ed25519.pub").read_bytes())
    (own / "known_hosts").write_text(f"[localhost]:{port} {(own / 'host.pub').read_text()}")
    client = ("Host localhost", f"Port {port}", f"User {getpass.getuser()}", f"IdentityFile {own}/id_ed25519")
    (own / "config").write_text("".join(f"{line}\n" for line in client))
    settings = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": own / "host", "StrictModes": "no", "UsePAM": "no",
        "AuthorizedKeysFile": own / "authorized_keys", "PidFile": "none", "PermitRootLogin": "yes",
    }  # fmt: skip
    (own / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    log = tmp_path / "sshd.log"
    server = subprocess.Popen([program, "-D", "-f", own / "sshd_config", "-E", log])
    monkeypatch.setenv("HOME", str(home))
    wait_until(lambda: log.is_file() and "listening" in log.read_text(), seconds=60, what="sshd")
    yield log
    server.terminate()
    server.wait(60)


@pytest.mark.night
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tls", [False, True])
def test_runs_on_a_host_that_ssh_reaches(
    needs_dask: None, localhost: Path, tmp_path: Path, certs: Path, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    pytest.importorskip("asyncssh")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setattr(starting, "PRELOAD", "tests.sweep.fake_preload")
    place = place_of("ssh:localhost", certs if tls else None)
    swept = sweeping(tmp_path, GRID, place=place).perform(MAKING, Silence())
    assert (swept.status, swept.counts.made, swept.counts.lost) == (0, 4, 0)
    assert len({row.kept.result.host["worker"] for row in swept.rows}) == 1
    assert "Accepted publickey" in localhost.read_text()


@pytest.mark.night
def test_a_host_that_ssh_does_not_reach_is_an_error_in_words(
    needs_dask: None, localhost: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("asyncssh")
    config = Path(os.environ["HOME"]) / ".ssh" / "config"
    config.write_text(re.sub(r"Port \d+", "Port 1", config.read_text()))
    with pytest.raises(HostLacks, match=r"ssh started no workers: .*Connect call failed"):
        sweeping(tmp_path, GRID, place=place_of("ssh:localhost")).perform(MAKING, Silence())
