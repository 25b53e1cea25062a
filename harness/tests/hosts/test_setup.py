# SPDX-License-Identifier: Apache-2.0
"""harness/setup.sh on hosts that lack something: one line says what, and the exit status is 3."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sundial.model.catalog import ROOT

SETUP = ROOT / "harness" / "setup.sh"
TOOLS = (
    *("cat", "cut", "df", "dirname", "flock", "grep", "head", "id", "mkdir", "printf", "rm", "sed", "sh", "sha256sum"),
    *("sort", "tail", "tr", "uname"),
)
BROUGHT_BY_PACKAGES = (
    *("qemu-system-x86_64", "tshark", "gcc", "g++", "ld", "make", "patch", "cpio", "xz", "lz4", "zstd", "rpcgen"),
)
RELEASES = {
    "fedora": 'NAME="Fedora Linux"\nID=fedora\nVARIANT_ID=server\n',
    "almalinux": 'ID="almalinux"\nID_LIKE="rhel centos fedora"\n',
    "arch": "ID=arch\n",
    "nixos": 'ID=nixos\nID_LIKE=""\n',
}
UBUNTU = 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n'


class Host:
    """A checkout with the script, and a PATH with little in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._bin = folder / "bin"
        self._bin.mkdir()
        for tool in TOOLS:
            (self._bin / tool).symlink_to(str(shutil.which(tool)))
        (folder / "harness" / "fabric").mkdir(parents=True)
        (folder / "harness" / "fabric" / "Cargo.toml").write_text('rust-version = "1.95"\n')
        (folder / "harness" / "requirements.lock").write_text("")
        script = SETUP.read_text().replace("/etc/os-release", str(folder / "os-release"))
        (folder / "harness" / "setup.sh").write_text(script)
        (folder / "harness" / "setup.sh").chmod(0o755)
        self.put("cargo", "echo cargo 1.95.0")

    def put(self, name: str, command: str = "exit 0") -> None:
        (self._bin / name).unlink(missing_ok=True)
        (self._bin / name).write_text(f"#!/bin/sh\n{command}\n")
        (self._bin / name).chmod(0o755)

    def set_up(self, part: str, **environment: str) -> tuple[int, str]:
        """Exit status and errors."""
        command = [self.folder / "harness" / "setup.sh", part]
        whole = {"PATH": str(self._bin), **environment}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=whole)
        return done.returncode, done.stderr


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("fedora", "; as root: dnf install qemu-system-x86-core libvirt-daemon-driver-qemu "),
        ("almalinux", "; as root: dnf install qemu-system-x86-core "),
        ("arch", "; as root: pacman -S --needed qemu-system-x86 libvirt "),
        ("nixos", "; Debian's packages are qemu-system-x86 libvirt-daemon "),
    ],
)
def test_packages_are_named_as_the_distribution_names_them(host: Host, release: str, words: str) -> None:
    (host.folder / "os-release").write_text(RELEASES[release])
    host.put("gcc")
    status, said = host.set_up("packages")
    assert status == 3
    assert len(said.splitlines()) == 1
    assert said.startswith("setup: missing on this host: qemu-system-x86_64 tshark g++ ld ")
    assert words in said


@pytest.mark.parametrize("release", RELEASES)
def test_set_up_goes_on_where_all_is_installed_without_dpkg(host: Host, release: str) -> None:
    (host.folder / "os-release").write_text(RELEASES[release])
    for program in BROUGHT_BY_PACKAGES:
        host.put(program)
    assert host.set_up("packages") == (0, "")


@pytest.mark.parametrize(
    ("processor", "release", "words"),
    [
        ("aarch64", "ID=debian\n", "this host is aarch64, and images of guests are built on x86-64 hosts"),
        ("x86_64", UBUNTU, "this host has Ubuntu's packages, and images of guests are made from Debian's"),
        (
            "x86_64",
            'ID=linuxmint\nID_LIKE="ubuntu debian"\n',
            "this host has Ubuntu's packages, and images of guests are",
        ),
    ],
)
def test_host_that_cannot_build_images_is_named_before_anything_is_installed(
    host: Host, processor: str, release: str, words: str
) -> None:
    host.put("uname", f"echo {processor}")
    (host.folder / "os-release").write_text(release)
    host.put("apt-get", f"touch {host.folder}/asked")
    status, said = host.set_up("packages")
    assert status == 3
    assert said.startswith(f"setup: {words}")
    assert said.endswith(
        f": copy images/out of an x86-64 host with Debian to {host.folder}/images, or set WITH_IMAGES=0\n"
    )
    assert len(said.splitlines()) == 1
    assert not (host.folder / "asked").exists()
    for program in BROUGHT_BY_PACKAGES:
        host.put(program)
    assert host.set_up("packages", WITH_IMAGES="0") == (0, "")
    (host.folder / "images/out").mkdir(parents=True)
    assert host.set_up("packages") == (0, "")


def test_rust_that_is_too_old_is_named_before_anything_is_installed(host: Host) -> None:
    host.put("cargo", "echo cargo 1.63.0")
    status, said = host.set_up("packages")
    assert (status, said.splitlines()) == (3, [
        "setup: cargo is 1.63.0: install Rust 1.95 or newer (by rustup; on Debian 12 and 13 also by the packages "
        "cargo-web and rustc-web)"
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("offered", "taken"),
    [
        ({"cargo": "0.66.0+ds1-1", "cargo-web": "1.96.0+dfsg1-1~deb12u2"}, "cargo-web"),
        ({"cargo": "1.97.0+dfsg1-1", "cargo-web": "1.96.0+dfsg1-1"}, "cargo"),
    ],
)
def test_rust_that_is_missing_is_installed_from_the_distribution(
    host: Host, offered: dict[str, str], taken: str
) -> None:
    if shutil.which("dpkg") is None:
        pytest.skip("dpkg is not installed")
    (host.folder / "bin" / "dpkg").symlink_to(str(shutil.which("dpkg")))
    (host.folder / "bin" / "cargo").unlink()
    host.put("id", "echo 0")
    host.put("dpkg-query", "exit 1")
    versions = "".join(f"{name}) echo 'Version: {version}' ;; " for name, version in offered.items())
    host.put("apt-cache", f"for name; do :; done\ncase $name in {versions} esac")
    installs = f'case "$*" in *{taken}*) cp {host.folder}/new {host.folder}/bin/cargo ;; esac'
    host.put("apt-get", f'echo "$*" >>{host.folder}/asked\n{installs}')
    (host.folder / "bin" / "cp").symlink_to(str(shutil.which("cp")))
    (host.folder / "bin" / "env").symlink_to(str(shutil.which("env")))
    (host.folder / "new").write_text("#!/bin/sh\necho cargo 1.96.0\n")
    (host.folder / "new").chmod(0o755)
    assert host.set_up("packages")[0] == 0
    asked = (host.folder / "asked").read_text()
    assert f" {taken} " in asked
    assert "qemu-system-x86" in asked


def test_full_disk_is_the_reason_that_is_given(host: Host) -> None:
    host.put("df", "printf 'Avail\\n   34\\n'")
    assert host.set_up("python") == (
        3,
        "setup: making the Python environment in .venv\n"
        "setup: the disk is full: the Python environment takes 600 MiB, and 34 MiB are free in "
        f"{host.folder}\n",
    )


def test_shared_cache_is_not_exchanged_while_a_set_up_copies_from_it(host: Host, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "images").mkdir(parents=True)
    (cache / "snapshots").mkdir()
    for tool in ("mv", "mktemp", "chmod"):
        (host.folder / "bin" / tool).symlink_to(str(shutil.which(tool)))
    (host.folder / "sundial").symlink_to(host.folder / "bin" / "tshark")
    host.put("tshark")
    locked = f"flock --nonblock --exclusive --conflict-exit-code 9 {cache}/.lock true"
    host.put("cp", f'{locked}; echo $? >>{tmp_path}/copies; exec {shutil.which("cp")} "$@"')
    assert host.set_up("images", SUNDIAL_CACHE=str(cache))[0] == 0
    assert (tmp_path / "copies").read_text().splitlines()[:2] == ["9", "9"]
    assert (cache / "images").is_dir()
