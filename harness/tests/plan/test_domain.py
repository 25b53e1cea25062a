# SPDX-License-Identifier: Apache-2.0
"""Domains: QEMU's arguments, what a snapshot's key covers, and that libvirt takes the XML."""

import dataclasses
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from sundial.model.load import load_experiments
from sundial.plan.build import (
    Boot,
    MachineFiles,
    Plan,
    boot_plugin,
    domain_spec,
    machine_memory,
    plan_run,
    run_plugin,
    watch_plugin,
)
from sundial.plan.domain import QEMU_NAMESPACE, DomainSpec, FrameStream, MemoryFile, RootDisk, domain_xml, machine_flags
from sundial.plan.paths import RunPaths

BOOT = Boot(
    Path("/usr/bin/qemu-system-x86_64"), Path("/i/kernel"), Path("/i/initrd"), "console=ttyS0 quiet", "k" * 64, "i" * 64
)
FILES = MachineFiles(console=Path("/r/console.log"), samples=Path("/r/samples.jsonl"), job=Path("/r/job"))
LIBRARY = Path("/clock/sundial-clock.so")


def plan(paths: RunPaths, topology: str = "two-hosts-netem", clock: str = "virtual") -> Plan:
    return plan_run(load_experiments("quickstart", topology=topology, clock=clock)[0], paths)  # type: ignore[arg-type]


def spec_of(made: Plan, machine: str, **changes: object) -> DomainSpec:
    node = made.network.node(machine)
    plugin = run_plugin(made, node, LIBRARY, supervisor=77, report=Path("/r/clock.json"), zero_ns=5)
    return dataclasses.replace(domain_spec(made, node, f"x-{machine}", BOOT, FILES, plugin=plugin), **changes)  # type: ignore[arg-type]


def arguments(spec: DomainSpec) -> list[str]:
    root = ET.fromstring(domain_xml(spec))
    return [arg.attrib["value"] for arg in root.iter(f"{{{QEMU_NAMESPACE}}}arg")]


def test_what_qemu_is_told_under_virtual_time(paths: RunPaths) -> None:
    assert arguments(spec_of(plan(paths), "netem", incoming=True)) == [
        "-netdev",
        "dgram,id=n0,local.type=unix,local.path=/run/s/q-netem-0.sock,remote.type=unix,remote.path=/run/s/f-netem-0.sock",
        "-netdev",
        "dgram,id=n1,local.type=unix,local.path=/run/s/q-netem-1.sock,remote.type=unix,remote.path=/run/s/f-netem-1.sock",
        "-no-reboot",
        "-seed",
        "1",
        "-uuid",
        "53554e44-4941-4c00-0000-000000000001",
        "-icount",
        "shift=3,sleep=off,align=off",
        "-global",
        "migration.announce-rounds=0",
        "-device",
        "virtio-serial-pci,id=records,ioeventfd=off,bus=pcie.0,addr=0x8",
        "-device",
        "virtserialport,bus=records.0,nr=1,chardev=samples,name=sundial.samples",
        "-device",
        "virtio-net-pci,netdev=n0,mac=02:53:44:ff:00:00,tx=timer,x-txtimer=1,ioeventfd=off,guest_announce=off,romfile=,bus=pcie.0,addr=0x10",
        "-device",
        "virtio-net-pci,netdev=n1,mac=02:53:44:ff:00:01,tx=timer,x-txtimer=1,ioeventfd=off,guest_announce=off,romfile=,bus=pcie.0,addr=0x11",
        "-chardev",
        "file,id=samples,path=/r/samples.jsonl",
        "-fw_cfg",
        "name=opt/sundial/job,file=/r/job",
        "-plugin",
        "file=/clock/sundial-clock.so,mode=run,shm=/dev/shm/sundial-x,machine=1,nics=2,shift=3,zero=5,report=/r/clock.json,"
        "supervisor=77",
        "-incoming",
        "defer",
    ]


def test_the_real_clock_has_neither_icount_nor_timers(paths: RunPaths) -> None:
    words = " ".join(
        arguments(spec_of(plan(paths, clock="real"), "client", plugin=watch_plugin(LIBRARY, supervisor=7)))
    )
    assert "icount" not in words
    assert "txtimer" not in words
    assert words.endswith("-plugin file=/clock/sundial-clock.so,mode=watch,supervisor=7")


def test_a_snapshot_and_its_runs_have_the_same_flags(paths: RunPaths) -> None:
    made = plan(paths)
    node = made.network.node("client")
    run = spec_of(made, "client", incoming=True)
    boot = spec_of(
        made, "client", plugin=boot_plugin(node, LIBRARY, supervisor=1, report=Path("/b.json")), job=Path("/b")
    )
    assert machine_flags(run) == machine_flags(boot) == machine_flags(spec_of(made, "server"))
    assert not any(str(path) in flag for flag in machine_flags(run) for path in ("/r/", "/run", LIBRARY))
    for change in ({"shift": 4}, {"nics": run.nics * 2}, {"exec_socket": Path("/e")}):
        assert machine_flags(spec_of(made, "client", **change)) != machine_flags(run)


def test_interactive_machines_have_a_console_socket_and_a_command_port(paths: RunPaths) -> None:
    spec = spec_of(plan(paths), "client", console_socket=Path("/s/c.sock"), exec_socket=Path("/s/e.sock"))
    words = arguments(spec)
    assert "socket,id=exec,server=on,wait=off,path=/s/e.sock" in words
    assert "virtserialport,bus=records.0,nr=2,chardev=exec,name=sundial.exec" in words
    serial = ET.fromstring(domain_xml(spec)).find("devices/serial")
    assert serial is not None
    assert [(child.tag, dict(child.attrib)) for child in serial] == [
        ("source", {"mode": "bind", "path": "/s/c.sock"}),
        ("log", {"file": "/r/console.log", "append": "off"}),
        ("target", {"type": "isa-serial", "port": "0"}),
    ]


def test_a_machine_on_another_host_dials_everything_but_its_command_port(paths: RunPaths) -> None:
    there = {"console": Path("/t/c"), "samples": Path("/t/s"), "exec_socket": Path("/t/x")}
    spec = spec_of(plan(paths, clock="real"), "netem", dials=True, nics=(FrameStream(Path("/t/n,0")),), **there)
    words = arguments(spec)
    assert "stream,id=n0,server=off,addr.type=unix,addr.path=/t/n,,0" in words
    assert "socket,id=samples,server=off,path=/t/s" in words
    assert "socket,id=exec,server=on,wait=off,path=/t/x" in words
    assert not [each for each in words if each.startswith(("dgram", "file,"))]
    serial = ET.fromstring(domain_xml(spec)).find("devices/serial")
    assert serial is not None
    assert [(child.tag, dict(child.attrib)) for child in serial] == [
        ("source", {"mode": "connect", "path": "/t/c"}),
        ("target", {"type": "isa-serial", "port": "0"}),
    ]


@pytest.mark.parametrize(("shared", "word"), [(True, "on"), (False, "off")])
def test_memory_in_a_file_takes_the_place_of_libvirts(paths: RunPaths, shared: bool, word: str) -> None:
    made = plan(paths)
    memory = MemoryFile(Path("/s,/memory"), shared=shared)
    spec = spec_of(made, "client", memory_file=memory)
    backend = f"memory-backend-file,id=sundial.memory,size={spec.memory},mem-path=/s,,/memory,share={word}"
    words = arguments(spec)
    assert words[words.index(backend) - 1] == "-object"
    assert words[words.index("memory-backend=sundial.memory") - 1] == "-machine"
    assert machine_flags(spec) == machine_flags(spec_of(made, "client"))


def test_commas_in_paths_are_doubled(paths: RunPaths) -> None:
    assert "file,id=samples,path=/a,,b/s" in arguments(spec_of(plan(paths), "client", samples=Path("/a,b/s")))


def test_virtual_time_refuses_kvm(paths: RunPaths) -> None:
    with pytest.raises(ValueError, match="virtual time needs TCG"):
        domain_xml(spec_of(plan(paths), "client", kvm=True))


@pytest.mark.parametrize(
    "changes", [{}, {"console_socket": Path("/s/c")}, {"run_as": (1000, 1000)}, {"kvm": True}, {"dials": True}]
)
def test_libvirt_takes_the_xml_by_its_own_schema(paths: RunPaths, changes: dict[str, object]) -> None:
    libvirt = pytest.importorskip("libvirt", reason="python3-libvirt is not installed")
    clock = "real" if changes.get("kvm") else "virtual"
    text = domain_xml(spec_of(plan(paths, clock=clock), "client", **changes))
    connection = libvirt.open("test:///default")
    try:
        if changes.get("kvm"):
            text = text.replace('type="kvm"', 'type="test"', 1)
        domain = connection.defineXMLFlags(text, libvirt.VIR_DOMAIN_DEFINE_VALIDATE)
        assert domain.name() == "x-client"
        domain.undefine()
    finally:
        connection.close()


def test_everything_ends_the_machine(paths: RunPaths) -> None:
    root = ET.fromstring(domain_xml(spec_of(plan(paths), "client")))
    assert [root.findtext(f"on_{event}") for event in ("poweroff", "reboot", "crash")] == ["destroy"] * 3
    assert root.findtext("vcpu") == "1"
    assert {feature.get("name") for feature in root.findall("cpu/feature[@policy='disable']")} == {"rdrand", "cx16"}
    assert root.find("clock/timer[@name='rtc'][@track='guest']") is not None


@pytest.mark.parametrize(("clock", "kvm", "less"), [("virtual", False, 0), ("real", False, 1), ("real", True, 0)])
def test_a_clock_of_the_host_is_no_clock_of_an_emulated_machine(
    paths: RunPaths, clock: str, kvm: bool, less: int
) -> None:
    root = ET.fromstring(domain_xml(spec_of(plan(paths, clock=clock), "client", kvm=kvm)))
    assert len(root.findall("cpu/feature[@policy='disable'][@name='tsc']")) == less


@pytest.mark.parametrize(
    ("qemu", "more_mib"),
    [("7.2.22 Debian 1:7.2", 0), ("", 0), ("8.2.2", 24), ("10.0.13 Debian 1:10.0.13", 24), ("11.1.3", 24)],
)
def test_machine_has_memory_for_the_queues_of_its_qemu(paths: RunPaths, qemu: str, more_mib: int) -> None:
    made = plan(paths)
    node = made.network.node("client")
    spec = domain_spec(made, node, "x", dataclasses.replace(BOOT, qemu=qemu), FILES)
    assert spec.memory == node.memory + (more_mib << 20)


def test_guest_that_does_not_fill_queues_has_its_own_memory(paths: RunPaths) -> None:
    node = plan_run(load_experiments("mbcf-operations")[0], paths).network.nodes[0]
    assert machine_memory(node, "10.0.13") == node.memory


def test_a_file_system_is_mapped_read_only_and_its_path_is_not_part_of_the_machine(paths: RunPaths) -> None:
    spec = spec_of(plan(paths), "client", disk=RootDisk(Path("/roots/a,b"), 12 << 20))
    flags = machine_flags(spec)
    assert "nvdimm,memdev=root,id=root0,unarmed=on" in flags
    assert f"{spec.memory >> 20}M,slots=1,maxmem={(spec.memory >> 20) + 12 + 1024}M" in flags
    assert not any("/roots" in flag for flag in flags)
    mapped = "memory-backend-file,id=root,share=on,readonly=on,mem-path=/roots/a,,b,size=12582912"
    assert mapped in arguments(spec)
