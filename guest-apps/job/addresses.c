/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool job_parse_mac(const char *text, uint8_t mac[JOB_MAC])
{
    for (unsigned i = 0; i < JOB_MAC; i++, text += 3) {
        int high = hex_digit(text[0]);
        int low = high < 0 ? -1 : hex_digit(text[1]);

        if (low < 0 || text[2] != (i + 1 < JOB_MAC ? ':' : '\0'))
            return false;
        mac[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* A decimal number without leading zeros, at most `most`; `text` moves behind it. */
static bool parse_number(const char **text, unsigned most, unsigned *number)
{
    const char *start = *text;

    *number = 0;
    while (**text >= '0' && **text <= '9' && *text - start < 3)
        *number = *number * 10 + (unsigned)(*(*text)++ - '0');
    return *text > start && (*start != '0' || *text == start + 1) && *number <= most;
}

static bool parse_host(const char **text, uint32_t *address)
{
    *address = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned part;

        if (!parse_number(text, 255, &part) || (i < 3 && *(*text)++ != '.'))
            return false;
        *address = *address << 8 | part;
    }
    return true;
}

bool job_parse_address(const char *text, uint32_t *address)
{
    return parse_host(&text, address) && *text == '\0';
}

bool job_parse_network(const char *text, uint32_t *address, uint32_t *netmask)
{
    unsigned bits;

    if (!parse_host(&text, address) || *text++ != '/' || !parse_number(&text, 32, &bits) ||
        bits == 0 || *text != '\0')
        return false;
    *netmask = 0xffffffffu << (32 - bits);
    return *address != 0;
}
