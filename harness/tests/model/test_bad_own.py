# SPDX-License-Identifier: Apache-2.0
"""Own kernels, initrds, command lines and files: what a topology may have, and one line for each mistake."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.check_own import root_too_large
from sundial.model.images import IMAGES
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.model.recorded import recorded_network
from sundial.model.topology import Topology
from tests.model.documents import refusal
from tests.model.hosts import TWO_HOSTS
from tests.model.kernels import FILE, bz_image, elf, newc

LAN = """\
segments:
  lan: {kind: hub, rate: 10 Mbit/s, cable_delay: 25 ns, ports: ["client:eth0", "server:eth0"]}
"""
PATHS = "a path on this host, from the folder of the file that names it"
OPTIONS = "an option of the kernel's configuration without CONFIG_, such as NFS_DISABLE_UDP_SUPPORT"
LAID = "an absolute path such as '/etc/motd', without '.', '..' or '//', not below /dev, /proc, /sys"
MODES = "four octal digits in quotes, such as '0644' or '0755'"
KERNELS = "an ELF file for x86-64 with a PVH note, or a bzImage"
INITRDS = "a cpio archive (newc), plain or compressed with gzip, bzip2, lzma, xz, lzo, lz4 -l or zstd"


def write(folder: Path, client: str = "", defaults: str = "") -> Path:
    """A topology whose client, from line 6 on, and defaults, from line 11 on, have these lines."""
    own = "".join(f"    {line}\n" for line in client.splitlines())
    common = "".join(f"  {line}\n" for line in defaults.splitlines())
    text = TWO_HOSTS.replace("  server:\n", f"{own}  server:\n")
    path = folder / "net.yaml"
    path.write_text(text + LAN + (f"defaults:\n{common}" if common else ""))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files to name."""
    (tmp_path / "bzImage").write_bytes(bz_image())
    (tmp_path / "vmlinux").write_bytes(elf())
    (tmp_path / "program").write_bytes(elf(notes=b""))
    archive = newc({"init": (FILE, b"#!/bin/sh\n")})
    (tmp_path / "root.cpio").write_bytes(archive)
    (tmp_path / "root.cpio.gz").write_bytes(gzip.compress(archive))
    (tmp_path / "motd").write_text("hello\n")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 25 << 20)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    return tmp_path


def test_what_is_written_is_what_each_machine_gets(folder: Path) -> None:
    path = write(
        folder,
        'kernel: vmlinux\nfiles:\n  /etc/motd: {from: motd, mode: "4755"}\n  /a/b: {content: ""}',
        'kernel: bzImage\ninitrd: root.cpio.gz\ncmdline: " loglevel=7 x=1 "\nfiles: {/etc/motd: {content: all}, /z: {content: z}}',
    )
    client, server = build_network(load_topology(str(path))).nodes
    assert (client.kernel, server.kernel) == (str(folder / "vmlinux"), str(folder / "bzImage"))
    assert client.initrd == server.initrd == str(folder / "root.cpio.gz")
    assert client.cmdline == "loglevel=7 x=1"
    laid = {name: (file.source, file.content, file.mode) for name, file in client.files}
    assert laid == {
        "/a/b": (None, "", 0o644),
        "/etc/motd": (str(folder / "motd"), None, 0o4755),
        "/z": (None, "z", 0o644),
    }
    assert [name for name, _ in client.files] == sorted(laid)
    assert [(name, file.content) for name, file in server.files] == [("/etc/motd", "all"), ("/z", "z")]
    assert client.boots_its_own


def test_machines_of_other_topologies_have_nothing_of_their_own() -> None:
    for node in build_network(load_topology("two-hosts-netem")).nodes:
        assert (node.kernel, node.initrd, node.cmdline, node.files, node.boots_its_own) == (None, None, None, (), False)


def test_paths_are_from_the_folder_of_the_file_and_of_the_command_line_from_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder, "kernel: vmlinux")
    (folder / "folder" / "mine").write_bytes(bz_image())
    monkeypatch.chdir(folder / "folder")
    for reference in (str(path), "../net.yaml"):
        assert load_topology(reference).machines["client"].kernel == str(folder / "vmlinux")
    overridden = load_topology("../net.yaml", ["machines.client.kernel=mine", "defaults.initrd=../root.cpio"])
    assert overridden.machines["client"].kernel == str(folder / "folder" / "mine")
    assert overridden.defaults.initrd == str(folder / "root.cpio")
    (experiment,) = load_experiments("quickstart", topology="../net.yaml")
    assert experiment.network.node("client").kernel == str(folder / "vmlinux")


MISTAKES = [
    ("kernel: nothing", f"kernel: FOLDER/nothing does not exist; allowed: {KERNELS}"),
    ("kernel: folder", f"kernel: FOLDER/folder is not a regular file; allowed: {KERNELS}"),
    ("kernel: pipe", f"kernel: FOLDER/pipe is not a regular file; allowed: {KERNELS}"),
    ("kernel: motd/x", f"kernel: FOLDER/motd/x cannot be read: Not a directory; allowed: {KERNELS}"),
    ("kernel: motd", f"kernel: FOLDER/motd is neither an ELF file nor a bzImage; allowed: {KERNELS}"),
    ("kernel: program", f"kernel: FOLDER/program is an ELF file without a PVH note (of Linux: CONFIG_PVH=y); allowed: {KERNELS}"),
    ('kernel: "a\\nb"', f"kernel: 'a\\nb' is not a path; allowed: {PATHS}"),
    ("initrd: motd", f"initrd: FOLDER/motd is neither a cpio archive nor compressed in a format that Linux unpacks; allowed: {INITRDS}"),
    ('cmdline: "a\\nb"', "cmdline: 'a\\nb' is not valid on a command line; allowed: one line of up to 1024 ASCII characters"),
    ("files: {/etc/motd: {}}", "files./etc/motd: has no content; allowed: from or content"),
    ("files: {/etc/motd: {from: motd, content: x}}", "files./etc/motd: has both from and content; allowed: from or content"),
    ("files: {/etc/motd: {from: nothing}}", "files./etc/motd.from: FOLDER/nothing does not exist; allowed: a readable file"),
    ("files: {/a: {content: x}, /a/b: {content: y}}", "files./a/b: '/a' is also a file; allowed: a path that is not a folder of another"),
    ("files: {/large: {from: large}}", "files: 26214400 bytes are too many for the 96 MiB of memory of 'client'; allowed: 2 MiB plus a third of the memory above 96 MiB, the least of image linux: 2097152 bytes"),
    ("files: {/x: {content: x, mode: 0644}}", f"files./x.mode: 644 is not a mode; allowed: {MODES}"),
    ("files: {/x: {content: x, mode: '644'}}", f"files./x.mode: '644' is not a mode; allowed: {MODES}"),
    ("files: {/x: {content: x, mode: '0888'}}", f"files./x.mode: '0888' is not a mode; allowed: {MODES}"),
    ("files: {/x: {content: x, mode: '1755'}}", f"files./x.mode: '1755' has the sticky bit, which is only for folders; allowed: {MODES}"),
    ("files: {/x: {content: x, mode: '4644'}}", "files./x.mode: '4644' sets the owner's set-id bit without the owner's execute bit; allowed: the owner's execute bit too, such as '4744'"),
    ("files: {/x: {content: x, mode: '2744'}}", "files./x.mode: '2744' sets the group's set-id bit without the group's execute bit; allowed: the group's execute bit too, such as '2754'"),
]  # fmt: skip
ROOT_SOURCES = "packages, oci, folder or modules"
PACKAGES = "a Debian package such as redis-server, or with its version, redis-server=5:7.0.15-1~deb12u10"
LOCKS = "what sundial images packages --lock writes for these packages"
LAYOUTS = "the folder of an OCI layout, its tar archive, or an archive that docker save writes"
MISTAKES += [
    ("root: {}", f"root: has no source; allowed: {ROOT_SOURCES}"),
    ("root: {modules: [Nfsd.ko]}", "root.modules.0: 'Nfsd.ko' is not a module; allowed: a module of Linux, such as nfsd"),
    ("root: {modules: [nfs], rebuild: {nfsd: {A: true}}}", "root.rebuild: 'nfsd' is not one of modules; allowed: modules: [NAME] in addition"),
    ("root: {modules: [nfs], rebuild: {nfs: {CONFIG_A: true}}}", f"root.rebuild.nfs.CONFIG_A: 'CONFIG_A' is not an option; allowed: {OPTIONS}"),
    ("root: {modules: [nfs], rebuild: {nfs: {A: n}}}", "root.rebuild.nfs.A: 'n' is not a truth value; allowed: true, false"),
    ("root: {modules: [nfs], rebuild: {nfs: {}}}", "root.rebuild.nfs: has 0 entries; allowed: 1 or more"),
    ("root: {tag: x, folder: folder}", "root.tag: has no archive; allowed: oci in addition"),
    ("root: {packages: [Redis]}", f"root.packages.0: 'Redis' is not a package; allowed: {PACKAGES}"),
    ("root: {packages: ['hello:arm64']}", f"root.packages.0: 'hello:arm64' names architecture arm64, and machines are amd64; allowed: {PACKAGES}"),
    ("root: {packages: ['-oDir=/']}", f"root.packages.0: '-oDir=/' is not a package; allowed: {PACKAGES}"),
    ("root: {lock: motd, folder: folder}", "root.lock: has no packages; allowed: packages in addition"),
    ("root: {lock: nothing, packages: [redis-server]}", "root.lock: FOLDER/nothing does not exist; allowed: a readable file"),
    ("root: {lock: motd, packages: [redis-server]}", f"root.lock: FOLDER/motd is not a lock of packages; allowed: {LOCKS}"),
    ("root: {folder: motd}", "root.folder: FOLDER/motd is not a folder; allowed: a folder on this host"),
    ("root: {folder: nothing}", "root.folder: FOLDER/nothing does not exist; allowed: a folder on this host"),
    ("root: {oci: nothing}", f"root.oci: FOLDER/nothing does not exist; allowed: {LAYOUTS}"),
    ("root: {oci: pipe}", f"root.oci: FOLDER/pipe is not a regular file; allowed: {LAYOUTS}"),
    ("root: {oci: folder}", f"root.oci: FOLDER/folder has neither index.json nor manifest.json; allowed: {LAYOUTS}"),
    ("initrd: root.cpio\nroot: {folder: folder}", "root: 'client' has an initrd of its own, which takes the place of the root; allowed: root or initrd"),
]  # fmt: skip
PATHS_REFUSED = [
    "etc/motd", "/", "//etc", "/etc/", "/etc//motd", "/etc/./motd", "/etc/../motd", "/proc/x", "/sys", "/dev/null",
    "/TRAILER!!!", "/a/TRAILER!!!", "/" + "x" * 256, "/a\\tb", "/\\ud800",
]  # fmt: skip


@pytest.mark.parametrize(("client", "line"), MISTAKES)
def test_one_line_for_each_mistake(folder: Path, client: str, line: str) -> None:
    path = write(folder, client)
    said = [each.replace(str(folder), "FOLDER") for each in refusal(lambda: load_topology(str(path)))]
    assert said == [f"FOLDER/net.yaml:{6 + client.count(chr(10))}: machines.client.{line}"]


@pytest.mark.parametrize("path", PATHS_REFUSED)
def test_a_path_that_cannot_be_laid_in(folder: Path, path: str) -> None:
    written = write(folder, f'files: {{"{path}": {{content: x}}}}')
    (line,) = refusal(lambda: load_topology(str(written)))
    assert line.startswith(f"{written}:6: machines.client.files")
    assert line.endswith(f"; allowed: {LAID}")


@pytest.mark.parametrize("path", ["/devices", "/process/x", "/etc/a b", "/ä", "/..x", "/" + "x" * 255])
def test_a_path_that_can(folder: Path, path: str) -> None:
    (node, _) = build_network(load_topology(str(write(folder, f'files: {{"{path}": {{content: x}}}}')))).nodes
    assert [name for name, _ in node.files] == [path]


@pytest.mark.parametrize(
    ("defaults", "line"),
    [
        ("kernel: motd\nfiles: {/a: {content: x}, /a/b: {content: y}}", "13: defaults.files./a/b: '/a' is also a file"),
        ("kernel: motd", "12: defaults.kernel: FOLDER/motd is neither an ELF file nor a bzImage"),
    ],
)
def test_a_mistake_in_defaults_is_shown_there(folder: Path, defaults: str, line: str) -> None:
    path = write(folder, defaults=defaults)
    (said,) = refusal(lambda: load_topology(str(path)))
    assert said.replace(str(folder), "FOLDER").startswith(f"FOLDER/net.yaml:{line}")


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("cmdline: x", "has no command line; allowed: an image that does: linux"),
        ("initrd: root.cpio.gz", "is compressed (gzip), which the image's kernel does not unpack"),
        ("root: {folder: folder}", "does not support programs of others; allowed: an image that does: linux"),
        ("files: {/bin/x: {content: x}}", "has no folders; allowed: a name in its root, such as '/x'"),
    ],
)
def test_what_an_image_cannot_do(folder: Path, client: str, words: str) -> None:
    path = write(folder, f"image: ssscore\n{client}")
    (line,) = refusal(lambda: load_topology(str(path)))
    assert line.startswith(f"{path}:7: machines.client.{client.partition(':')[0]}")
    assert words in line
    load_topology(str(write(folder, "image: ssscore\ninitrd: root.cpio\nfiles: {/x: {content: x}}")))


def test_an_initrd_may_take_half_of_the_memory(folder: Path) -> None:
    archive = newc({"x": (FILE, bytes(49 << 20))})
    (folder / "big.cpio").write_bytes(archive)
    with pytest.raises(BadInput, match=r"bytes are too many for the 96 MiB of memory of 'client'; allowed: half of"):
        load_topology(str(write(folder, "initrd: big.cpio")))
    assert load_topology(str(write(folder, "initrd: big.cpio\nmemory: 128 MiB")))


def test_files_may_take_what_the_image_can_spare(folder: Path) -> None:
    (folder / "motd").write_bytes(bytes(2 << 20))
    assert load_topology(str(write(folder, "files: {/x: {from: motd}}")))
    with pytest.raises(BadInput, match=r"2097153 bytes are too many for the 96 MiB of memory of 'client'"):
        load_topology(str(write(folder, "files: {/x: {from: motd}, /y: {content: y}}")))
    assert load_topology(str(write(folder, "memory: 99 MiB\nfiles: {/x: {from: motd}, /y: {content: y}}")))


def test_a_root_takes_the_memory_that_it_needs_while_it_boots() -> None:
    linux = IMAGES["linux"]
    assert root_too_large(linux, 96 << 20, 2 << 20) is None
    wrong = root_too_large(linux, 96 << 20, (2 << 20) + 1)
    assert wrong is not None
    assert (wrong.what, wrong.allowed) == (
        "96 MiB are too little for a root of 2097153 bytes beside image linux",
        "97 MiB or more, or root.as: disk",
    )
    assert root_too_large(linux, 97 << 20, (2 << 20) + 1) is None


def test_a_root_is_a_machines_own_or_that_of_defaults(folder: Path) -> None:
    path = write(folder, "root: {folder: folder, as: disk}", "root: {packages: [redis-server, 'x11-common=1:7.7+23']}")
    client, server = build_network(load_topology(str(path))).nodes
    assert client.root is not None
    assert server.root is not None
    assert (client.root.folder, client.root.packages, client.root.held) == (str(folder / "folder"), [], "disk")
    assert (server.root.packages, server.root.held) == (["redis-server", "x11-common=1:7.7+23"], "memory")
    assert client.boots_its_own
    dumped = load_topology(str(path)).model_dump(mode="json", exclude_none=True)
    assert dumped["machines"]["client"]["root"] == {
        "packages": [],
        "folder": str(folder / "folder"),
        "modules": [],
        "as": "disk",
    }


def test_a_recorded_topology_is_read_again_without_the_files(folder: Path) -> None:
    path = write(folder, "kernel: vmlinux\nfiles: {/x: {from: motd}}", "initrd: root.cpio")
    topology = load_topology(str(path))
    for file in ("vmlinux", "motd", "root.cpio", "net.yaml"):
        (folder / file).unlink()
    document = json.loads(json.dumps(topology.model_dump(mode="json", exclude_none=True)))
    assert document["machines"]["client"]["files"] == {"/x": {"from": str(folder / "motd"), "mode": "0644"}}
    assert Topology.model_validate(document) == topology
    assert recorded_network({"topology": document}) == build_network(topology)
