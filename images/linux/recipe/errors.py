# SPDX-License-Identifier: Apache-2.0
"""What can go wrong outside of this code, with its exit status as ARCHITECTURE.md lists them."""


class RecipeError(Exception):
    """The build cannot go on; the message is one line."""

    exit_status = 4


class HostLacks(RecipeError):
    """The host lacks a package, a tool or the package lists."""

    exit_status = 3
