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
    uint64_t reach;        // the greatest end of this one and of all before it
    uint32_t number;       // its line in the file, from 0
    uint32_t crc;          // of its code, if has_crc
    bool entry, exits, has_crc;
};

// By address. Functions of different programs may be at the same addresses: these have a CRC each.
struct points {
    struct point *all;
    size_t count;
};

// Reads TEXT, which it changes: a line for each function, "ADDRESS SIZE entry|exit|both [CRC]" in
// hexadecimal digits. Returns 0, or the number of the line (from 1) that is not such a line, or
// overlaps another where one of them has no CRC, or is one too many.
unsigned points_parse(struct points *points, char *text);
// The first function from which on some may end after `address`, or NULL.
const struct point *points_from(const struct points *points, uint64_t address);
// CRC-32 as of zlib and Ethernet.
uint32_t points_crc(const uint8_t *bytes, size_t length);
