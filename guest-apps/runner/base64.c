/* SPDX-License-Identifier: Apache-2.0 */
#include "base64.h"

#include <stdbool.h>
#include <string.h>

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encode(const void *bytes, size_t length, char *text)
{
    const uint8_t *in = bytes;
    char *out = text;

    for (size_t at = 0; at < length; at += 3) {
        size_t left = length - at;
        uint32_t group = (uint32_t)in[at] << 16;

        if (left > 1)
            group |= (uint32_t)in[at + 1] << 8;
        if (left > 2)
            group |= in[at + 2];
        *out++ = ALPHABET[group >> 18];
        *out++ = ALPHABET[group >> 12 & 63];
        *out++ = left > 1 ? ALPHABET[group >> 6 & 63] : '=';
        *out++ = left > 2 ? ALPHABET[group & 63] : '=';
    }
    return (size_t)(out - text);
}

static void make_table(uint8_t digits[256])
{
    memset(digits, 0xff, 256);
    for (uint8_t i = 0; i < 64; i++)
        digits[(uint8_t)ALPHABET[i]] = i;
}

ptrdiff_t base64_decode(const char *text, size_t length, uint8_t *out)
{
    static uint8_t digits[256];
    uint8_t *next = out;
    size_t padding = 0;

    if (digits[0] == 0)
        make_table(digits);
    if (length % 4 != 0)
        return -1;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
        padding++;
    for (size_t at = 0; at < length; at += 4) {
        size_t known = at + 4 == length ? 4 - padding : 4;
        uint32_t group = 0;

        for (size_t i = 0; i < 4; i++) {
            uint8_t digit = i < known ? digits[(uint8_t)text[at + i]] : 0;

            if (digit > 63)
                return -1;
            group = group << 6 | digit;
        }
        *next++ = (uint8_t)(group >> 16);
        if (known > 2)
            *next++ = (uint8_t)(group >> 8);
        if (known > 3)
            *next++ = (uint8_t)group;
    }
    return next - out;
}
