/* SPDX-License-Identifier: Apache-2.0 */
#include "header.h"

#include <string.h>

#include "pattern.h"

enum { MAGIC_AT = 0, SEQUENCE_AT = 4, LENGTH_AT = 8, ATTEMPT_AT = 12 };

static const uint32_t MAGIC = 0x53444c31; /* "SDL1" */

static void put_be32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static uint32_t get_be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void make_header(uint8_t header[HEADER_BYTES], size_t size, uint32_t sequence,
                        uint32_t attempt)
{
    put_be32(header + MAGIC_AT, MAGIC);
    put_be32(header + SEQUENCE_AT, sequence);
    put_be32(header + LENGTH_AT, (uint32_t)size);
    put_be32(header + ATTEMPT_AT, attempt);
}

void header_make_payload(uint8_t *payload, size_t size, uint32_t sequence, uint32_t attempt)
{
    uint8_t header[HEADER_BYTES];

    make_header(header, size, sequence, attempt);
    memcpy(payload, header, size < HEADER_BYTES ? size : HEADER_BYTES);
    if (size > HEADER_BYTES)
        pattern_fill(PATTERN_OPAQUE, sequence, HEADER_BYTES, payload + HEADER_BYTES,
                     size - HEADER_BYTES);
}

void header_set_attempt(uint8_t *payload, size_t size, uint32_t attempt)
{
    uint8_t bytes[4];

    put_be32(bytes, attempt);
    if (size > ATTEMPT_AT)
        memcpy(payload + ATTEMPT_AT, bytes,
               size - ATTEMPT_AT < sizeof(bytes) ? size - ATTEMPT_AT : sizeof(bytes));
}

bool header_read(const uint8_t *bytes, size_t length, struct header *header)
{
    if (length < HEADER_BYTES || get_be32(bytes + MAGIC_AT) != MAGIC)
        return false;
    header->sequence = get_be32(bytes + SEQUENCE_AT);
    header->length = get_be32(bytes + LENGTH_AT);
    header->attempt = get_be32(bytes + ATTEMPT_AT);
    return true;
}

bool header_is_payload(const uint8_t *bytes, size_t size, uint32_t sequence)
{
    uint8_t expected[HEADER_BYTES];
    size_t compared = size < ATTEMPT_AT ? size : ATTEMPT_AT;

    make_header(expected, size, sequence, 0);
    if (memcmp(bytes, expected, compared) != 0)
        return false;
    return size <= HEADER_BYTES || pattern_matches(PATTERN_OPAQUE, sequence, HEADER_BYTES,
                                                   bytes + HEADER_BYTES, size - HEADER_BYTES);
}

bool header_is_any_payload(const uint8_t *bytes, size_t size)
{
    uint8_t magic[4];
    struct header header;

    if (size < HEADER_BYTES) {
        put_be32(magic, MAGIC);
        return memcmp(bytes, magic, size < sizeof(magic) ? size : sizeof(magic)) == 0;
    }
    return header_read(bytes, size, &header) && header.length == size &&
           header_is_payload(bytes, size, header.sequence);
}
