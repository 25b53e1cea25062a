# SPDX-License-Identifier: Apache-2.0
"""One machine as libvirt's domain XML.

A restored machine must be built exactly as the one whose state was saved. So everything visible to the guest comes from
the fields that `machine_flags` names, and a run differs from its snapshot only in paths, plugin arguments and
`incoming`. The MAC address in the device is always the same, because identity comes with the job. Options without an
element in libvirt are in `<qemu:commandline>`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from sundial import EPOCH_NS
from sundial.model.topology import Clock

QEMU_NAMESPACE = "http://libvirt.org/schemas/domain/qemu/1.0"
SAMPLES_PORT = "sundial.samples"
EXEC_PORT = "sundial.exec"
LOOPBACK_PORT = "sundial.loopback"
JOB_FILE = "opt/sundial/job"
QEMU_SEED = 1
"""Seed of QEMU's random source, the same for all machines: a guest's entropy comes from its job."""

GUEST_UUID = "53554e44-4941-4c00-0000-000000000001"
"""The machine's UUID for every guest: a boot must not depend on its run."""

DISK_WORDS = "swiotlb=noforce"
"""Words on the command line of a Linux kernel that maps a file system. It would reserve up to 64 MiB for devices that
cannot reach memory above 4 GiB, where the file system is; no device of these machines is such."""

_MEMORY = "sundial.memory"
_DEVICE_MAC = "02:53:44:ff:00:{:02x}"
_SERIAL_SLOT = 0x08
_FIRST_NIC_SLOT = 0x10
_MAPPED_SLOT = 0x18
_MAPPED_BYTES = "16M"
_SLOT_SPARE = 1 << 30
"""Address space beside memory and NVDIMM, for their alignment."""


@dataclass(frozen=True)
class FrameSockets:
    """The unix datagram sockets of one interface: QEMU's own and the fabric's."""

    machine_end: Path
    fabric_end: Path


@dataclass(frozen=True)
class FrameStream:
    """The unix stream socket that QEMU dials for one interface: each frame behind its length."""

    path: Path


@dataclass(frozen=True)
class Plugin:
    """The clock plugin and its arguments, in order."""

    path: Path
    arguments: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True)
class MemoryFile:
    """A file with a machine's main memory, of the same size."""

    path: Path
    shared: bool
    """True if the guest's writes go to the file; otherwise they are private to the machine (copy-on-write)."""


@dataclass(frozen=True)
class RootDisk:
    """A file with a file system that the guest maps, read-only: an NVDIMM. A device with requests would complete them
    when the host has done so, and virtual time would depend on the host."""

    path: Path
    size: int


@dataclass(frozen=True)
class DomainSpec:
    """All data of a domain. Sizes in bytes; paths absolute."""

    name: str
    """libvirt's name, unique for each run and machine."""
    memory: int
    translations_mib: int
    """QEMU's cache of translated code, without KVM."""
    shift: int
    """log2 of the ns of an instruction; used under virtual time."""
    clock: Clock
    emulator: Path
    kernel: Path
    initrd: Path
    cmdline: str
    console: Path
    """Log of the console."""
    samples: Path
    """File of the guest's records."""
    job: Path
    """File that fw_cfg serves."""
    nics: tuple[FrameSockets | FrameStream, ...]
    mapped: bool = False
    """True if it has an adapter whose memory the guest maps."""
    disk: RootDisk | None = None
    """File system that it maps."""
    memory_file: MemoryFile | None = None
    """File with its memory; None: anonymous memory."""
    plugin: Plugin | None = None
    console_socket: Path | None = None
    """Unix socket for input to the console, for interactive machines."""
    exec_socket: Path | None = None
    """Unix socket to the guest's command port, for interactive machines."""
    loopback: Path | None = None
    """File of the guest's record of its loopback; None: it is not captured."""
    incoming: bool = False
    """Wait for a saved state instead of booting."""
    kvm: bool = False
    """Hardware acceleration; real clock only."""
    policy: Path | None = None
    """Policy for harness/confine, which then takes the place of the emulator."""
    run_as: tuple[int, int] | None = None
    """User and group of QEMU under a system libvirtd; None: libvirt's choice."""
    again: bool = False
    """True if it was started before: its console and its samples go on."""
    dials: bool = False
    """True if `console` and `samples` are unix sockets that QEMU dials: the machine is on another host."""


def domain_xml(spec: DomainSpec) -> str:
    """The domain for libvirt. Raises ValueError for KVM under virtual time."""
    if spec.kvm and spec.clock == "virtual":
        raise ValueError("virtual time needs TCG: KVM cannot be gated")
    ET.register_namespace("qemu", QEMU_NAMESPACE)
    domain = ET.Element("domain", type="kvm" if spec.kvm else "qemu")
    _text(domain, "name", spec.name)
    _text(domain, "uuid", str(uuid5(NAMESPACE_OID, spec.name)))
    _text(domain, "memory", str(spec.memory), unit="b")
    _text(domain, "vcpu", "1", placement="static")
    _boot(domain, spec)
    features = ET.SubElement(domain, "features")
    ET.SubElement(features, "acpi")
    if not spec.kvm:
        # QEMU's default is a quarter of a GiB.
        _text(ET.SubElement(features, "tcg"), "tb-cache", str(spec.translations_mib), unit="MiB")
    _cpu(domain, spec)
    _clock(domain, spec)
    for event in ("poweroff", "reboot", "crash"):
        _text(domain, f"on_{event}", "destroy")
    _devices(domain, spec)
    if spec.run_as is not None:
        label = ET.SubElement(domain, "seclabel", type="static", model="dac", relabel="no")
        _text(label, "label", "+{}:+{}".format(*spec.run_as))
    commandline = ET.SubElement(domain, f"{{{QEMU_NAMESPACE}}}commandline")
    for value in (*_netdevs(spec), *_machine_arguments(spec), *_run_arguments(spec)):
        ET.SubElement(commandline, f"{{{QEMU_NAMESPACE}}}arg", value=value)
    if spec.policy is not None:
        ET.SubElement(commandline, f"{{{QEMU_NAMESPACE}}}env", name="SUNDIAL_CONFINE", value=str(spec.policy))
    ET.indent(domain)
    return ET.tostring(domain, encoding="unicode") + "\n"


def machine_flags(spec: DomainSpec) -> tuple[str, ...]:
    """QEMU arguments that define the machine and are part of its snapshot's key; they have no path of a run."""
    return tuple(_machine_arguments(spec))


def _boot(domain: ET.Element, spec: DomainSpec) -> None:
    system = ET.SubElement(domain, "os")
    _text(system, "type", "hvm", arch="x86_64", machine="q35")
    _text(system, "kernel", str(spec.kernel))
    _text(system, "initrd", str(spec.initrd))
    _text(system, "cmdline", spec.cmdline)


def _cpu(domain: ET.Element, spec: DomainSpec) -> None:
    if spec.kvm:
        ET.SubElement(domain, "cpu", mode="host-passthrough", check="none", migratable="off")
        return
    cpu = ET.SubElement(domain, "cpu", mode="custom", match="exact", check="none")
    _text(cpu, "model", "qemu64", fallback="forbid")
    ET.SubElement(cpu, "feature", policy="disable", name="rdrand")
    # QEMU emulates CMPXCHG16B with wrong flags where a translation block was cut short: clock/README.md.
    ET.SubElement(cpu, "feature", policy="disable", name="cx16")
    if spec.clock == "real":
        # It is the host's, but the timers that calibrate it are QEMU's: on a busy host Linux made 0.1 s of a second.
        ET.SubElement(cpu, "feature", policy="disable", name="tsc")


def _clock(domain: ET.Element, spec: DomainSpec) -> None:
    if spec.clock == "virtual":
        clock = ET.SubElement(domain, "clock", offset="absolute", start=str(EPOCH_NS // 10**9))
        ET.SubElement(clock, "timer", name="rtc", track="guest")
    else:
        clock = ET.SubElement(domain, "clock", offset="utc")
    ET.SubElement(clock, "timer", name="hpet", present="yes")


def _devices(domain: ET.Element, spec: DomainSpec) -> None:
    devices = ET.SubElement(domain, "devices")
    _text(devices, "emulator", str(spec.emulator))
    ET.SubElement(devices, "controller", type="usb", index="0", model="none")
    if spec.dials:
        serial = ET.SubElement(devices, "serial", type="unix")
        ET.SubElement(serial, "source", mode="connect", path=str(spec.console))
    elif spec.console_socket is None:
        serial = ET.SubElement(devices, "serial", type="file")
        ET.SubElement(serial, "source", path=str(spec.console), append="off")
    else:
        serial = ET.SubElement(devices, "serial", type="unix")
        ET.SubElement(serial, "source", mode="bind", path=str(spec.console_socket))
        ET.SubElement(serial, "log", file=str(spec.console), append="on" if spec.again else "off")
    ET.SubElement(serial, "target", type="isa-serial", port="0")
    ET.SubElement(devices, "memballoon", model="none")


def _machine_arguments(spec: DomainSpec) -> Iterator[str]:
    # libvirt's UUID differs from run to run, and the guest reads it in its firmware and mixes it into its entropy.
    yield from ("-no-reboot", "-seed", str(QEMU_SEED), "-uuid", GUEST_UUID)
    if spec.clock == "virtual":
        yield from ("-icount", f"shift={spec.shift},sleep=off,align=off")
        yield from ("-global", "migration.announce-rounds=0")
    if spec.disk is not None:
        most = spec.memory + spec.disk.size + _SLOT_SPARE
        yield from ("-machine", "nvdimm=on", "-m", f"{spec.memory >> 20}M,slots=1,maxmem={most >> 20}M")
        yield from ("-device", "nvdimm,memdev=root,id=root0,unarmed=on")
    offload = "ioeventfd=off," if spec.clock == "virtual" else ""
    yield from ("-device", f"virtio-serial-pci,id=records,{offload}bus=pcie.0,addr={_SERIAL_SLOT:#x}")
    yield from ("-device", f"virtserialport,bus=records.0,nr=1,chardev=samples,name={SAMPLES_PORT}")
    if spec.exec_socket is not None:
        yield from ("-device", f"virtserialport,bus=records.0,nr=2,chardev=exec,name={EXEC_PORT}")
    if spec.loopback is not None:
        yield from ("-device", f"virtserialport,bus=records.0,nr=3,chardev=loopback,name={LOOPBACK_PORT}")
    # A restored adapter that could announce itself has lost the timer for it: with the next reset, such as the one of a
    # kernel that powers off, QEMU would end.
    transmit = "tx=timer,x-txtimer=1,ioeventfd=off,guest_announce=off," if spec.clock == "virtual" else ""
    for number in range(len(spec.nics)):
        place = f"bus=pcie.0,addr={_FIRST_NIC_SLOT + number:#x}"
        mac = _DEVICE_MAC.format(number)
        yield from ("-device", f"virtio-net-pci,netdev=n{number},mac={mac},{transmit}romfile=,{place}")

    if spec.mapped:
        # The clock plugin lays the adapter over its memory; without `master` it could not be saved.
        yield from ("-object", f"memory-backend-ram,id=vmmc0,size={_MAPPED_BYTES}")
        place = f"bus=pcie.0,addr={_MAPPED_SLOT:#x}"
        yield from ("-device", f"ivshmem-plain,memdev=vmmc0,master=on,{place}")


def _netdevs(spec: DomainSpec) -> Iterator[str]:
    for number, nic in enumerate(spec.nics):
        if isinstance(nic, FrameStream):
            where = f"addr.type=unix,addr.path={escaped(nic.path)}"
            yield from ("-netdev", f"stream,id=n{number},server=off,{where}")
            continue
        own, far = escaped(nic.machine_end), escaped(nic.fabric_end)
        ends = f"local.type=unix,local.path={own},remote.type=unix,remote.path={far}"
        yield from ("-netdev", f"dgram,id=n{number},{ends}")


def _run_arguments(spec: DomainSpec) -> Iterator[str]:
    if spec.memory_file is not None:
        shared = "on" if spec.memory_file.shared else "off"
        path = escaped(spec.memory_file.path)
        yield from ("-object", f"memory-backend-file,id={_MEMORY},size={spec.memory},mem-path={path},share={shared}")
        # Later options win: the memory that libvirt made stays untouched, and costs nothing.
        yield from ("-machine", f"memory-backend={_MEMORY}")
    if spec.disk is not None:
        where = f"mem-path={escaped(spec.disk.path)},size={spec.disk.size}"
        yield from ("-object", f"memory-backend-file,id=root,share=on,readonly=on,{where}")
    samples = "socket,id=samples,server=off" if spec.dials else "file,id=samples"
    samples += ",append=on" if spec.again else ""
    yield from ("-chardev", f"{samples},path={escaped(spec.samples)}")
    if spec.exec_socket is not None:
        yield from ("-chardev", f"socket,id=exec,server=on,wait=off,path={escaped(spec.exec_socket)}")
    if spec.loopback is not None:
        yield from ("-chardev", f"file,id=loopback,path={escaped(spec.loopback)}")
    yield from ("-fw_cfg", f"name={JOB_FILE},file={escaped(spec.job)}")
    if spec.plugin is not None:
        arguments = "".join(f",{name}={escaped(value)}" for name, value in spec.plugin.arguments)
        yield from ("-plugin", f"file={escaped(spec.plugin.path)}{arguments}")
    if spec.incoming:
        yield from ("-incoming", "defer")


def escaped(value: Path | str | int) -> str:
    """A value for QEMU's command line, with commas doubled."""
    return str(value).replace(",", ",,")


def _text(parent: ET.Element, tag: str, text: str, **attributes: str) -> ET.Element:
    child = ET.SubElement(parent, tag, attributes)
    child.text = text
    return child
