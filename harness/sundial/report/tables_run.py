# SPDX-License-Identifier: Apache-2.0
"""Tables about the run itself: wires, bindings, iperf3, services, host, hashes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from sundial.report.tables import DASH, Column, Table, decimal, numbers, whole, words
from sundial.report.workload import Records, WorkloadReport

Record = Mapping[str, Any]

FIRST_COUNTERS = ("offered_frames", "tx_frames", "tx_bytes", "rx_frames", "rx_bytes")
TROUBLE = ("adapter_full", "collisions", "excessive_collisions", "deferred")

_SPREAD = ("min", "median", "max")
LONG = 40
"""Longer text is broken into lines inside its cell."""


def wires(counters: Record | None) -> Table | None:
    """Counters of each port; a counter that is zero everywhere gets no column, except the frames and bytes."""
    ports: list[tuple[str, str, str, dict[str, Any]]] = []
    for name, segment in ((counters or {}).get("segments") or {}).items():
        for port, values in (segment.get("ports") or {}).items():
            flat: dict[str, Any] = {}
            for key, value in values.items():
                if isinstance(value, Mapping):
                    flat |= {f"{key}: {reason}": number for reason, number in value.items()}
                elif isinstance(value, int | float) and not isinstance(value, bool):
                    flat[key] = value
            ports.append((name, str(segment.get("kind", "")), port, flat))
    if not ports:
        return None
    present = {key for *_, flat in ports for key in flat}
    used = {key for *_, flat in ports for key, value in flat.items() if value}
    first = [key for key in FIRST_COUNTERS if key in present]
    rest = [key for key in TROUBLE if key in used] + sorted(used - {*FIRST_COUNTERS, *TROUBLE})
    columns = (*words("segment", "kind", "port"), *numbers(*(key.replace("_", " ") for key in first + rest)))
    rows = tuple(
        (name, kind, port, *(whole(flat.get(key, 0)) for key in first + rest)) for name, kind, port, flat in ports
    )
    return Table("Counters of the wires", columns, rows)


def devices(counters: Record | None) -> Table | None:
    """Counters of each port of the devices that join wires."""
    found = [
        (name, str(device.get("kind", "")), port, values)
        for name, device in ((counters or {}).get("devices") or {}).items()
        for port, values in (device.get("ports") or {}).items()
    ]
    if not found:
        return None
    keys = list(dict.fromkeys(key for *_, values in found for key in values))
    columns = (*words("device", "kind", "port"), *numbers(*(key.replace("_", " ") for key in keys)))
    rows = tuple((*place, *(whole(values.get(key, 0)) for key in keys)) for *place, values in found)
    return Table("Counters of the devices", columns, rows)


def bindings(records: Sequence[Record]) -> Table | None:
    """What it took to find each service through the port mapper."""
    if not records:
        return None
    rows: list[tuple[str, ...]] = []
    alarms: set[int] = set()
    for record in records:
        start, end = record.get("start"), record.get("end")
        took = (end - start) / 1000 if isinstance(start, int) and isinstance(end, int) else None
        if not record.get("ok", True):
            alarms.add(len(rows))
        rows.append(
            (str(record["machine"]), whole(record.get("step")), str(record.get("transport", DASH)),
             str(record.get("port", DASH)), whole(record.get("attempts")), decimal(took),
             "yes" if record.get("ok", True) else "NO")
        )  # fmt: skip
    columns = (
        Column("machine", "word"), Column("step"), Column("transport", "word"),
        *numbers("port", "attempts", "time (µs)"), Column("bound", "word"),
    )  # fmt: skip
    return Table("Binding (port mapper)", columns, tuple(rows), frozenset(alarms))


def scalars(title: str, records: Sequence[Record], skip: Sequence[str] = ("type",)) -> Table | None:
    """Records of one type as a table: a column for each plain value that occurs."""
    if not records:
        return None
    keys: list[str] = []
    for record in records:
        keys += [
            key for key, value in record.items() if key not in (*keys, *skip) and not isinstance(value, dict | list)
        ]
    numeric = {
        key
        for key in keys
        if all(
            isinstance(record.get(key), int | float) and not isinstance(record.get(key), bool)
            for record in records
            if record.get(key) is not None
        )
    }
    rows = tuple(tuple(_scalar(key, record.get(key)) for key in keys) for record in records)
    long = {key for index, key in enumerate(keys) if any(len(row[index]) > LONG for row in rows)}
    columns = tuple(
        Column(_heading(key), "number" if key in numeric else "prose" if key in long else "word") for key in keys
    )
    return Table(title, columns, rows)


def _heading(key: str) -> str:
    return "Mb/s" if key == "bits_per_second" else key.replace("_", " ")


def _scalar(key: str, value: object) -> str:
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key == "bits_per_second" and isinstance(value, int | float):
        return decimal(value / 1e6, 3)
    if isinstance(value, float):
        return decimal(value, 3)
    return whole(value) if isinstance(value, int) and "port" not in key else str(value)


def classified(verify: Record | None) -> Table | None:
    """Frames that belong to no call, by kind."""
    kinds = (verify or {}).get("classified")
    if not isinstance(kinds, Mapping) or not kinds:
        return None
    rows = tuple(
        (str(kind).replace("_", " "), whole(count) if isinstance(count, int | float) else str(count))
        for kind, count in kinds.items()
    )
    return Table("Frames outside calls", (Column("kind", "word"), Column("frames")), rows)


def exchanges(verify: Record | None) -> Table | None:
    """What decoders matched, questions alike together."""
    found = [each for each in (verify or {}).get("exchanges") or [] if isinstance(each, Mapping)]
    if not found:
        return None
    rows = tuple(
        (
            *(str(each[name]) for name in ("decoder", "transport", "client", "server", "port", "procedure")),
            *(whole(each[name]) for name in ("exchanges", "answered", "retransmissions")),
            *(
                decimal(value if value is None else value / 1e3)
                for value in (each[f"rtt_ns_{name}"] for name in _SPREAD)
            ),
        )
        for each in found
    )
    named = words("decoder", "transport", "from", "to", "port", "procedure")
    counted = numbers("questions", "answered", "retransmissions", *(f"{name} (µs)" for name in _SPREAD))
    return Table("Round trips that decoders read", (*named, *counted), rows)


def figures(verify: Record | None) -> Table | None:
    """Numbers that programs wrote."""
    found = [each for each in (verify or {}).get("figures") or [] if isinstance(each, Mapping)]
    if not found:
        return None
    rows = tuple(
        (
            *(str(each[name]) for name in ("program", "machine", "figure")),
            whole(each["values"]),
            *(decimal(each[f"value_{name}"], 3) for name in _SPREAD),
        )
        for each in found
    )
    return Table("Figures of programs", (*words("program", "machine", "figure"), *numbers("values", *_SPREAD)), rows)


def facts(run: Record) -> Table:
    """Host and versions."""
    host = run.get("host") if isinstance(run.get("host"), Mapping) else {}
    rows = [(f"host: {key.removesuffix('_bytes')}", _amount(key, value)) for key, value in (host or {}).items()]
    versions = run.get("versions") if isinstance(run.get("versions"), Mapping) else {}
    rows += [(str(key), _plain(value)) for key, value in (versions or {}).items()]
    for name, boot in (run.get("boots") or {}).items():
        for what, field in (("kernel", "kernel_release"), ("command line", "cmdline")):
            rows.append((f"{name}: {what}", _plain(boot.get(field) if isinstance(boot, Mapping) else None)))
    return Table("Host and versions", words("what", "value"), tuple(rows))


def hashes(run: Record) -> Table:
    """SHA-256 of what went in (images, and what machines booted instead) and of what came out (captures)."""
    rows = []
    for name, image in (run.get("images") or {}).items():
        sums = image.get("sha256") if isinstance(image, Mapping) else None
        for part, value in sums.items() if isinstance(sums, Mapping) else ():
            rows.append((f"image {name}: {part}", _plain(value)))
    for name, boot in (run.get("boots") or {}).items():
        rows += _booted(str(name), boot if isinstance(boot, Mapping) else {})
    rows += [(str(name), _plain(value)) for name, value in (run.get("captures") or {}).items()]
    return Table("SHA-256", (Column("file", "word"), Column("sha256", "code")), tuple(rows))


def _booted(machine: str, boot: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    yield from ((f"{machine}: {part}", _plain(boot.get(part))) for part in ("kernel", "initrd"))
    root = boot.get("root")
    sources = root.get("sources") if isinstance(root, Mapping) else None
    for what, digest in sources.items() if isinstance(sources, Mapping) else ():
        yield f"{machine}: root, {what}", _plain(digest)
    files = boot.get("files")
    for path, laid in files.items() if isinstance(files, Mapping) else ():
        mode, digest = (laid.get(field) if isinstance(laid, Mapping) else None for field in ("mode", "sha256"))
        yield f"{machine}: {path} ({_plain(mode)})", _plain(digest)


def _amount(key: str, value: object) -> str:
    if key.endswith("_bytes") and isinstance(value, int):
        return f"{value / 2**30:.1f} GiB"
    return _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) for item in value)
    return DASH if value is None else str(value)


class RecordsAlone(WorkloadReport):
    """The report of a kind without calls: its records of one type as a table."""

    def __init__(self, title: str, kind: str) -> None:
        self._title, self._kind = title, kind

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        table = scalars(self._title, records.get(self._kind, []))
        if table:
            yield table
