/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Base64 (RFC 4648 section 4), without a zero byte at its end. */

/* How many characters `length` bytes take. */
#define BASE64_LENGTH(length) (((length) + 2) / 3 * 4)

/* Writes BASE64_LENGTH(length) characters; answers that number. */
size_t base64_encode(const void *bytes, size_t length, char *text);

/* The number of bytes, at most length / 4 * 3, or -1 for what is not base64. `out` may be `text`.
 */
ptrdiff_t base64_decode(const char *text, size_t length, uint8_t *out);
