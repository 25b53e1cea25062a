# SPDX-License-Identifier: Apache-2.0
"""linux.config: what guests need is in it, what they pay for in vain is not; with LINUX=DIR, a kernel's source takes it."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import symbols

CONFIG = symbols.TREE / "board/sundial/linux/linux.config"
LINES = CONFIG.read_text().splitlines()
SET = dict(line.removeprefix("CONFIG_").split("=", 1) for line in LINES if line.startswith("CONFIG_"))
UNSET = {found[1] for line in LINES if (found := re.fullmatch(r"# CONFIG_(\w+) is not set", line))}

REQUIRED = {
    "the machine, as QEMU starts it": "HYPERVISOR_GUEST PVH ACPI PCI PCI_MSI HPET_TIMER",
    "devices": "VIRTIO_PCI VIRTIO_NET VIRTIO_CONSOLE FW_CFG_SYSFS SERIAL_8250_CONSOLE",
    "the first process": "BLK_DEV_INITRD BINFMT_ELF BINFMT_SCRIPT DEVTMPFS PROC_FS SYSFS TMPFS UNIX98_PTYS",
    "programs": "FUTEX EPOLL SIGNALFD TIMERFD EVENTFD POSIX_TIMERS HIGH_RES_TIMERS SYSVIPC",
    "the network": "NET PACKET UNIX INET IP_MULTICAST BRIDGE BRIDGE_IGMP_SNOOPING",
    "impairments": "NET_SCHED NET_SCH_NETEM NET_SCH_TBF NET_SCH_PRIO NET_SCH_HTB IFB",
    "a panic that tests ask for": "MAGIC_SYSRQ KALLSYMS PRINTK",
}
FORBIDDEN = {
    "no drivers are loaded": "MODULES",
    "one processor": "SMP NUMA",
    "one place in memory, the same at each boot": "RELOCATABLE RANDOMIZE_BASE",
    "instructions at each call": "CPU_MITIGATIONS RETPOLINE STACKPROTECTOR SECCOMP SECURITY AUDIT CGROUPS NETFILTER",
    "instructions at each boot": "FTRACE UNWINDER_ORC JUMP_LABEL IPV6 CRYPTO BLOCK",
    "work by itself in the midst of a job": "COMPACTION TRANSPARENT_HUGEPAGE",
}


def names(lists: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, why) for why, words in lists.items() for name in words.split()]


def test_every_symbol_stands_once() -> None:
    named = [found[1] for line in LINES if (found := re.match(r"(?:# )?CONFIG_(\w+)", line))]
    assert len(named) == len(set(named))
    assert all(re.fullmatch(r"CONFIG_\w+=.+|# CONFIG_\w+ is not set|# SPDX.*", line) for line in LINES)


@pytest.mark.parametrize(("name", "why"), names(FORBIDDEN))
def test_what_a_guest_pays_for_in_vain_is_not_set(name: str, why: str) -> None:
    assert name not in SET, why


@pytest.mark.parametrize(("name", "why"), names(REQUIRED))
def test_what_guests_need_is_not_turned_off(name: str, why: str) -> None:
    assert name not in UNSET, why
    assert SET.get(name, "y") == "y", why


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], str]:
    """The lines of the .config that a kernel's source makes of it, and what `make savedefconfig` writes of that."""
    if "LINUX" not in os.environ:
        pytest.skip("LINUX is not set: no source of a kernel to read linux.config with")
    out = tmp_path_factory.mktemp("kernel")
    (out / ".config").write_bytes(CONFIG.read_bytes())
    command = ["make", "-s", "-C", str(Path(os.environ["LINUX"]).absolute()), f"O={out}"]
    for target in ("olddefconfig", "savedefconfig"):
        subprocess.run([*command, target], check=True, capture_output=True)
    return set((out / ".config").read_text().splitlines()), (out / "defconfig").read_text()


def test_a_kernel_has_what_guests_need_and_nothing_brings_back_what_is_forbidden(whole: tuple[set[str], str]) -> None:
    assert [name for name, _ in names(REQUIRED) if f"CONFIG_{name}=y" not in whole[0]] == []
    assert [name for name, _ in names(FORBIDDEN) if f"CONFIG_{name}=y" in whole[0]] == []


def test_a_kernel_takes_every_line(whole: tuple[set[str], str]) -> None:
    assert whole[1].splitlines() == [line for line in LINES if not line.startswith("# SPDX")]
