# SPDX-License-Identifier: Apache-2.0
"""The first words of the report: verdict, key numbers, set-up, and what to type. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import polars as pl

from sundial.model.catalog import COMMAND
from sundial.model.scenario import STATISTICS
from sundial.report import registry
from sundial.report.load import RunData
from sundial.report.tables import DASH, decimal, whole
from sundial.report.workload import Filter


@dataclass(frozen=True)
class Figure:
    """One key number: what it is, how much, and small print."""

    title: str
    value: str
    note: str = ""
    alarm: bool = False


@dataclass(frozen=True)
class Failure:
    """Why a run did not end well."""

    message: str
    hint: str
    tail: tuple[str, ...]


@dataclass(frozen=True)
class Headline:
    """`verdict` is pass, fail, checked, failed, interrupted or unverified; `badge` its word, `sentence` its meaning."""

    title: str
    subtitle: str
    verdict: str
    badge: str
    sentence: str
    figures: tuple[Figure, ...]
    failure: Failure | None


def failed(run: Mapping[str, Any]) -> bool:
    """Whether the run itself ended badly."""
    return bool(run.get("status", "complete") != "complete")


def headline(data: RunData, curves: pl.DataFrame) -> Headline:
    """Everything above the fold."""
    run, verify = data.run, data.verify or {}
    scenario, topology = _name(run, "scenario"), _name(run, "topology")
    calls = verify.get("calls", int(data.samples.height))
    mismatches = verify.get("mismatches")
    again = verify.get("retransmissions")
    again = again if isinstance(again, Mapping) else {}
    counted = int(curves["retransmissions"].sum() or 0) if curves.height else 0
    errors = int(curves["errors"].sum() or 0) if curves.height else 0
    total = sum(value for value in again.values() if isinstance(value, int)) if again else counted
    note = ", ".join(f"{whole(value)} {key}" for key, value in again.items()) if total and again else ""
    virtual, wall = _part(run, "time").get("virtual_ns"), _part(run, "time").get("wall_s")
    verdict = _verdict(run, verify)
    unproven, frames = verdict != "pass", verify.get("frames")
    figures = (
        Figure("calls", whole(calls), f"{whole(errors)} failed" if errors else "", errors > 0 and unproven),
        Figure("packets", whole(verify.get("packets")), f"{whole(frames)} frames" if frames else ""),
        Figure("fragments", whole(verify.get("fragments"))),
        *_cells(data.counters),
        Figure("mismatches", whole(mismatches), "", bool(mismatches)),
        Figure("retransmissions", whole(total), note),
        Figure(
            "virtual time" if run.get("clock") != "real" else "time of the run",
            f"{decimal(virtual / 1e9, 2)} s" if isinstance(virtual, int | float) else DASH,
        ),
        Figure("wall time", f"{decimal(wall, 2)} s" if isinstance(wall, int | float) else DASH, _pace(virtual, wall)),
    )
    return Headline(
        title=f"{scenario} on {topology}",
        subtitle=data.name,
        verdict=verdict,
        badge={"pass": "pass", "fail": "fail", "unverified": "not verified"}.get(verdict, verdict),
        sentence=_sentence(verdict, calls, mismatches),
        figures=figures,
        failure=_failure(run),
    )


def _cells(counters: Mapping[str, Any] | None) -> list[Figure]:
    """Cells that all adapters sent, with those that no one received; nothing where the wires carry frames."""
    ports = [port for segment in _part(counters or {}, "segments").values() for port in segment["ports"].values()]
    sent = [port["tx_cells"] for port in ports if "tx_cells" in port]
    pdus = sum(port.get("tx_pdus", 0) for port in ports)
    return [Figure("cells", whole(sum(sent)), f"{whole(pdus)} PDUs")] if sent else []


def _part(run: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = run.get(key)
    return value if isinstance(value, Mapping) else {}


def _name(run: Mapping[str, Any], key: str) -> str:
    value = run.get(key)
    return str(value.get("name", key)) if isinstance(value, Mapping) else str(value or key)


def _pace(virtual: object, wall: object) -> str:
    if isinstance(virtual, int | float) and isinstance(wall, int | float) and virtual > 0:
        return f"{wall / (virtual / 1e9):.2f} s a virtual second"
    return ""


def _verdict(run: Mapping[str, Any], verify: Mapping[str, Any]) -> str:
    if failed(run):
        return str(run["status"])
    verdict = verify.get("verdict")
    return str(verdict) if verdict in ("pass", "fail", "checked") else "unverified"


def _sentence(verdict: str, calls: object, mismatches: object) -> str:
    if verdict == "pass":
        return f"All frames{f' of the {whole(calls)} calls' if calls else ''} match the protocol."
    if verdict == "fail":
        one = mismatches == 1
        return f"{whole(mismatches)} {'mismatch' if one else 'mismatches'} between capture and protocol."
    if verdict == "checked":
        return "Interactive session: no calls to verify. Headers, wire timing, counters and files are consistent."
    if verdict == "interrupted":
        return "The run was interrupted. The results below were complete at that time."
    if verdict == "unverified":
        return "The capture was not verified; 'sundial verify' does that."
    return "The run failed. The results below were complete at that time."


def _failure(run: Mapping[str, Any]) -> Failure | None:
    error = run.get("error")
    if not error:
        return None
    if not isinstance(error, Mapping):
        return Failure(str(error), "", ())
    tail = error.get("console_tail")
    lines = tuple(str(line) for line in tail) if isinstance(tail, list) else ()
    return Failure(str(error.get("message") or error.get("error") or "unknown"), str(error.get("hint") or ""), lines)


def setup(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of what the run was asked for."""
    scenario, topology = _part(run, "scenario"), _part(run, "topology")
    rows = [("scenario", _said(scenario)), ("topology", _said(topology))]
    clock = {"virtual": "virtual: equal captures in every run", "real": "real: the host's monotonic clock"}
    rows.append(("clock", clock.get(str(run.get("clock")), DASH)))
    accelerator = {"tcg": "TCG: QEMU translates every instruction", "kvm": "KVM: the host's processor"}
    rows.append(("accelerator", accelerator.get(str(run.get("accelerator")), DASH)))
    rows.append(("seed", str(run.get("seed", DASH))))
    images = [_made(str(name), use) for name, use in _part(run, "images").items() if isinstance(use, Mapping)]
    if images:
        rows.append(("images", "; ".join(images)))
    mtu = run.get("mtu")
    if isinstance(mtu, Mapping) and mtu:
        rows.append(("MTU", ", ".join(f"{name} {value} B" for name, value in mtu.items())))
    statistic = scenario.get("statistic")
    if statistic:
        known = STATISTICS.get(str(statistic))
        rows.append(("statistic", known.sentence if known else str(statistic)))
    return rows


def _made(name: str, use: Mapping[str, Any]) -> str:
    """An image of the run, with its recipe, the ticks of its kernel and its libraries where run.json has them."""
    how = [str(use["recipe"])] if use.get("recipe") else []
    how += [f"HZ={use['hz']}"] if use.get("hz") else []
    for language, versions in (use.get("libraries") or {}).items():
        own = f"{language} " if language not in versions else ""
        how += [f"{own}{name} {version}" for name, version in versions.items()]
    return f"{name} ({', '.join(how)})" if how else name


def command(run: Mapping[str, Any]) -> str:
    """The command that was run, with the launcher in place of wherever it lay on that host."""
    words = [str(word) for word in run.get("command") or []]
    if words and (words[0].endswith("__main__.py") or PurePath(words[0]).name == "sundial"):
        words[0] = COMMAND
    return shlex.join(words)


def _said(part: Mapping[str, Any]) -> str:
    name, words = str(part.get("name", DASH)), str(part.get("description", "")).strip()
    return f"{name}: {words}" if words else name


def filters(curves: pl.DataFrame) -> list[tuple[str, str]]:
    """Display filters worth pasting: what they show and what to paste."""
    used: dict[str, set[str]] = {}
    for app, transport in curves.select("app", "transport").unique().iter_rows():
        used.setdefault(str(app), set()).add(str(transport))
    found = list(dict.fromkeys(registry.filters(used)))
    fates = Filter("frames that the wires dropped, damaged or duplicated", "frame.comment")
    ordered = [*(each for each in found if each.of_calls), fates, *(each for each in found if not each.of_calls)]
    return [(each.what, each.text) for each in ordered]
