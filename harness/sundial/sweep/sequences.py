# SPDX-License-Identifier: Apache-2.0
"""Points that fill the unit cube evenly, one after the other: the sequences of Halton and of Sobol. Pure."""

from __future__ import annotations

from functools import cache

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Bases of the Halton sequence, one for each axis."""
BITS = 32
"""Of a coordinate of the Sobol sequence."""
_JOE_KUO = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
    (5, 11, (1, 1, 5, 1, 1)),
    (5, 13, (1, 1, 1, 3, 11)),
)
"""Degree and inner coefficients of the primitive polynomial, and the first direction numbers, of axes 2 to 12:
S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30
(2008), table new-joe-kuo-6.21201."""


def halton(number: int, axes: int) -> list[float]:
    """A point of the Halton sequence; number 0 is the origin."""
    return [radical_inverse(number, base) for base in PRIMES[:axes]]


def radical_inverse(number: int, base: int) -> float:
    """The digits of a number behind the point, in reverse."""
    found, share = 0.0, 1.0
    while number:
        share /= base
        number, digit = divmod(number, base)
        found += share * digit
    return found


def sobol(number: int, axes: int) -> list[float]:
    """A point of the Sobol sequence, in the order of Gray's code; number 0 is the origin."""
    gray = number ^ number >> 1
    point = []
    for axis in range(axes):
        coordinate = 0
        for place, direction in enumerate(_directions(axis)):
            if gray >> place & 1:
                coordinate ^= direction
        point.append(coordinate / 2**BITS)
    return point


@cache
def _directions(axis: int) -> list[int]:
    """The direction numbers of an axis, as fractions of 2**BITS."""
    if axis == 0:
        return [1 << BITS - 1 - place for place in range(BITS)]
    degree, coefficients, first = _JOE_KUO[axis - 1]
    found = [number << BITS - 1 - place for place, number in enumerate(first)]
    for place in range(degree, BITS):
        before = found[place - degree]
        direction = before ^ before >> degree
        for inner in range(1, degree):
            if coefficients >> degree - 1 - inner & 1:
                direction ^= found[place - inner]
        found.append(direction)
    return found
