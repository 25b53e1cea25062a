/* SPDX-License-Identifier: Apache-2.0 */
#include "base64.h"

#include <stdint.h>
#include <stdlib.h>

char *base64_encode(const void *bytes, size_t length)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *in = bytes;
    char *text = malloc((length + 2) / 3 * 4 + 1);
    char *out = text;

    if (text == NULL)
        return NULL;
    for (size_t at = 0; at < length; at += 3) {
        size_t left = length - at;
        uint32_t group = (uint32_t)in[at] << 16;

        if (left > 1)
            group |= (uint32_t)in[at + 1] << 8;
        if (left > 2)
            group |= in[at + 2];
        *out++ = alphabet[group >> 18];
        *out++ = alphabet[group >> 12 & 63];
        *out++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
        *out++ = left > 2 ? alphabet[group & 63] : '=';
    }
    *out = '\0';
    return text;
}
