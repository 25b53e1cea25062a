# SPDX-License-Identifier: Apache-2.0
"""What workloads have that call by size or, in place of it, the twelve functions."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from sundial.model.invalid import Invalid, Path
from sundial.model.sizes import ALLOWED
from sundial.model.workload import Calling, Sized, SizesField
from sundial.workloads.function_words import FunctionWords


class SizesOrFunctions(Sized):
    """One of `sizes` and `functions` is written."""

    sizes: SizesField = Field(default=(), validate_default=False, exclude_if=operator.not_)
    """Argument sizes in bytes; leave it out if functions are given."""
    functions: Annotated[tuple[str, ...], FunctionWords()] | None = Field(default=None, exclude_if=operator.not_)
    """The twelve functions of santos18 instead of sizes, in sequence, each with fixed values: all, names or numbers."""


class FunctionCalling(SizesOrFunctions, Calling):
    """What workloads have that call by size or function."""


def check_functions(workload: SizesOrFunctions, path: Path, *of_sizes: str) -> Iterator[Invalid]:
    """What is missing, and what belongs to calls by size alone; `of_sizes`: fields of the kind's own that do."""
    if workload.functions is None:
        if not workload.sizes:
            yield Invalid(path, "sizes is missing", f"{ALLOWED}; or functions in place of sizes")
        return
    for field in ("sizes", *of_sizes):
        if field in workload.model_fields_set:
            yield Invalid(
                (*path, field), f"{field} has no effect with functions, whose values are fixed", f"{field} or functions"
            )
            return
    if workload.order != "ascending":
        yield Invalid(
            (*path, "order"), f"order {workload.order} has no effect with functions", "the order in functions"
        )
    if len(workload.calls) > 1:
        yield Invalid((*path, "calls"), "calls by size cannot be combined with functions", "one number of calls")
