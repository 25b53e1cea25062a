# SPDX-License-Identifier: Apache-2.0
"""What virsh shows of machines, for those of the embedded driver: virsh itself cannot reach them.

Words and layout are virsh's (9.0). Only what reads is here: a command that changed a machine would break its run.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sundial.errors import BadInput

STATES = ("no state", "running", "idle", "paused", "in shutdown", "shut off", "crashed", "pmsuspended")
VCPU_STATES = ("offline", "running", "blocked")
REASONS = {
    1: ("unknown", "booted", "migrated", "restored", "from snapshot", "unpaused", "migration canceled"),
    3: ("unknown", "user", "migrating", "saving", "dumping", "I/O error", "watchdog", "from snapshot", "shutting down"),
}
"""Of the states that a machine is seen in here, by libvirt's numbers."""
QMP_READS = ("query-", "qom-list", "qom-get")
HMP_READS = ("info", "print", "p", "x", "xp")
CHANGING = (
    *("attach-device", "create", "define", "destroy", "detach-device", "domrename", "inject-nmi", "managedsave"),
    *("migrate", "reboot", "reset", "restore", "resume", "save", "send-key", "setmem", "setvcpus", "shutdown"),
    *("snapshot-create", "start", "suspend", "undefine", "update-device"),
)


@dataclass(frozen=True)
class Asked:
    """A command line, taken apart."""

    domain: Any
    flags: frozenset[str]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """What a command takes beside a machine, and how it answers."""

    about: str
    answer: Callable[[Any, Asked], str]
    domain: bool = True
    optional: bool = False
    """The machine may be left out: all are meant."""
    flags: frozenset[str] = field(default_factory=frozenset)
    words: bool = False
    """Further words, as many as there are."""


def answer(handle: Any, names: dict[str, str], argv: Sequence[str]) -> str:
    """What virsh would print; `names` are libvirt's by machine. Raises BadInput, and what libvirt raises."""
    if not argv or argv[0] == "help":
        return overview()
    name, *words = argv
    command = COMMANDS.get(name)
    if command is None and name in CHANGING:
        raise BadInput(
            f"{name} would break the run that the machine is in",
            allowed=", ".join(COMMANDS),
            hint="./sundial exec MACHINE -- COMMAND acts in a machine, ./sundial down ends them all",
        )
    if command is None:
        raise BadInput(f"unknown command: {name!r}", allowed=", ".join(COMMANDS))
    return command.answer(handle, _parse(handle, names, name, command, words)) + "\n"


def overview() -> str:
    """All commands, a line each."""
    return "".join(f"    {name:<22} {command.about}\n" for name, command in COMMANDS.items())


def _parse(handle: Any, names: dict[str, str], name: str, command: Command, words: Sequence[str]) -> Asked:
    flags: set[str] = set()
    data: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--domain" and command.domain and not data:
            data += [value for value in (next(rest, None),) if value is not None]
        elif word.startswith("--") and word.removeprefix("--") in command.flags:
            flags.add(word.removeprefix("--"))
        elif word.startswith("--"):
            has = ", ".join(f"--{flag}" for flag in sorted(command.flags)) or None
            raise BadInput(f"command {name!r} doesn't support option {word}", allowed=has)
        else:
            data.append(word)
    if command.domain and not data and not command.optional:
        raise BadInput(f"command {name!r} requires <domain> option", allowed=", ".join(names))
    own = data[1:] if command.domain else data
    if own and not command.words:
        raise BadInput(f"unexpected data {own[0]!r}")
    return Asked(_domain(handle, names, data[0]) if command.domain and data else None, frozenset(flags), tuple(own))


def _domain(handle: Any, names: dict[str, str], wanted: str) -> Any:
    """By number, UUID, libvirt's name or the machine's own."""
    for domain in _domains(handle):
        if wanted in (str(domain.ID()), domain.UUIDString(), domain.name()) or names.get(wanted) == domain.name():
            return domain
    raise BadInput(f"failed to get domain {wanted!r}", allowed=", ".join(names))


def _domains(handle: Any) -> list[Any]:
    return sorted(handle.listAllDomains(), key=lambda domain: domain.ID())


def _table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        " " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    lines.insert(1, "-" * sum(width + 3 for width in widths))
    return "".join(f"{line}\n" for line in lines)


def _list(handle: Any, asked: Asked) -> str:
    domains = [] if "inactive" in asked.flags else _domains(handle)
    shown = [
        [str(domain.ID())] * ("id" in asked.flags)
        + [domain.UUIDString()] * ("uuid" in asked.flags)
        + [domain.name()] * ("name" in asked.flags)
        for domain in domains
    ]
    if asked.flags & {"id", "uuid", "name"}:
        return "".join(" ".join(cells) + "\n" for cells in shown)
    rows = [[str(domain.ID()), domain.name(), STATES[domain.state()[0]]] for domain in domains]
    return _table([["Id", "Name", "State"], *rows])


def _dominfo(handle: Any, asked: Asked) -> str:
    domain = asked.domain
    state, most_kib, memory_kib, vcpus, cpu_ns = domain.info()
    security = handle.getSecurityModel()
    facts = {
        "Id": domain.ID(),
        "Name": domain.name(),
        "UUID": domain.UUIDString(),
        "OS Type": domain.OSType(),
        "State": STATES[state],
        "CPU(s)": vcpus,
        "CPU time": f"{cpu_ns / 1e9:.1f}s",
        "Max memory": f"{most_kib} KiB",
        "Used memory": f"{memory_kib} KiB",
        "Persistent": _yes(domain.isPersistent()),
        "Autostart": "enable" if domain.autostart() else "disable",
        "Managed save": _yes(domain.hasManagedSaveImage()),
        "Security model": security[0],
        "Security DOI": security[1],
    }
    lines = [f"{f'{name}:':<15} {value}\n" for name, value in facts.items()]
    messages = domain.messages()
    lines += [f"{'' if number else 'Messages:':<15} {text}\n" for number, text in enumerate(messages)]
    return "".join(lines)


def _domstate(handle: Any, asked: Asked) -> str:
    state, reason = asked.domain.state()
    known = REASONS.get(state, ())
    why = f" ({known[reason] if reason < len(known) else 'unknown'})" if "reason" in asked.flags else ""
    return f"{STATES[state]}{why}\n"


def _domstats(handle: Any, asked: Asked) -> str:
    found = handle.domainListGetStats([asked.domain]) if asked.domain is not None else handle.getAllDomainStats()
    return "\n".join(
        "".join(
            [f"Domain: {domain.name()!r}\n", *(f"  {name}={_typed(value)}\n" for name, value in statistics.items())]
        )
        for domain, statistics in sorted(found, key=lambda each: each[0].ID())
    )


def _vcpuinfo(handle: Any, asked: Asked) -> str:
    vcpus, affinities = asked.domain.vcpus()
    shown = []
    for (number, state, cpu_ns, cpu), affinity in zip(vcpus, affinities, strict=True):
        lines = [("VCPU", number), ("CPU", cpu if cpu >= 0 else "N/A"), ("State", VCPU_STATES[state])]
        lines += [("CPU time", f"{cpu_ns / 1e9:.1f}s")] if cpu_ns else []
        lines += [("CPU Affinity", "".join("y" if allowed else "-" for allowed in affinity))]
        shown.append("".join(f"{f'{name}:':<15} {value}\n" for name, value in lines))
    return "\n".join(shown)


def _vcpucount(handle: Any, asked: Asked) -> str:
    most, now = asked.domain.maxVcpus(), asked.domain.info()[3]
    return "".join(f"{name:<12} {'live':<12} {count:3}\n" for name, count in (("maximum", most), ("current", now)))


def _monitor(handle: Any, asked: Asked) -> str:
    text = " ".join(asked.words)
    hmp = "hmp" in asked.flags
    try:
        command = text.split()[0] if hmp else json.loads(text)["execute"]
    except (IndexError, KeyError, TypeError, ValueError):
        raise BadInput(
            f"{text!r} is not a command of QEMU", allowed='{"execute": "query-..."}, or --hmp info ...'
        ) from None
    if command not in HMP_READS if hmp else not str(command).startswith(QMP_READS):
        reads = ", ".join(HMP_READS) if hmp else ", ".join(QMP_READS)
        raise BadInput(f"{command} may change the machine, which would break its run", allowed=reads)
    answered: str = importlib.import_module("libvirt_qemu").qemuMonitorCommand(asked.domain, text, int(hmp))
    if "pretty" in asked.flags:
        return json.dumps(json.loads(answered), indent=2)
    return f"{answered}\n"


def _yes(value: int) -> str:
    return "yes" if value else "no"


def _typed(value: object) -> object:
    if isinstance(value, bool):
        return _yes(value)
    return f"{value:f}" if isinstance(value, float) else value


COMMANDS = {
    "list": Command("list domains", _list, domain=False, flags=frozenset(("all", "inactive", "id", "name", "uuid"))),
    "dominfo": Command("domain information", _dominfo),
    "domstate": Command("domain state", _domstate, flags=frozenset(("reason",))),
    "domid": Command("convert a domain name or UUID to domain id", lambda _, asked: f"{asked.domain.ID()}\n"),
    "domname": Command("convert a domain id or UUID to domain name", lambda _, asked: f"{asked.domain.name()}\n"),
    "domuuid": Command("convert a domain name or id to domain UUID", lambda _, asked: f"{asked.domain.UUIDString()}\n"),
    "dumpxml": Command("domain information in XML", lambda _, asked: str(asked.domain.XMLDesc())),
    "domstats": Command("get statistics about one or multiple domains", _domstats, optional=True),
    "vcpuinfo": Command("detailed domain vcpu information", _vcpuinfo),
    "vcpucount": Command("domain vcpu counts", _vcpucount),
    "qemu-monitor-command": Command("QEMU Monitor Command", _monitor, flags=frozenset(("hmp", "pretty")), words=True),
    "hostname": Command("print the hypervisor hostname", lambda handle, _: f"{handle.getHostname()}\n", domain=False),
    "uri": Command("print the hypervisor canonical URI", lambda handle, _: f"{handle.getURI()}\n", domain=False),
}
