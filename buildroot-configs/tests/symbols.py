# SPDX-License-Identifier: Apache-2.0
"""Writes symbols.tsv: every Kconfig symbol of Buildroot's that this tree names, its type, the releases that define it.

    python symbols.py RELEASE...

Each RELEASE is an unpacked one; nothing is written there. test_symbols.py checks the defconfigs against the table, so
that a symbol that does not exist is noticed without a release.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import kconfiglib

TREE = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("symbols.tsv")
SYMBOL = re.compile(r"\bBR2_\w+")
COMMENT = re.compile(r"^\s*#(?! BR2_\w+ is not set)")


def sources() -> list[Path]:
    """The files that name symbols."""
    return [*configurations(), TREE / "Config.in", *sorted(TREE.glob("package/*/Config.in"))]


def configurations() -> list[Path]:
    """Defconfigs, and fragments to be laid over one."""
    return [path for pattern in ("*_defconfig", "*.fragment") for path in sorted(TREE.glob(f"configs/{pattern}"))]


def merged(configuration: Path) -> str:
    """A defconfig as it is; a fragment NAME_MORE.fragment over NAME_defconfig."""
    if configuration.suffix != ".fragment":
        return configuration.read_text()
    base = configuration.with_name(configuration.stem.rpartition("_")[0] + "_defconfig")
    lines = [line for line in configuration.read_text().splitlines() if not COMMENT.match(line)]
    unset = {line.split()[1] for line in lines if line.startswith("# ")}
    kept = [line for line in base.read_text().splitlines() if line.partition("=")[0] not in unset]
    return "\n".join([*kept, *(line for line in lines if not line.startswith("# "))]) + "\n"


def named() -> set[str]:
    """Symbols of Buildroot's that they name: not our own packages, nor the variable that leads to this tree."""
    lines = [line for file in sources() for line in file.read_text().splitlines() if not COMMENT.match(line)]
    own = {line.split()[1] for line in lines if line.startswith("config ")}
    found = {symbol for line in lines for symbol in SYMBOL.findall(line)}
    return found - own - {"BR2_EXTERNAL_SUNDIAL_PATH"}


def types(release: Path) -> dict[str, str]:
    """Type of every symbol that the release defines."""
    with tempfile.TemporaryDirectory() as output:
        place = [f"O={output}", f"BR2_EXTERNAL={TREE}"]
        command = ["make", "-s", "-C", str(release), *place, "sundial_linux_defconfig"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        variables = {"BR2_BASE_DIR": output, "BASE_DIR": output, "BR2_EXTERNAL_SUNDIAL_PATH": str(TREE)}
        with mock.patch.dict(os.environ, variables | {"srctree": str(release), "CONFIG_": ""}):
            parsed = kconfiglib.Kconfig("Config.in", warn=False)
    return {name: kconfiglib.TYPE_TO_STR[symbol.type] for name, symbol in parsed.syms.items() if symbol.nodes}


def version(release: Path) -> str:
    """As its Makefile names it."""
    found = re.search(r"^export BR2_VERSION := (\S+)$", (release / "Makefile").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{release}: no Buildroot release")
    return found[1]


def main(releases: list[Path]) -> None:
    """Writes the table again."""
    known = {version(release): types(release) for release in releases}
    lines = ["symbol\ttype\treleases"]
    for symbol in sorted(named()):
        kinds = {kind: None for of_release in known.values() if (kind := of_release.get(symbol))}
        seen = [release for release, of_release in known.items() if symbol in of_release]
        lines.append(f"{symbol}\t{' '.join(kinds)}\t{' '.join(seen)}")
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
