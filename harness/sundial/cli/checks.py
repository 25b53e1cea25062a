# SPDX-License-Identifier: Apache-2.0
"""The checks of `sundial doctor`, each a question to a `Host`; tests use a fake host."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import cast

from sundial.cli import rooms
from sundial.errors import SundialError
from sundial.machines.accelerator import PROBE_S, probe_kernels, runs_kvm
from sundial.machines.certificates import OTHER_QEMU, Certificate
from sundial.machines.confinement import Holds, holds
from sundial.machines.connection import EMULATOR
from sundial.machines.cores import may_hurry
from sundial.model.catalog import DISSECTORS
from sundial.run.places import Places

LEAST_TSHARK = (4, 0)
LEAST_SHM = 48 << 20
"""A machine takes 0.9 MB at an MTU of 1,500 bytes and 9.5 MB at 18,174. Containers have 64 MB."""
LEAST_MEMORY = 1 << 30
SETUP = "make setup"
PLACES = Places()
PLUGIN, CONFINE, FABRIC = PLACES.plugin, PLACES.confine, PLACES.fabric
MODULES = ("click", "jinja2", "matplotlib", "networkx", "numpy", "polars", "pydantic", "rich", "ruamel.yaml")


AS_NOBODY = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
)
"""Words in front of a command of root's: another user runs it, who may read root's files."""
TIMED_OUT = 124


class State(Enum):
    """The result of a check."""

    GOOD = "good"
    OPTIONAL = "optional"
    """Absent, and only some features need it."""
    LACKING = "lacking"


@dataclass(frozen=True)
class Check:
    """One line of the doctor: what was checked, its state, what was found, and how to mend it."""

    name: str
    state: State
    found: str
    mend: str | None = None


class Host:
    """Questions to this machine."""

    def run(self, argv: Sequence[str], text: str = "") -> tuple[int, str]:
        """Exit status and all output of a command; status 127 where there is none, TIMED_OUT after PROBE_S seconds."""
        try:
            done = subprocess.run(
                argv,
                input=text,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PROBE_S,
                check=False,
            )
        except OSError:  # not there, or in a folder of PATH that may not be entered
            return 127, ""
        except subprocess.TimeoutExpired:
            return TIMED_OUT, ""
        return done.returncode, done.stdout

    def which(self, program: str) -> str | None:
        return shutil.which(program)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def importable(self, module: str) -> bool:
        try:
            return importlib.util.find_spec(module) is not None
        except ImportError:
            return False

    def free_bytes(self, folder: Path) -> int:
        """Free space of a file system; 0 if it is not writable."""
        return shutil.disk_usage(folder).free if os.access(folder, os.W_OK) else 0

    def confinement(self) -> Holds:
        return holds(CONFINE)

    def memory(self) -> int:
        """Bytes of memory that are available."""
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        return int(found[1]) * 1024 if found else 0

    def cores(self) -> int:
        return len(os.sched_getaffinity(0))

    def real_time(self) -> bool:
        return may_hurry()

    def python(self) -> tuple[int, int]:
        return sys.version_info[:2]

    def images(self) -> dict[str, str]:
        """State of each image (built, stale or missing) by name; an image for use on demand appears only if built."""
        known = rooms.images()
        usual = known.usual()
        found = (image for image in known.list() if image.chosen)
        return {image.name: image.state for image in found if image.name in usual or image.state == "built"}

    def certificate(self) -> Certificate | None:
        """What is known of QEMU's virtual time; None: nothing yet."""
        return cast("Certificate | None", rooms.certificate())

    def libvirt(self) -> str:
        """Version of libvirt, after its embedded driver was opened once. Raises SundialError."""
        with tempfile.TemporaryDirectory(prefix="sundial-", dir="/tmp") as folder:
            root = Path(folder)
            root.chmod(0o711)
            return rooms.open_embedded_libvirt(root, PLACES.libvirt_cache)

    def runs_kvm(self, kernel: Path) -> bool:
        """True if a guest boots under KVM; tried once in each boot of the host, as runs do."""
        return runs_kvm(kernel, PLACES.kvm)

    def misread(self) -> list[str]:
        """Fields of known frames that tshark shows in another way than the harness reads. Raises SundialError."""
        with tempfile.TemporaryDirectory(prefix="sundial-") as folder:
            return rooms.misread(Path(folder))

    def is_root(self) -> bool:
        """True if this process is root."""
        return os.geteuid() == 0

    def daemons(self) -> dict[str, str]:
        """The usual libvirt daemons that are running: version or error by URI; none is started."""
        return rooms.libvirt_daemons()


def check_all(host: Host) -> list[Check]:
    """Every check, in the order in which to mend."""
    checks: tuple[Callable[[Host], Check], ...] = (
        check_python,
        check_qemu,
        check_plugins,
        check_libvirt,
        check_tshark,
        check_built,
        check_images,
        check_shm,
        check_cores,
        check_real_time,
        check_memory,
        check_kvm,
        check_daemons,
        check_confinement,
        check_netem,
        check_wireshark,
    )
    return [check(host) for check in checks]


def _unanswered(name: str) -> Check:
    return Check(name, State.LACKING, f"did not answer within {PROBE_S:g} s", "the host is busy: ask again")


def check_python(host: Host) -> Check:
    missing = [module for module in MODULES if not host.importable(module)]
    version = "{}.{}".format(*host.python())
    if host.python() < (3, 11):
        return Check("python", State.LACKING, version, "install Python 3.11 or newer")
    if missing:
        return Check("python", State.LACKING, f"{version} without {', '.join(missing)}", SETUP)
    return Check("python", State.GOOD, version)


def check_qemu(host: Host) -> Check:
    status, text = host.run([EMULATOR, "--version"])
    found = re.search(r"version (\d+\.\d+)(\S*)", text)
    if status == TIMED_OUT:
        return _unanswered("qemu")
    if status != 0 or found is None:
        return Check("qemu", State.LACKING, "not found", "apt-get install qemu-system-x86")
    version = found[1] + found[2]
    if not host.exists(PLUGIN):
        return Check("qemu", State.GOOD, version)
    certificate = host.certificate()
    if certificate is None:
        mend = "the first run under virtual time certifies it, or ./sundial doctor --certify"
        return Check("qemu", State.OPTIONAL, f"{version}, not certified for virtual time yet", mend)
    if certificate.difference is not None:
        words = f"{version} does not keep virtual time: {certificate.difference}"
        return Check("qemu", State.LACKING, words, OTHER_QEMU)
    return Check("qemu", State.GOOD, f"{version}, {'tested' if certificate.tested else 'certified on this host'}")


def check_plugins(host: Host) -> Check:
    """Whether this QEMU supports plugins: it then rejects a missing plugin by name, not as an unknown option."""
    status, text = host.run(
        [EMULATOR, "-M", "none", "-display", "none", "-nodefaults", "-plugin", "file=/nonexistent.so"]
    )
    if status == TIMED_OUT:
        return _unanswered("qemu plugins")
    if "Could not load plugin" in text:
        return Check("qemu plugins", State.GOOD, "supported")
    return Check("qemu plugins", State.LACKING, "not supported", "use a QEMU built with --enable-plugins (Debian's is)")


def check_libvirt(host: Host) -> Check:
    if not host.importable("libvirt"):
        mend = "apt-get install python3-libvirt libvirt-daemon libvirt-daemon-driver-qemu"
        return Check("libvirt", State.LACKING, "no Python binding", mend)
    try:
        return Check("libvirt", State.GOOD, f"{host.libvirt()}, embedded driver works")
    except SundialError as error:
        return Check("libvirt", State.LACKING, error.message, error.hint)


def check_tshark(host: Host) -> Check:
    status, text = host.run(["tshark", "--version"])
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    if status == TIMED_OUT:
        return _unanswered("tshark")
    if status != 0 or found is None:
        return Check("tshark", State.LACKING, "not found", "apt-get install tshark")
    if (int(found[1]), int(found[2])) < LEAST_TSHARK:
        return Check("tshark", State.LACKING, found[0], "install tshark {}.{} or newer".format(*LEAST_TSHARK))
    try:
        misread = host.misread()
    except SundialError as error:
        return Check("tshark", State.LACKING, f"{found[0]}: {error.message}", error.hint)
    if misread:
        what = f"{found[0]}, which shows {', '.join(misread)} of known frames in another way"
        return Check("tshark", State.LACKING, what, "install tshark 4.0 or 4.4, with which it was tested")
    if not loads_lua(host, started_by(host)):
        return Check("tshark", State.LACKING, f"{found[0]} without Lua", "install a tshark that was built with Lua")
    return Check("tshark", State.GOOD, found[0])


def started_by(host: Host) -> tuple[str, ...]:
    """Words in front of tshark and Wireshark: since 4.4 they load no dissector in Lua for root, and say nothing."""
    return AS_NOBODY if host.is_root() and not loads_lua(host) else ()


def loads_lua(host: Host, words: Sequence[str] = ()) -> bool:
    """False if tshark, which `words` start, answers and has loaded no dissector in Lua."""
    # tshark refuses -G behind another option.
    status, text = host.run([*words, "tshark", "-G", "protocols", "-X", f"lua_script:{DISSECTORS[0]}"])
    return status != 0 or DISSECTORS[0].stem in text.split()


def check_built(host: Host) -> Check:
    missing = [path.name for path in (PLUGIN, CONFINE, FABRIC) if not host.exists(path)]
    if missing:
        return Check("programs", State.LACKING, f"{' and '.join(missing)} not built", SETUP)
    return Check("programs", State.GOOD, "clock plugin, confinement and fabric are built")


def check_images(host: Host) -> Check:
    states = host.images()
    wrong = [f"{name} is {state}" for name, state in states.items() if state != "built"]
    if wrong or not states:
        return Check("images", State.LACKING, ", ".join(wrong) or "none", "./sundial images build --if-needed")
    return Check("images", State.GOOD, ", ".join(states))


def check_shm(host: Host) -> Check:
    free = host.free_bytes(Path("/dev/shm"))
    if free < LEAST_SHM:
        return Check("/dev/shm", State.LACKING, f"{free >> 20} MiB free", "mount -o remount,size=1G /dev/shm")
    return Check("/dev/shm", State.GOOD, f"{free >> 20} MiB free")


def check_cores(host: Host) -> Check:
    cores = host.cores()
    if cores < 2:
        return Check("cores", State.OPTIONAL, str(cores), "with one core, runs are correct but slow")
    return Check("cores", State.GOOD, str(cores))


def check_real_time(host: Host) -> Check:
    """Real-time scheduling, so that runs under virtual time do not wait for the host's other work."""
    if host.real_time():
        return Check("scheduling", State.GOOD, "real-time (SCHED_RR) for guests and fabric")
    mend = "on a busy host runs are correct but several times slower; allow CAP_SYS_NICE or an rtprio limit of 1"
    return Check("scheduling", State.OPTIONAL, "real-time scheduling is not permitted", mend)


def check_memory(host: Host) -> Check:
    free = host.memory()
    if free < LEAST_MEMORY:
        return Check(
            "memory", State.LACKING, f"{free >> 20} MiB free", "a run of two guests needs 1 GiB; stop other programs"
        )
    return Check("memory", State.GOOD, f"{free >> 20} MiB free")


def check_kvm(host: Host) -> Check:
    """Whether Linux really runs under KVM: the device can exist, run a BIOS and then hang."""
    mend = "KVM is used only with --clock real; without it, TCG is used"
    if not host.exists(Path("/dev/kvm")):
        return Check("kvm", State.OPTIONAL, "no /dev/kvm", mend)
    kernel = next(filter(host.exists, probe_kernels(PLACES.checkout, PLACES.state)), None)
    if kernel is None:
        return Check("kvm", State.OPTIONAL, "not checked: no image is built yet", "./sundial images build --if-needed")
    if host.runs_kvm(kernel):
        return Check("kvm", State.GOOD, "runs a guest")
    return Check("kvm", State.OPTIONAL, f"/dev/kvm is present, but no guest booted within {PROBE_S:g} s", mend)


def check_daemons(host: Host) -> Check:
    """The daemons that --connect can reach. The embedded driver needs none of them."""
    daemons = host.daemons() if host.importable("libvirt") else {}
    found = ", ".join(f"{uri} ({words})" for uri, words in daemons.items())
    if not found:
        mend = "needed only for --connect: apt-get install libvirt-daemon-system"
        return Check("libvirt daemons", State.OPTIONAL, "none is running", mend)
    return Check("libvirt daemons", State.GOOD, found)


def check_confinement(host: Host) -> Check:
    """What keeps a QEMU that a guest has taken over from the rest of the host."""
    found = host.confinement()
    held = {
        "Landlock": found.landlock > 0,
        "a network namespace": found.network,
        "a separate user": found.user,
    }
    has = ", ".join(name for name, there in held.items() if there) or "QEMU's own sandbox only"
    lacking = " and ".join(name for name, there in held.items() if not there)
    if not lacking:
        return Check("confinement", State.GOOD, has)
    mend = f"this host cannot confine QEMU by {lacking}; run only guests that you trust"
    return Check("confinement", State.OPTIONAL, has, mend)


def check_netem(host: Host) -> Check:
    status, _ = host.run(["modprobe", "--dry-run", "--quiet", "sch_netem"])
    if status == 0:
        return Check("sch_netem", State.GOOD, "the host's kernel has it")
    return Check("sch_netem", State.OPTIONAL, "not in the host's kernel", "not needed: netem runs in a guest")


def check_wireshark(host: Host) -> Check:
    found = host.which("wireshark")
    if found is None:
        return Check("wireshark", State.OPTIONAL, "not found", "to view captures: apt-get install wireshark")
    return Check("wireshark", State.GOOD, found)
