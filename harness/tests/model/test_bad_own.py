# SPDX-License-Identifier: Apache-2.0
"""Kernels, initrds, command lines and files of one's own: what a topology may say, and one line for what it may not."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.model.recorded import recorded_network
from sundial.model.topology import Topology
from tests.model.hosts import TWO_HOSTS
from tests.model.kernels import FILE, bz_image, elf, newc

LAN = """\
segments:
  lan: {kind: hub, rate: 10 Mbit/s, cable_delay: 25 ns, ports: ["client:eth0", "server:eth0"]}
"""
PATHS = "a path on this host, from the folder of the file that names it"
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


@pytest.mark.parametrize(
    ("client", "lines"),
    [
        ("kernel: nothing", [f"6: machines.client.kernel: there is no FOLDER/nothing; allowed: {KERNELS}"]),
        ("kernel: folder", [f"6: machines.client.kernel: FOLDER/folder is no regular file; allowed: {KERNELS}"]),
        ("kernel: pipe", [f"6: machines.client.kernel: FOLDER/pipe is no regular file; allowed: {KERNELS}"]),
        ("kernel: motd/x", [f"6: machines.client.kernel: FOLDER/motd/x cannot be read: Not a directory; allowed: {KERNELS}"]),
        ("kernel: motd", [f"6: machines.client.kernel: FOLDER/motd is neither an ELF file nor a bzImage; allowed: {KERNELS}"]),
        ("kernel: program",
         [f"6: machines.client.kernel: FOLDER/program is an ELF file without a PVH note (of Linux: CONFIG_PVH=y); allowed: {KERNELS}"]),
        ("kernel: [vmlinux]", [f"6: machines.client.kernel: ['vmlinux'] is not a path; allowed: {PATHS}"]),
        ('kernel: ""', [f"6: machines.client.kernel: '' is not a path; allowed: {PATHS}"]),
        ('kernel: "a\\nb"', [f"6: machines.client.kernel: 'a\\nb' is not a path; allowed: {PATHS}"]),
        ("initrd: motd",
         [f"6: machines.client.initrd: FOLDER/motd is no cpio archive, and not compressed in a way that kernels know; allowed: {INITRDS}"]),
        ('cmdline: "a\\nb"', ["6: machines.client.cmdline: 'a\\nb' cannot be on a command line; allowed: one line of up to 1024 ASCII characters"]),
        ('cmdline: " "', ["6: machines.client.cmdline: ' ' cannot be on a command line; allowed: one line of up to 1024 ASCII characters"]),
        ("files: {/etc/motd: {}}", ["6: machines.client.files./etc/motd: has no content; allowed: from or content"]),
        ("files: {/etc/motd: {from: motd, content: x}}",
         ["6: machines.client.files./etc/motd: has both from and content; allowed: from or content"]),
        ("files: {/etc/motd: {from: nothing}}",
         ["6: machines.client.files./etc/motd.from: there is no FOLDER/nothing; allowed: a file that can be read"]),
        ("files: {/etc/motd: {content: 5}}", ["6: machines.client.files./etc/motd.content: '5' is not allowed here; allowed: text of up to 64 KiB"]),
        ("files: {/etc/motd: {contents: x}}",
         ["6: machines.client.files./etc/motd.contents: unknown field; allowed: from, content, mode"]),
        ("files: {/etc/motd: {content: x, owner: me}}",
         ["6: machines.client.files./etc/motd.owner: unknown field; allowed: from, content, mode"]),
        ("files: [x]", ["6: machines.client.files: is not a mapping of fields"]),
        ("files: {/a: {content: x}, /a/b: {content: y}}",
         ["6: machines.client.files./a/b: '/a' is a file, too; allowed: a path that is no folder of another"]),
        ("files: {/large: {from: large}}",
         ["6: machines.client.files: 26214400 bytes are too much for the memory of 'client', 96 MiB; allowed: 2 MiB, and a third of what its memory is above the 96 MiB that image linux needs"]),
    ],
)  # fmt: skip
def test_one_line_for_each_mistake(folder: Path, client: str, lines: list[str]) -> None:
    path = write(folder, client)
    with pytest.raises(BadInput) as caught:
        load_topology(str(path))
    assert caught.value.exit_code == 2
    assert str(caught.value).replace(str(folder), "FOLDER").splitlines() == [
        f"FOLDER/net.yaml:{line}" for line in lines
    ]


@pytest.mark.parametrize(
    "path",
    [
        "etc/motd", "/", "//etc", "/etc/", "/etc//motd", "/etc/./motd", "/etc/../motd", "/proc/x", "/sys", "/dev/null",
        "/TRAILER!!!", "/a/TRAILER!!!", "/" + "x" * 256, "/a\\tb", "/\\ud800",
    ],
)  # fmt: skip
def test_a_path_that_cannot_be_laid_in(folder: Path, path: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_topology(str(write(folder, f'files: {{"{path}": {{content: x}}}}')))
    (problem,) = caught.value.problems
    assert (problem.line, problem.allowed) == (6, LAID)


@pytest.mark.parametrize("path", ["/devices", "/process/x", "/etc/a b", "/ä", "/..x", "/" + "x" * 255])
def test_a_path_that_can(folder: Path, path: str) -> None:
    (node, _) = build_network(load_topology(str(write(folder, f'files: {{"{path}": {{content: x}}}}')))).nodes
    assert [name for name, _ in node.files] == [path]


@pytest.mark.parametrize(
    ("mode", "allowed"),
    [
        ("0644", MODES),  # in YAML 1.2 six hundred and forty-four
        ("0o644", MODES),
        ('"644"', MODES),
        ('"0888"', MODES),
        ('"rwxr"', MODES),
        ('"1755"', MODES),
        ('"4644"', "the owner's execute bit too, such as '4744'"),
        ('"2744"', "the group's execute bit too, such as '2754'"),
        ("true", MODES),
    ],
)
def test_a_mode_that_is_none(folder: Path, mode: str, allowed: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_topology(str(write(folder, f"files: {{/x: {{content: x, mode: {mode}}}}}")))
    (problem,) = caught.value.problems
    assert (problem.line, problem.field, problem.allowed) == (6, "machines.client.files./x.mode", allowed)


def test_a_path_is_written_once(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"net\.yaml:\d+: is not YAML: found duplicate key"):
        load_topology(str(write(folder, "files:\n  /x: {content: a}\n  /x: {content: b}")))


def test_a_mistake_in_defaults_is_shown_there(folder: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load_topology(str(write(folder, defaults="kernel: motd\nfiles: {/a: {content: x}, /a/b: {content: y}}")))
    assert [(each.line, each.field) for each in caught.value.problems] == [(13, "defaults.files./a/b")]
    with pytest.raises(BadInput) as caught:
        load_topology(str(write(folder, defaults="kernel: motd")))
    assert [(each.line, each.field) for each in caught.value.problems] == [(12, "defaults.kernel")]


SSS = "image: ssscore\n"


@pytest.mark.parametrize(
    ("client", "field", "words"),
    [
        (SSS + "cmdline: x", "cmdline", "reads no command line; allowed: an image that does: linux"),
        (SSS + "initrd: root.cpio.gz", "initrd", "is compressed (gzip), which the image's kernel does not unpack"),
        (
            SSS + "files: {/bin/x: {content: x}}",
            "files./bin/x",
            "has no folders; allowed: a name in its root, such as '/x'",
        ),
    ],
)
def test_what_an_image_cannot_do(folder: Path, client: str, field: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_topology(str(write(folder, client)))
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (7, f"machines.client.{field}")
    assert words in str(problem)
    load_topology(str(write(folder, SSS + "initrd: root.cpio\nfiles: {/x: {content: x}}")))


def test_an_initrd_may_take_half_of_the_memory(folder: Path) -> None:
    archive = newc({"x": (FILE, bytes(49 << 20))})
    (folder / "big.cpio").write_bytes(archive)
    with pytest.raises(BadInput, match=r"bytes are too much for the memory of 'client', 96 MiB; allowed: half of"):
        load_topology(str(write(folder, "initrd: big.cpio")))
    assert load_topology(str(write(folder, "initrd: big.cpio\nmemory: 128 MiB")))


def test_files_may_take_what_the_image_can_spare(folder: Path) -> None:
    (folder / "motd").write_bytes(bytes(2 << 20))
    assert load_topology(str(write(folder, "files: {/x: {from: motd}}")))
    with pytest.raises(BadInput, match=r"2097153 bytes are too much for the memory of 'client', 96 MiB"):
        load_topology(str(write(folder, "files: {/x: {from: motd}, /y: {content: y}}")))
    assert load_topology(str(write(folder, "memory: 99 MiB\nfiles: {/x: {from: motd}, /y: {content: y}}")))


def test_a_recorded_topology_is_read_again_without_the_files(folder: Path) -> None:
    path = write(folder, "kernel: vmlinux\nfiles: {/x: {from: motd}}", "initrd: root.cpio")
    topology = load_topology(str(path))
    for file in ("vmlinux", "motd", "root.cpio", "net.yaml"):
        (folder / file).unlink()
    document = json.loads(json.dumps(topology.model_dump(mode="json", exclude_none=True)))
    assert document["machines"]["client"]["files"] == {"/x": {"from": str(folder / "motd"), "mode": "0644"}}
    assert Topology.model_validate(document) == topology
    assert recorded_network({"topology": document}) == build_network(topology)
