# SPDX-License-Identifier: Apache-2.0
"""The guests' samples as one table, and the digests of all files, after the machines have ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sundial.errors import SundialError
from sundial.machines.seals import sha256_of
from sundial.whole import whole

SAMPLES = "samples.parquet"


def collect_samples(folder: Path) -> int:
    """Write samples.parquet from the nodes' samples.jsonl, and what programs wrote into files. Returns the number of
    calls. A cut last line is left out.

    Raises GuestFault for a file that does not have samples.
    """
    # Imported here, since loading polars would delay the start of the machines.
    import polars as pl

    from sundial.observe import SAMPLE_COLUMNS, open_run, read_samples
    from sundial.observe.programs import output_files, outputs

    run = open_run(folder)
    tables = []
    for name, node in run.nodes.items():
        file = folder / "nodes" / name / "samples.jsonl"
        if file.is_file():
            samples = read_samples(file, scenario=run.scenario, client=node, names=run.names)
            tables.append(samples.table)
            written = {f"programs/{who}.{stream}": data for (who, stream), data in outputs(samples.records).items()}
            for output in output_files(run.jobs.get(name, {})):
                target = folder / "nodes" / name / output
                target.parent.mkdir(exist_ok=True)
                with whole(target) as beside:
                    beside.write_bytes(written.get(output, b""))
    empty = pl.DataFrame(schema=SAMPLE_COLUMNS)
    table = pl.concat([empty, *tables])
    with whole(folder / SAMPLES) as beside:
        table.write_parquet(beside)
    return int(table.height)


def collect_what_is_there(folder: Path) -> None:
    """The same for a failed run: malformed samples remain in samples.jsonl."""
    try:
        collect_samples(folder)
    except SundialError:
        return


@dataclass(frozen=True)
class Digests:
    """sha256 by name in the run directory, as run.json has them."""

    captures: dict[str, str]
    files: dict[str, str]
    """All other files."""


def digests(folder: Path) -> Digests:
    """Digests of all files of the run, for run.json."""
    from sundial.observe import is_capture, kept_files

    names = kept_files(folder)
    return Digests(
        {name: sha256_of(folder / name) for name in names if is_capture(name)},
        {name: sha256_of(folder / name) for name in names if not is_capture(name)},
    )
