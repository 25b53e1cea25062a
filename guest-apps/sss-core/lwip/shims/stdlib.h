/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For lwIP's netif_find, which nothing here calls. */
static inline int atoi(const char *text)
{
    int value = 0;

    while (*text >= '0' && *text <= '9')
        value = value * 10 + (*text++ - '0');
    return value;
}
