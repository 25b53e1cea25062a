# SPDX-License-Identifier: Apache-2.0
"""Text of others made fit to be shown: what a guest, a file or its name says must not steer the terminal that shows it.

Everything that Unicode does not count as printable is written as an escape: C0 and C1 controls, ESC, marks that turn
the direction of text, invisible characters, separators of lines, and bytes that are not UTF-8.
"""

from __future__ import annotations

_BYTE = 0xDC00
"""Python's `surrogateescape` keeps a byte that is not UTF-8 as this plus the byte."""


def printable(text: str) -> str:
    """`text` as one line."""
    return text if text.isprintable() else "".join(map(_shown, text))


def printable_lines(text: str) -> str:
    """`text` with its line ends kept."""
    return "\n".join(map(printable, text.split("\n")))


def printable_bytes(data: bytes) -> str:
    """What should be UTF-8, as one line."""
    return printable(data.decode(errors="surrogateescape"))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if _BYTE + 0x80 <= code <= _BYTE + 0xFF:
        return f"\\x{code - _BYTE:02x}"
    return character.encode("unicode_escape", "backslashreplace").decode()
