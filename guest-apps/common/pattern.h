/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The payload pattern of harness/schemas/README.md: byte i of the payload of call s is
 *
 *     v(s, i) = (s * 131 + i * 7 + (i >> 8)) & 0xff          in opaque data
 *     33 + v(s, i) % 94                                      in strings
 *
 * Because 7 * 183 = 1 (mod 256), each block of 256 bytes is one fixed table, read from another
 * place: filling is memcpy and checking a comparison by words. That keeps the check cheap enough to
 * make for every byte without showing in the measured time.
 */
enum pattern_kind { PATTERN_OPAQUE, PATTERN_TEXT };

/* Writes bytes [from, from + length) of the payload of call `sequence` to `bytes`. */
void pattern_fill(enum pattern_kind kind, uint32_t sequence, size_t from, void *bytes,
                  size_t length);

/* Whether `bytes` are bytes [from, from + length) of the payload of call `sequence`. */
bool pattern_matches(enum pattern_kind kind, uint32_t sequence, size_t from, const void *bytes,
                     size_t length);

/* Whether `bytes` are the payload of some call: what a server can check, which does not know which.
 */
bool pattern_matches_any(enum pattern_kind kind, const void *bytes, size_t length);
