# SPDX-License-Identifier: Apache-2.0
"""Tables of a run directory, read with errors that name the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from sundial.errors import BadInput


def readable_parquet(path: Path, columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    """The named columns of a Parquet file. Raises BadInput where it has not all of them."""
    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"is not readable as Parquet: {reason}", file=str(path)) from None
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise BadInput(f"lacks the column {missing[0]}", file=str(path), allowed=", ".join(columns))
    return table.select([pl.col(name).cast(kind) for name, kind in columns.items()])
