// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which functions of the guest are stamped; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POINTS_MOST = 4096 };

// A function of the guest: its entry, each return inside it, or both.
struct point {
    uint64_t address, end; // guest virtual; end is exclusive
    uint32_t number;       // its line in the file, from 0
    bool entry, exits;
};

// By address. Functions do not overlap.
struct points {
    struct point *all;
    size_t count;
};

// Reads TEXT, which it changes: a line for each function, "ADDRESS SIZE entry|exit|both" in
// hexadecimal digits. Returns 0, or the number of the line (from 1) that is not such a line, or
// overlaps another, or is one too many.
unsigned points_parse(struct points *points, char *text);
// The first function that ends after `address`, or NULL.
const struct point *points_from(const struct points *points, uint64_t address);
