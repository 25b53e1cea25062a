# SPDX-License-Identifier: Apache-2.0
"""A kernel from its source: the configuration, what is kept of a build, and two builds at once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from recipe import kernel_source, locks, packages
from recipe.errors import HostLacks, RecipeError
from recipe.image import CHECKOUT, Workspace, load, recipes

CONFIG = CHECKOUT / "buildroot-configs/board/sundial/linux/linux.config"
PACKAGE = packages.Package("linux-source-1", "1", "all", "ab" * 32, ())

# What guests, the runner and the tests need, from the kernel's own documentation of each symbol.
REQUIRED = set(
    "64BIT PVH ACPI PCI PCI_MSI HYPERVISOR_GUEST SERIAL_8250_CONSOLE BLK_DEV_INITRD DEVTMPFS TMPFS POSIX_MQUEUE SYSVIPC "
    "NO_HZ_IDLE HIGH_RES_TIMERS VIRTIO_PCI VIRTIO_NET VIRTIO_CONSOLE FW_CFG_SYSFS NET PACKET UNIX INET IP_MULTICAST "
    "BRIDGE BRIDGE_IGMP_SNOOPING NET_SCH_NETEM NET_SCH_TBF NET_SCH_PRIO NET_SCH_HTB NET_CLS_U32 NET_CLS_MATCHALL "
    "NET_CLS_ACT NET_ACT_MIRRED IFB MAGIC_SYSRQ UNWINDER_GUESS".split()
)
# What costs instructions at boot or in each call, or makes two boots differ.
FORBIDDEN = set(
    "SMP MODULES RELOCATABLE RANDOMIZE_BASE CPU_MITIGATIONS STACKPROTECTOR VMAP_STACK TRANSPARENT_HUGEPAGE COMPACTION "
    "IPV6 NETFILTER INET_DIAG FTRACE DEBUG_INFO BPF_SYSCALL CRYPTO BLOCK CGROUPS SECURITY AUDIT SLUB_DEBUG "
    "RD_GZIP".split()
)


def lines() -> list[str]:
    return CONFIG.read_text().splitlines()


def test_the_configuration_says_each_thing_once() -> None:
    named = [found[0] for line in lines() if (found := kernel_source._SYMBOL.search(line))]
    assert sorted(named) == sorted(set(named))
    assert len(named) == len(lines()) - 1, "the first line names the licence"


def test_the_configuration_has_no_forbidden_symbol() -> None:
    switched_on = {line.partition("=")[0] for line in lines() if not line.startswith("#")}
    assert not switched_on & {f"CONFIG_{name}" for name in FORBIDDEN}


def test_a_line_that_is_not_taken_is_found() -> None:
    asked = '# a comment\nCONFIG_A=y\nCONFIG_B="text"\n# CONFIG_C is not set\n# CONFIG_GONE is not set\nCONFIG_NR=1\n'
    made = 'CONFIG_A=y\nCONFIG_B="text"\nCONFIG_AA=y\n# CONFIG_C is not set\nCONFIG_NR=1\n'
    assert kernel_source.not_taken(asked, made) == []
    assert kernel_source.not_taken(asked, made.replace("A=y\n", "A=m\n", 1)) == ["CONFIG_A=y"]
    assert kernel_source.not_taken(asked, made.replace("# CONFIG_C is not set", "CONFIG_C=y")) == [
        "# CONFIG_C is not set"
    ]
    assert kernel_source.not_taken("CONFIG_NEW=y\n", made) == ["CONFIG_NEW=y"]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was compiled: nothing really is."""
    done: list[str] = []

    def compile_(source: Path, asked: str, folder: Path) -> None:
        done.append(asked)
        for name in (kernel_source.VMLINUX, kernel_source.CONFIG, kernel_source.BUILT_IN):
            (folder / name).write_text(f"{name} of {asked}")
        digests = {path.name: packages.sha256_of(path) for path in folder.iterdir()}
        (folder / kernel_source.MADE).write_text(json.dumps({"release": "6.1", "hz": 100, "sha256": digests}))

    monkeypatch.setattr(kernel_source, "_compile", compile_)
    monkeypatch.setattr(kernel_source, "_unpacked", lambda package, workspace: workspace.scratch)
    return done


def built(folder: Path, config: str = "CONFIG_A=y\n", package: packages.Package = PACKAGE) -> kernel_source.Kernel:
    (folder / "config").write_text(config)
    with locks.scratch_in(folder / "cache") as scratch:
        return kernel_source.build(package, folder / "config", Workspace(scratch, folder / "cache"))


def test_a_kernel_is_built_once_for_all_that_it_is_made_of(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built(tmp_path)
    assert built(tmp_path) == first
    assert len(compiled) == 1
    built(tmp_path, "CONFIG_A=y\nCONFIG_B=y\n")
    built(tmp_path, package=packages.Package("linux-source-1", "2", "all", "cd" * 32, ()))
    monkeypatch.setattr(kernel_source, "_version_of", lambda tool: "another")
    built(tmp_path)
    assert len(compiled) == 4


@pytest.mark.parametrize("name", ["vmlinux", "modules.builtin", "made.json"])
@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_a_kept_kernel_that_is_damaged_is_built_again(
    tmp_path: Path, compiled: list[str], name: str, harm: str
) -> None:
    first = built(tmp_path)
    (path,) = (tmp_path / "cache").glob(f"kernel-*/{name}")
    path.write_bytes(path.read_bytes()[:5]) if harm == "cut" else path.unlink()
    assert built(tmp_path) == first
    assert len(compiled) == 2


def test_a_build_that_fails_leaves_nothing(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path, asked: str, folder: Path) -> None:
        (folder / "vmlinux").write_text("half")
        raise RecipeError("kernel: make vmlinux: status 2")

    monkeypatch.setattr(kernel_source, "_compile", fail)
    with pytest.raises(RecipeError):
        built(tmp_path)
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


HOLDER = """
import sys, time
from pathlib import Path
from recipe import locks
with locks.scratch_in(Path(sys.argv[1])) as scratch, locks.locked(Path(sys.argv[1]) / "lock", "another"):
    print(scratch.name, flush=True)
    sys.stdin.read()
"""


def test_scratch_of_a_killed_build_goes_and_that_of_a_living_one_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "images")}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as holder:
        assert holder.stdout is not None
        theirs = tmp_path / holder.stdout.readline().strip()
        with locks.scratch_in(tmp_path) as ours:
            assert theirs.is_dir()
        assert not ours.exists()
        holder.kill()
        holder.wait()
    assert theirs.is_dir()
    with locks.scratch_in(tmp_path):
        assert not theirs.exists()
    with locks.locked(tmp_path / "lock", "another"):
        pass
    assert capsys.readouterr().out == ""


def test_a_host_without_what_compiling_takes_is_told_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [package for _, package in load("linux", "tuned").DEVELOPMENT_FILES]
    assert {"flex", "bison", "bc", "libelf-dev", "gcc", "make", "rpcsvc-proto"} <= set(known)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, "", ""))
    with pytest.raises(HostLacks, match="package linux-source: not in apt's lists"):
        kernel_source.source_package()


@pytest.mark.parametrize("name", ["linux", "ssscore"])
def test_each_declared_recipe_has_a_module_that_makes_it(name: str) -> None:
    for recipe in recipes(name):
        assert callable(load(name, recipe).make)


def test_a_recipe_without_a_module_is_named() -> None:
    with pytest.raises(RecipeError, match=r"^images/linux/slow.py, which makes the image, is not there$"):
        load("linux", "slow")


LINUX = os.environ.get("LINUX")


@pytest.mark.night
@pytest.mark.skipif(LINUX is None, reason="LINUX is not set: the configuration was not given to a kernel's source")
def test_the_kernels_own_tools_give_the_configuration_back(tmp_path: Path) -> None:
    asked = CONFIG.read_text()
    (tmp_path / ".config").write_text(asked)
    make = ["make", "-s", "-C", str(LINUX), f"O={tmp_path}"]
    for target in ("olddefconfig", "savedefconfig"):
        subprocess.run([*make, target], check=True, capture_output=True, timeout=300)
    made = (tmp_path / ".config").read_text()
    assert kernel_source.not_taken(asked, made) == []
    assert (tmp_path / "defconfig").read_text() == asked.partition("\n")[2]
    symbols = kernel_source.symbols(made)
    assert [name for name in sorted(REQUIRED) if symbols.get(f"CONFIG_{name}") != f"CONFIG_{name}=y"] == []
    assert [name for name in sorted(FORBIDDEN) if symbols.get(f"CONFIG_{name}") == f"CONFIG_{name}=y"] == []


NOTE = r".section .note.Xen,\"a\",@note; .long 4,8,18; .asciz \"Xen\"; .quad 0"
PRETENDED_KERNEL = f"""
olddefconfig:
\t@sed -i s/WISH=y/WISH=n/ .config
vmlinux:
\t@echo '  CC      init/main.o'
\t@echo "built by $$KBUILD_BUILD_USER at $$KBUILD_BUILD_TIMESTAMP" > modules.builtin
\t@if grep -q BROKEN .config; then echo 'main.c:1:2: error: no such thing' >&2; exit 1; fi
\t@echo "{NOTE}" | gcc -c -x assembler -o vmlinux -
kernelrelease:
\t@echo 6.1-pretended
"""


def compiled_from(folder: Path, config: str) -> kernel_source.Kernel | None:
    source, made = folder / "source", folder / "made"
    source.mkdir()
    made.mkdir()
    (source / "Makefile").write_text(PRETENDED_KERNEL)
    kernel_source._compile(source, config, made)
    return kernel_source._read(made)


def test_make_is_given_the_configuration_and_nothing_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KBUILD_BUILD_USER", "me")
    monkeypatch.setenv("MAKEFLAGS", "-n")
    monkeypatch.setattr(kernel_source, "FILES_A_LINE", 1)
    kernel = compiled_from(tmp_path, "CONFIG_HZ=250\n")
    assert kernel is not None
    assert (kernel.release, kernel.hz) == ("6.1-pretended", 250)
    assert kernel.built_in == b"built by sundial at 1970-01-01T00:00:00Z\n"
    assert capsys.readouterr().out.splitlines()[-1] == "kernel: 1 files are compiled"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("CONFIG_HZ=250\nCONFIG_WISH=y\n", r"does not take these lines of the configuration: CONFIG_WISH=y$"),
        ("CONFIG_HZ=250\nCONFIG_BROKEN=y\n", r"^kernel: make vmlinux: main.c:1:2: error: no such thing$"),
        ("CONFIG_A=y\n", r"has no CONFIG_HZ$"),
    ],
)
def test_what_make_does_not_take_or_build_is_one_line(tmp_path: Path, config: str, words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        compiled_from(tmp_path, config)
    assert kernel_source._read(tmp_path / "made") is None
