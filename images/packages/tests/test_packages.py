# SPDX-License-Identifier: Apache-2.0
"""Packages for roots: apt's answers as they were recorded, and packages that are made here. No network."""

import subprocess
import tarfile
from pathlib import Path

import pytest
from packages import layer, resolve

SIMULATED = """\
Reading package lists...
The following NEW packages will be installed:
  gcc-12-base libc6 redis-tools
Inst gcc-12-base (12.2.0-14+deb12u1 Debian:12.15/oldstable [amd64])
Inst libgcc-s1 (12.2.0-14+deb12u1 Debian:12.15/oldstable [amd64]) []
Inst libgcrypt20 (1.10.1-3+deb12u1 Debian:12.15/oldstable, Debian-Security:12/oldstable-security [amd64])
Inst adduser (3.134 Debian:12.15/oldstable [all])
Conf gcc-12-base (12.2.0-14+deb12u1 Debian:12.15/oldstable [amd64])
"""
UNMET = """\
Some packages could not be installed. This may mean that you have
requested an impossible situation

The following packages have unmet dependencies:
 libssl-dev : Depends: libssl3 (= 1.0) but 3.0.22-1~deb12u2 is to be installed
E: Unable to correct problems, you have held broken packages.
"""
SHOWN = """\
Package: libc6
Version: 2.36-9+deb12u14
Architecture: amd64
Depends: libgcc-s1, libcrypt1
Description: GNU C Library: Shared libraries
 Contains: text with a colon
SHA256: 0123

Package: virtual
Version: 1

"""


def test_the_plan_of_apt_is_read_whatever_stands_beside_it() -> None:
    plan = resolve.parse_plan(SIMULATED)
    assert [(each.name, each.version, each.architecture) for each in plan] == [
        ("adduser", "3.134", "all"),
        ("gcc-12-base", "12.2.0-14+deb12u1", "amd64"),
        ("libgcc-s1", "12.2.0-14+deb12u1", "amd64"),
        ("libgcrypt20", "1.10.1-3+deb12u1", "amd64"),
    ]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("E: Unable to locate package nosuch\n", "Unable to locate package nosuch"),
        ("E: Version '1' for 'redis-server' was not found\n", "Version '1' for 'redis-server' was not found"),
        (UNMET, "package libssl-dev cannot be installed: it needs libssl3 (= 1.0) but 3.0.22-1~deb12u2 is to be installed"),
        ("", "apt-get gave no reason"),
    ],
)  # fmt: skip
def test_a_refusal_is_one_line(said: str, line: str) -> None:
    assert resolve.refusal(said) == line


def test_what_only_installing_needs_counts_as_installed_unless_it_is_asked_for() -> None:
    text = resolve.status_text(resolve.installing(["redis-server", "adduser=3.134"]))
    assert "Package: debconf\n" in text
    assert "Provides: debconf-2.0\n" in text
    assert "Package: adduser\n" not in text
    assert text.count("Package: ") == text.count("\n\n") + 1 == len(resolve.INSTALLING) - 1


def test_only_whole_stanzas_are_packages() -> None:
    (found,) = resolve.parse_stanzas(SHOWN)
    assert (found.name, found.version, found.architecture, found.sha256) == ("libc6", "2.36-9+deb12u14", "amd64", "0123")


def test_users_and_folders_that_packages_declare() -> None:
    found = layer.declared(
        {
            "usr/lib/sysusers.d/a.conf": '# users\nu store 123:124 "A store" /var/lib/store\nu other - "Other"\ng three\nm x y\n',
            "usr/lib/tmpfiles.d/a.conf": "d /run/store 2755 store store -\nL /x - - - - y\nD! /var/run/other\nd /home/%u\n",
            "usr/lib/other.conf": "u never\n",
        }
    )
    assert [line for *_, line in found.users.values()] == [
        "store:x:123:123::/var/lib/store:/usr/sbin/nologin",
        "other:x:900:900::/:/usr/sbin/nologin",
    ]
    assert [line for _, line in found.groups.values()] == ["store:x:123:", "other:x:900:", "three:x:901:"]
    made = [(entry.name, entry.mode, entry.uid, entry.gid) for entry in found.entries]
    assert made == [("run/store", 0o2755, 123, 123), ("run/other", 0o755, 0, 0)]


def package(folder: Path, name: str, files: dict[str, str], script: str = "") -> Path:
    """A Debian package that is made here."""
    root = folder / name
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    (root / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: n <n@localhost>\nDescription: d\n"
    (root / "DEBIAN" / "control").write_text(control)
    if script:
        (root / "DEBIAN" / "postinst").write_text(script)
        (root / "DEBIAN" / "postinst").chmod(0o755)
    out = folder / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, out], check=True, capture_output=True)
    return out


def test_packages_become_one_archive_without_documentation_and_without_times(tmp_path: Path) -> None:
    one = package(
        tmp_path,
        "one",
        {
            "usr/bin/one": "#!/bin/sh\n",
            "usr/share/doc/one/copyright": "free",
            "usr/share/doc/one/README": "read",
            "usr/share/man/man1/one.1": "man",
            "usr/lib/sysusers.d/one.conf": "u one 200\n",
        },
        "#!/bin/sh\n# adduser in a comment\nchown one /var/lib/one\n",
    )
    two = package(tmp_path, "two", {"usr/bin/two": "2"})
    digests = set()
    for number in range(2):
        out = tmp_path / f"{number}.tar"
        layer.write({"one": one, "two": two}, out, tmp_path / "licences")
        digests.add(out.read_bytes())
    assert len(digests) == 1
    with tarfile.open(tmp_path / "0.tar") as tar:
        members = {member.name: member for member in tar}
        users = tar.extractfile("etc/passwd")
        assert users is not None
        assert users.read() == b"one:x:200:200::/:/usr/sbin/nologin\n"
    files = sorted(name for name, member in members.items() if member.isfile())
    assert files == ["etc/group", "etc/passwd", "usr/bin/one", "usr/bin/two", "usr/lib/sysusers.d/one.conf"]
    assert {(member.mtime, member.uname) for member in members.values()} == {(0, "")}
    assert (tmp_path / "licences" / "one" / "copyright").read_text() == "free"
    assert layer.scripts(one, tmp_path / "control") == ["chown"]


def test_two_packages_with_the_same_file_are_refused(tmp_path: Path) -> None:
    files = {name: package(tmp_path, name, {"etc/same": name}) for name in ("one", "two")}
    with pytest.raises(layer.RecipeError, match="packages one and two both have /etc/same"):
        layer.write(files, tmp_path / "out.tar", tmp_path / "licences")
