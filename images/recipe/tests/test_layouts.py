# SPDX-License-Identifier: Apache-2.0
"""Packages as Debian 12 and Debian 13 lay them out: folders beneath usr, compressed modules, parts of the kernel."""

import gzip
import lzma
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from linux import distribution, root
from recipe import image, kernel, lz4, modules, packages, python, releases, unpacking
from recipe.errors import HostLacks, RecipeError
from recipe.programs import PackageTree, beneath, libraries_for


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-cq"], input=data, capture_output=True, check=True).stdout


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".xz": lzma.compress, ".gz": gzip.compress, ".zst": zstd, ".lz4": lz4.compress,
}  # fmt: skip


def assembled(folder: Path, source: str) -> bytes:
    """An object file."""
    out = folder / "assembled.o"
    subprocess.run(["gcc", "-c", "-x", "assembler", "-o", out, "-"], input=source.encode(), check=True)
    return out.read_bytes()


@pytest.mark.parametrize("prefix", ["", "usr/"])
@pytest.mark.parametrize("path", ["bin/busybox", "lib/modules", "usr/bin/iperf3"])
def test_path_of_a_package_is_found_at_the_root_and_beneath_usr(tmp_path: Path, path: str, prefix: str) -> None:
    there = tmp_path / prefix / path
    there.mkdir(parents=True)
    assert beneath(tmp_path, path) == there


def test_path_that_a_package_has_nowhere_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"^package busybox-static: has no file /bin/busybox$"):
        PackageTree(tmp_path).file("busybox-static", "bin/busybox")


@pytest.mark.parametrize("folder", ["lib64", "usr/lib64"])
def test_dynamic_linker_is_found_in_either_folder(tmp_path: Path, folder: str) -> None:
    linker = tmp_path / "libc6" / folder / "ld-linux-x86-64.so.2"
    linker.parent.mkdir(parents=True)
    linker.touch()
    assert PackageTree(tmp_path).library(linker.name).path == linker


@pytest.mark.parametrize(("called", "libraries"), [("pthread_cancel", ["libgcc_s.so.1"]), ("pthread_join", [])])
def test_program_that_cancels_threads_gets_what_libc_loads_then(
    tmp_path: Path, called: str, libraries: list[str]
) -> None:
    # iperf3 3.18 of Debian 13 ends with "libgcc_s.so.1 must be installed for pthread_cancel to work" without it.
    loaded = tmp_path / "libgcc-s1/lib/x86_64-linux-gnu/libgcc_s.so.1"
    loaded.parent.mkdir(parents=True)
    loaded.touch()
    source, program = f"int {called}(unsigned long); int main(void) {{ return {called}(0); }}", tmp_path / "program"
    command = ["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-o", program, "-"]
    subprocess.run(command, input=source.encode(), check=True)
    assert list(libraries_for([program.read_bytes()], PackageTree(tmp_path))) == libraries


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Modules of a kernel: `net-a` needs `net_b`, `core` is built in."""
    found = tmp_path / "usr/lib/modules"
    (found / "6.12/kernel").mkdir(parents=True)
    (found / "6.12/modules.builtin").write_text("kernel/drivers/core.ko\nkernel/drivers/unasked.ko\n")
    return found


def put_modules(tree: Path, ending: str) -> None:
    needs = {"net-a": "net-b", "net-b": ""}
    for name, others in needs.items():
        source = f'.section .modinfo,"a"\n.asciz "depends={others}"\n.asciz "alias=pci:{name}"\n'
        packed = COMPRESSED[ending](assembled(tree.parent, source))
        (tree / f"6.12/kernel/{name}.ko{ending}").write_bytes(packed)


@pytest.mark.parametrize("ending", COMPRESSED)
def test_modules_are_the_same_however_they_are_compressed(tree: Path, tmp_path: Path, ending: str) -> None:
    put_modules(tree, "")
    expected = modules.collect(tree, ["net_a"], tmp_path / "plain")
    for path in tree.rglob("*.ko"):
        path.unlink()
    put_modules(tree, ending)
    assert modules.collect(tree, ["net_a"], tmp_path / "packed") == expected
    assert [(each.name, each.depends, each.aliases) for each in expected] == [
        ("net_b", (), ("pci:net-b",)),
        ("net_a", ("net_b",), ("pci:net-a",)),
    ]


def test_module_that_is_built_in_is_listed_and_not_collected(tree: Path, tmp_path: Path) -> None:
    put_modules(tree, ".xz")
    collected = modules.collect(tree, ["core", "net_b"], tmp_path / "scratch")
    assert [module.name for module in collected] == ["net_b"]
    assert modules.built_in(tree, ["core", "net_b"]) == ["kernel/drivers/core.ko"]
    with pytest.raises(RecipeError, match="kernel module other: not in the kernel package"):
        modules.collect(tree, ["other"], tmp_path / "scratch")


@pytest.mark.parametrize(("asked", "listed"), [(["core"], [b"kernel/drivers/core.ko\n"]), ([], [])])
def test_guest_has_the_list_of_what_is_built_in_only_if_it_loads_some_of_it(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], listed: list[bytes]
) -> None:
    put_modules(tree, "")
    monkeypatch.setattr(distribution, "BOOT_MODULES", ["net_b", *asked])
    monkeypatch.setattr(distribution, "EXTRA_MODULES", [])
    made = root.Root()
    distribution._add_modules(made, tree, "6.12", tmp_path / "scratch")
    name = "lib/modules/6.12/modules.builtin"
    assert [data for path, (_, data, _) in made.base._entries.items() if path == name] == listed


PVH_NOTE = '.section .note.Xen,"a",@note\n.long 4,8,18\n.asciz "Xen"\n.quad 0\n'


def boot_image(payload: bytes, length: int) -> bytes:
    """A bzImage of one sector of setup (Documentation/x86/boot.rst)."""
    header = bytearray(1024)
    header[0x1F1] = 1
    struct.pack_into("<I", header, 0x202, 0x53726448)
    packed = payload + struct.pack("<I", length)
    struct.pack_into("<II", header, 0x248, 0, len(packed))
    return bytes(header) + packed


@pytest.mark.parametrize("ending", COMPRESSED)
def test_kernel_is_taken_out_of_its_boot_image_however_it_is_compressed(tmp_path: Path, ending: str) -> None:
    vmlinux = assembled(tmp_path, PVH_NOTE)
    assert kernel.extract_vmlinux(boot_image(COMPRESSED[ending](vmlinux), len(vmlinux))) == vmlinux


def test_kernel_that_is_compressed_in_another_way_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"^kernel: not compressed by LZ4, .* \(it begins with 4c5a4f00\)$"):
        kernel.extract_vmlinux(boot_image(b"LZO\0 and more", 5))


@pytest.mark.parametrize("ending", [".xz", ".gz", ".zst", ".lz4"])
def test_damaged_module_is_named(ending: str) -> None:
    whole = COMPRESSED[ending](bytes(range(256)) * 20)
    with pytest.raises(RecipeError):
        unpacking.unpack(whole[: len(whole) // 2], "net.ko")


def test_full_disk_is_the_reason_that_is_given_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/apt-cache"
    program.parent.mkdir()
    said = "E: Write error - write (28: No space left on device)\\nE: No packages found"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/out/cache/apt-lists.bin.Ab12\nprintf '{said}\\n' >&2\nexit 100\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setattr(packages, "IMAGES", tmp_path)
    with pytest.raises(HostLacks, match=r"^package linux: apt-cache: Write error - .*No space left on device\)$"):
        packages.look_up(["linux"])
    assert list((tmp_path / "out/cache").iterdir()) == []


APT = """#!/bin/sh
echo "$*" >>{folder}/asked
show() {{
    version=$1
    while [ "$1" != --no-all-versions ]; do shift; done
    shift
    for name; do
        printf 'Package: %s\\nVersion: %s\\nArchitecture: all\\nSHA256: x\\nDepends: libc6\\n\\n' "$name" "$version"
    done
}}
case "$*" in
indextargets*) cat {folder}/targets ;;
*Dir::State::lists*show*) show 12 "$@" ;;
*show*" libc6") show 13 "$@" ;;
*update) exit {updated} ;;
*) echo 'E: No packages found' >&2; exit 100 ;;
esac
"""
TARGETS = """mirror/debian/ trixie main Debian
mirror/debian/ trixie contrib Debian
mirror/debian/ trixie-updates main Debian
mirror/debian/ trixie-backports main Debian
mirror/security/ trixie-security main Debian
mirror/debian/ trixie main Debian
other/apt/ stable main Another
"""


@pytest.fixture
def newer_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """apt of a host whose own lists have nothing; those of other releases have each package, in version 12."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setattr(packages, "IMAGES", tmp_path)
    releases.options.cache_clear()
    set_apt(tmp_path, TARGETS)
    return tmp_path


def set_apt(folder: Path, targets: str, updated: int = 0) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "targets").write_text(targets)
    for name in ("apt-cache", "apt-get"):
        (folder / "bin" / name).write_text(APT.format(folder=folder, updated=updated))
        (folder / "bin" / name).chmod(0o755)


def test_lists_of_another_release_come_from_the_mirrors_of_the_host(newer_host: Path) -> None:
    found = packages.look_up(["python3.11-minimal"], "bookworm")["python3.11-minimal"]
    assert (found.version, found.release) == ("12", "bookworm")
    keys = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    assert (newer_host / "out/cache/apt-bookworm/sources.list").read_text().splitlines() == [
        f"deb {keys} mirror/debian/ bookworm main",
        f"deb {keys} mirror/debian/ bookworm-updates main",
        f"deb {keys} mirror/security/ bookworm-security main",
    ]


def test_lists_of_another_release_are_brought_up_to_date_once(newer_host: Path) -> None:
    for name in ("python3.11-minimal", "python3-six"):
        packages.look_up([name], "bookworm")
    asked = (newer_host / "asked").read_text().splitlines()
    assert sum(line.endswith("update") for line in asked) == 1


def test_packages_of_an_earlier_release_run_with_the_c_library_of_the_image(
    newer_host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        packages, "download", lambda found, _: {each.name: Path(f"{each.name} {each.version}") for each in found}
    )
    unpacked: list[str] = []
    monkeypatch.setattr(packages, "unpack_all", lambda files: unpacked.extend(map(str, files)))
    monkeypatch.setattr(python, "TOOLS", ["protobuf-compiler"])
    python._Build(image.Workspace(newer_host, newer_host), "linux-python")._unpack(["python3.11-minimal"])
    assert unpacked == ["libc6 13", "protobuf-compiler 12", "python3.11-minimal 12", "libpython3.11-dev 12"]


@pytest.mark.parametrize(
    ("targets", "updated", "reason"),
    [
        ("archive/ noble main Ubuntu\n", 0, "apt has no lists of Debian here, from whose mirrors bookworm's come"),
        (TARGETS, 100, "apt cannot read the lists of bookworm: no reason given"),
    ],
)
def test_image_with_python_names_the_release_that_it_is_made_from(
    newer_host: Path, targets: str, updated: int, reason: str
) -> None:
    set_apt(newer_host, targets, updated)
    empty = image.Contents(b"", b"", "6.12", "", [])
    words = f"^package python3.11-minimal: .*; images with Python are made from Debian 12's packages: {reason}"
    with pytest.raises(HostLacks, match=words):
        python.over(empty, image.Workspace(newer_host, newer_host), "linux-python")


@pytest.mark.parametrize(("number", "status"), [(28, 3), (122, 3), (13, 4)])
def test_full_disk_is_a_lack_of_the_host(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, status: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, "no room")

    monkeypatch.setattr(image, "build", fail)
    monkeypatch.setattr("sys.argv", ["recipe", "linux"])
    assert image.main() == status
    assert capsys.readouterr().err.endswith("no room\n")
