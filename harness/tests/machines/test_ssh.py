# SPDX-License-Identifier: Apache-2.0
"""Options of ssh: of our own calls, and of libvirt's."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from sundial.errors import HostLacks
from sundial.machines.ssh import Ssh, hint
from sundial.model.daemon import parse_host

URI = parse_host("qemu+ssh://me@far:2222/session?keyfile=/a%20b/100%25&known_hosts=/it%27s/here")


@pytest.fixture
def echoed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ssh that prints its arguments, a line each."""
    program = tmp_path / "ssh"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def test_nothing_is_asked_and_names_are_taken_as_they_are(echoed: Path) -> None:
    words = Ssh(URI).command("-O", "check")
    assert words[0] == str(echoed)
    assert words[-7:] == ["check", "-p", "2222", "-l", "me", "--", "far"]
    settings = [word for before, word in pairwise(words) if before == "-o"]
    assert 'IdentityFile="/a b/100%%"' in settings
    assert 'UserKnownHostsFile="/it\'s/here"' in settings
    assert "BatchMode=yes" in settings
    plain = Ssh(parse_host("qemu+ssh://far/system")).command()
    assert (plain[-2:], "-p" in plain, "-l" in plain, "IdentityFile" in str(plain)) == (["--", "far"], *[False] * 3)


def test_ssh_itself_reads_them_so() -> None:
    words = [*Ssh(URI).command(), "true"]
    read = subprocess.run([words[0], "-G", *words[1:]], capture_output=True, text=True, check=True, timeout=30).stdout
    lines = read.splitlines()
    assert {"user me", "hostname far", "port 2222", "batchmode yes"} <= set(lines)
    assert "identityfile /a b/100%%" in lines
    assert "userknownhostsfile /it's/here" in lines


def test_libvirts_ssh_has_the_same_options_and_joins_the_connection(echoed: Path, tmp_path: Path) -> None:
    ssh = Ssh(URI, control=tmp_path / "it's open")
    program = ssh.write_program(tmp_path / "for libvirt")
    said = subprocess.run([program, "-p", "2222", "--", "far", "a b"], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == [*ssh.options(), "-p", "2222", "--", "far", "a b"]
    assert said.stdout.splitlines()[-7:-5] == ["-S", str(tmp_path / "it's open")]
    assert program.stat().st_mode & 0o777 == 0o700


def test_without_ssh_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostLacks, match="ssh is not installed"):
        Ssh(URI).command()


def test_what_ssh_says_has_a_remedy() -> None:
    assert "ssh -p 2222 me@far" in str(hint("Host key verification failed.", URI))
    assert "ssh -p 2222 me@far" in str(hint("me@far: Permission denied (publickey).", URI))
    assert hint("Connection refused", URI) is None
