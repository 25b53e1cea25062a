# SPDX-License-Identifier: Apache-2.0
"""Writes what fabric, dissectors and harness know of MBCF and of a backplane's packets, from the tables that
C includes.

Without options it writes all files. `--check` fails where one of them is not what would be written. `--against FILE`
does that, too, and compares the tables of MBCF with the lines that a compiled program has printed (tests/mbcf_table.c).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CORE = Path(__file__).resolve().parent
HARNESS = CORE.parents[1] / "harness"
MBCF = ("mbcf/wire.def", "mbcf/limits.def", "include/sss/mbcf_status.def", "include/rpc/transports.def")
VMMC = ("include/sss/vmmc_wire.def",)
SOURCE = "guest-apps/sss-core/wiregen.py"

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"^(\w+)\((.+)\)$")
_ARGUMENT = re.compile(r'"[^"]*"|[^,\s][^,]*')

Entry = tuple[str | int, ...]


Tables = dict[str, list[Entry]]
"""Entries by the name of their macro."""


def read_tables(names: tuple[str, ...]) -> Tables:
    """The entries of all these tables."""
    entries: Tables = {}
    for table in names:
        for line in _COMMENT.sub("", (CORE / table).read_text()).splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            entry = _ENTRY.match(line.strip())
            if entry is None:
                raise SystemExit(f"{table}: not an entry: {line}")
            macro, arguments = entry.groups()
            entries.setdefault(macro, []).append(tuple(map(_value, _ARGUMENT.findall(arguments))))
    return entries


def _value(argument: str) -> str | int:
    argument = argument.strip()
    if argument.startswith('"'):
        return argument[1:-1]
    return int(argument, 0) if argument[0].isdigit() else argument


def _numbers(tables: Tables) -> list[Entry]:
    return [*tables["MBW_NUMBER"], *tables["MBCF_COUNT"], *tables["MBCF_TIME_NS"]]


def _operations(tables: Tables) -> list[Entry]:
    return [*tables["MBW_CONTROL"], *tables["MBW_REQUEST"], *tables["MBW_NOTICE"]]


def _remote(tables: Tables) -> list[Entry]:
    """Statuses that a RESULT may have."""
    return [entry for entry in tables["MB_STATUS"] if int(entry[1]) < 32]


def mbcf_python(tables: Tables) -> str:
    """The constants of sundial.workloads.mbcf.wire."""
    lines = _python_head("MBCF's bytes and numbers.")
    lines += [f"{name} = {value:_}" for name, value in tables["MBW_NUMBER"]]
    lines += ["", *(f"{name} = {value:_}" for name, value in [*tables["MBCF_COUNT"], *tables["MBCF_TIME_NS"]])]
    lines += ["", *(f"{name} = 0x{code:02x}" for name, code in _operations(tables))]
    lines += _mapping("OPERATIONS", "Names.", [(f"0x{code:02x}", name) for name, code in _operations(tables)])
    lines += ["", *(f"{name} = {bit}" for name, bit in tables["MBW_FLAG"])]
    lines += _mapping("FLAGS", "Names, by their bit.", [(bit, name) for name, bit in tables["MBW_FLAG"]])
    lines += ["", *(f"STATUS_{name} = {number}" for name, number, _ in tables["MB_STATUS"])]
    lines += _mapping("STATUSES", "Names.", [(number, name) for name, number, _ in tables["MB_STATUS"]])
    lines += _mapping("STATUS_TEXTS", "As tasks print them.", [row[1:] for row in tables["MB_STATUS"]])
    lines += _fields("FIELDS", "Of the header, behind the one of Ethernet.", tables["MBW_FIELD"])
    lines += _fields("PAYLOAD_FIELDS", "Of the payload, by operation.", tables["MBW_PAYLOAD_FIELD"])
    names = ", ".join(f'"{name}"' for _, name, *_ in tables["TRANSPORT"])
    lines += ["", f"TRANSPORTS = ({names})", '"""Sun RPC over MBCF, in the order of the numbers of its types."""']
    return "\n".join(lines) + "\n"


def vmmc_python(tables: Tables) -> str:
    """The constants of sundial.segments.vmmc.wire."""
    lines = _python_head("A backplane's packets.")
    lines += [f"{name} = {value:_}" for name, value in tables["VMW_NUMBER"]]
    for macro in ("VMW_KIND", "VMW_FLAG", "VMW_REASON", "VMW_MESSAGE"):
        lines += ["", *(f"{name} = {number}" for name, number, *_ in tables[macro])]
    lines += _mapping("KINDS", "Of packets.", [row[1:] for row in tables["VMW_KIND"]])
    lines += _mapping("REASONS", "Why a packet of automatic update left.", [row[1:] for row in tables["VMW_REASON"]])
    lines += _mapping("MESSAGES", "Names.", [(number, name) for name, number in tables["VMW_MESSAGE"]])
    lines += _mapping("REFUSALS", "Statuses of an answer, where it is not 0.", tables["VMW_STATUS"][1:])
    lines += _mapping("USES", "What an export is for.", tables["VMW_USE"])
    lines += _fields("FIELDS", "Of the header; little endian.", tables["VMW_FIELD"])
    message = _message(tables)
    lines += _fields("MESSAGE_FIELDS", "Of a message, behind the header.", message)
    form = "".join(_STRUCT.get(int(bits), f"{int(bits) // 8}s") for _, _, bits in message)
    lines += ["", f'MESSAGE_FORMAT = "<{form}"', '"""struct\'s, of MESSAGE_FIELDS."""']
    return "\n".join(lines) + "\n"


_STRUCT = {16: "H", 32: "I", 64: "Q"}


def _message(tables: Tables) -> list[Entry]:
    return sorted([*tables["VMW_MESSAGE_FIELD"], *tables["VMW_MESSAGE_NAME"]], key=lambda field: int(field[1]))


def _python_head(about: str) -> list[str]:
    return [
        "# SPDX-License-Identifier: Apache-2.0",
        f'"""{about} Generated by {SOURCE}; do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping",
        "from types import MappingProxyType",
        "",
        "from sundial.expect.layout import Field",
        "",
    ]


def _mapping(name: str, doc: str, rows: list[Entry]) -> list[str]:
    lines = ["", f"{name}: Mapping[int, str] = MappingProxyType(", "    {"]
    lines += [f'        {number}: "{text}",' for number, text in rows]
    return [*lines, "    }", ")", f'"""{doc}"""']


def _fields(name: str, doc: str, entries: list[Entry]) -> list[str]:
    lines = ["", f"{name}: Mapping[str, Field] = MappingProxyType(", "    {"]
    lines += [f'        "{field}": Field({offset}, {int(bits) // 8}),' for field, offset, bits in entries]
    return [*lines, "    }", ")", f'"""{doc}"""']


def mbcf_lua(tables: Tables) -> str:
    """The table that mbcf.lua loads."""
    lines = _lua_head("MBCF's bytes and numbers.")
    lines += [f"    {name} = {value}," for name, value in tables["MBW_NUMBER"]]
    lines += ["    op = {", *(f"        {name} = 0x{code:02x}," for name, code in _operations(tables)), "    },"]
    lines += ["    flag = {", *(f"        {name} = {bit}," for name, bit in tables["MBW_FLAG"]), "    },"]
    lines += _by_number("status", [(number, name) for name, number, _ in _remote(tables)])
    lines += _by_number("status_text", [row[1:] for row in _remote(tables)])
    lines += _places("at", "offset and size of the header's fields", tables["MBW_FIELD"])
    lines += _places("payload_at", "the same of the payload, behind the header", tables["MBW_PAYLOAD_FIELD"])
    lines += _by_number("transport", [(number, row[1]) for number, row in enumerate(tables["TRANSPORT"])])
    return "\n".join([*lines, "}"]) + "\n"


def vmmc_lua(tables: Tables) -> str:
    """The table that vmmc_fields.lua loads."""
    lines = _lua_head("A backplane's packets.")
    for macro in ("VMW_NUMBER", "VMW_KIND", "VMW_FLAG", "VMW_MESSAGE"):
        lines += [f"    {name} = {value}," for name, value, *_ in tables[macro]]
    lines += _by_number("kinds", [(number, name) for name, number, _ in tables["VMW_KIND"]])
    lines += _by_number("kind_texts", [row[1:] for row in tables["VMW_KIND"]])
    lines += _by_number("reasons", [row[1:] for row in tables["VMW_REASON"]])
    lines += _by_number("messages", [(number, name) for name, number in tables["VMW_MESSAGE"]])
    lines += _by_number("statuses", tables["VMW_STATUS"])
    lines += _by_number("uses", tables["VMW_USE"])
    lines += _places("at", "offset and size of the header's fields", tables["VMW_FIELD"])
    lines += _places("message_at", "the same of a message, behind the header", _message(tables))
    return "\n".join([*lines, "}"]) + "\n"


def _lua_head(about: str) -> list[str]:
    return [
        "-- SPDX-License-Identifier: Apache-2.0",
        f"-- {about} Generated by {SOURCE}; do not edit.",
        "",
        "return {",
    ]


def _by_number(name: str, rows: list[Entry]) -> list[str]:
    return [f"    {name} = {{", *(f'        [{number}] = "{text}",' for number, text in rows), "    },"]


def _places(name: str, doc: str, entries: list[Entry]) -> list[str]:
    rows = [f"        {field} = {{ {offset}, {int(bits) // 8} }}," for field, offset, bits in entries]
    return [f"    {name} = {{ -- {doc}", *rows, "    },"]


def vmmc_rust(tables: Tables) -> str:
    """The constants of sundial_segments::vmmc::wire."""
    numbers = dict(tables["VMW_NUMBER"])
    at = {name: offset for name, offset, _ in tables["VMW_FIELD"]}
    rows = [
        ("pub const HEADER_BYTES: usize", numbers["HEADER"], "Bytes of a packet before its data."),
        ("pub const DATA_MOST: usize", numbers["PAGE"], "Data of the longest packet: a page."),
        ("pub const WORD_BYTES: u64", numbers["WORD"], "What `word_latency` is the time of."),
        ("pub const VERSION: u8", numbers["VERSION"], "Of the format."),
        ("pub const LINK_TYPE: u16", numbers["LINK_TYPE"], "LINKTYPE_USER1."),
        ("pub const VERSION_AT: usize", at["version"], "One byte."),
        ("pub const SENDER_AT: usize", at["sender"], "A node, 16 bits, little endian."),
        ("pub const RECEIVER_AT: usize", at["receiver"], "The same."),
    ]
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "//! What the model reads of a backplane's packets.",
        "//!",
        f"//! Generated by {SOURCE}; do not edit.",
        "",
        *(line for name, value, about in rows for line in (f"/// {about}", f"{name} = {value};")),
    ]
    return "\n".join(lines) + "\n"


def compiled_names(tables: Tables) -> dict[str, str]:
    """What tests/mbcf_table.c must print."""
    names: dict[str, str] = {str(name): str(value) for name, value in [*_numbers(tables), *_operations(tables)]}
    names |= {str(name): str(bit) for name, bit in tables["MBW_FLAG"]}
    names |= {f"STATUS_{name}": f"{number} {text}" for name, number, text in tables["MB_STATUS"]}
    fields = [*tables["MBW_FIELD"], *tables["MBW_PAYLOAD_FIELD"]]
    names |= {f"field_{name}": f"{offset} {int(bits) // 8}" for name, offset, bits in fields}
    names |= {f"TRANSPORT_{row[0]}": f"{at} {row[1]}" for at, row in enumerate(tables["TRANSPORT"])}
    return names


def texts(mbcf: Tables, vmmc: Tables) -> dict[str, str]:
    """What is generated, by file below harness/."""
    return {
        "wireshark/mbcf_wire.lua": mbcf_lua(mbcf),
        "sundial/workloads/mbcf/wire.py": mbcf_python(mbcf),
        "wireshark/vmmc_wire.lua": vmmc_lua(vmmc),
        "sundial/segments/vmmc/wire.py": vmmc_python(vmmc),
        "fabric/segments/src/vmmc/wire.rs": vmmc_rust(vmmc),
    }


def main(arguments: list[str]) -> None:
    """Writes or checks; leaves with a message for what is wrong."""
    mbcf = read_tables(MBCF)
    for name, text in texts(mbcf, read_tables(VMMC)).items():
        path = HARNESS / name
        if not arguments:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            raise SystemExit(f"{path} is stale: run {SOURCE}")
    if arguments[:1] == ["--against"]:
        lines = Path(arguments[1]).read_text().splitlines()
        compiled = dict(line.split(" ", 1) for line in lines)
        expected = compiled_names(mbcf)
        for name in sorted(compiled.keys() | expected.keys()):
            if compiled.get(name) != expected.get(name):
                raise SystemExit(f"{name} is {compiled.get(name)} in C, {expected.get(name)} in {SOURCE}")


if __name__ == "__main__":
    main(sys.argv[1:])
