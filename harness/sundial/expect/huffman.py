# SPDX-License-Identifier: Apache-2.0
"""The Huffman code of RFC 7541, appendix B. It is canonical: its lengths alone give it."""

from __future__ import annotations

EOS = 256
LENGTHS = (
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28,
    28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15,
    6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22,
    20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23,
    23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22,
    22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26,
    27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27,
    26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
)  # fmt: skip
"""Bits of each symbol; the last is EOS."""


def _codes() -> dict[tuple[int, int], int]:
    """Symbols by length and code: codes of a length follow one another in the order of their symbols."""
    found, code, length = {}, 0, 0
    for symbol in sorted(range(len(LENGTHS)), key=lambda each: (LENGTHS[each], each)):
        code <<= LENGTHS[symbol] - length
        length = LENGTHS[symbol]
        found[length, code] = symbol
        code += 1
    return found


_SYMBOLS = _codes()
_CODES = {symbol: (code, length) for (length, code), symbol in _SYMBOLS.items()}


def encode_huffman(text: bytes) -> bytes:
    """With EOS's first bits up to a whole octet."""
    bits, length = 0, 0
    for symbol in text:
        code, more = _CODES[symbol]
        bits, length = bits << more | code, length + more
    pad = -length % 8
    return (bits << pad | (1 << pad) - 1).to_bytes((length + pad) // 8, "big")


def decode_huffman(octets: bytes) -> bytes | None:
    """None: it is not the code of any text. Padding is of less than 8 bits, all ones (5.2)."""
    text = bytearray()
    code, length = 0, 0
    for octet in octets:
        for place in range(7, -1, -1):
            code, length = code << 1 | octet >> place & 1, length + 1
            symbol = _SYMBOLS.get((length, code))
            if symbol == EOS:
                return None
            if symbol is not None:
                text.append(symbol)
                code, length = 0, 0
    return bytes(text) if length < 8 and code == (1 << length) - 1 else None
