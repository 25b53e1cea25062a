# SPDX-License-Identifier: Apache-2.0
"""Failures outside of this code, each with its exit status (README.md)."""

import errno
import sys
from collections.abc import Callable


class RecipeError(Exception):
    """The build cannot go on; the message is one line."""

    exit_status = 4


class HostLacks(RecipeError):
    """The host lacks a package, a tool or the package lists."""

    exit_status = 3


def exit_status(program: str, action: Callable[[], object]) -> int:
    """Does `action`. Where it fails, stderr has one line that begins with the program's name."""
    try:
        action()
    except (RecipeError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        if isinstance(error, RecipeError):
            return error.exit_status
        return 3 if error.errno in (errno.ENOSPC, errno.EDQUOT) else 4
    return 0
