/* SPDX-License-Identifier: Apache-2.0 */
#include "header.h"

#include <string.h>

#include "pattern.h"
#include "values.h"

enum { MAGIC_AT = 0, SEQUENCE_AT = 4, LENGTH_AT = 8, ATTEMPT_AT = 12 };

static const uint32_t MAGIC = 0x53444c31;          /* "SDL1" */
static const uint32_t FUNCTION_MAGIC = 0x53444600; /* "SDF", then the number */

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

static void make_header(uint8_t header[HEADER_BYTES], uint32_t magic, size_t size,
                        uint32_t sequence, uint32_t attempt)
{
    put_be32(header + MAGIC_AT, magic);
    put_be32(header + SEQUENCE_AT, sequence);
    put_be32(header + LENGTH_AT, (uint32_t)size);
    put_be32(header + ATTEMPT_AT, attempt);
}

void header_make_payload(uint8_t *payload, size_t size, uint32_t sequence, uint32_t attempt)
{
    uint8_t header[HEADER_BYTES];

    make_header(header, MAGIC, size, sequence, attempt);
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
    uint32_t magic;

    if (length < HEADER_BYTES)
        return false;
    magic = get_be32(bytes + MAGIC_AT);
    header->function = (enum function)(magic == MAGIC ? 0 : magic - FUNCTION_MAGIC);
    if (magic != MAGIC && (magic <= FUNCTION_MAGIC || magic > FUNCTION_MAGIC + FUNCTIONS))
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

    make_header(expected, MAGIC, size, sequence, 0);
    if (memcmp(bytes, expected, compared) != 0)
        return false;
    return size <= HEADER_BYTES || pattern_matches(PATTERN_OPAQUE, sequence, HEADER_BYTES,
                                                   bytes + HEADER_BYTES, size - HEADER_BYTES);
}

size_t header_call_size(enum function function)
{
    return HEADER_BYTES + function_size(function);
}

static bool is_call(const uint8_t *message, const struct header *header)
{
    return header->length == header_call_size(header->function) &&
           values_are_argument(message + HEADER_BYTES, header->function);
}

bool header_is_any_payload(const uint8_t *bytes, size_t size)
{
    uint8_t magic[4];
    struct header header;

    if (size < HEADER_BYTES) {
        put_be32(magic, MAGIC);
        return memcmp(bytes, magic, size < sizeof(magic) ? size : sizeof(magic)) == 0;
    }
    if (!header_read(bytes, size, &header) || header.length != size)
        return false;
    return header.function == 0 ? header_is_payload(bytes, size, header.sequence)
                                : is_call(bytes, &header);
}

size_t header_return_size(enum function function)
{
    return HEADER_BYTES + values_result_size(function);
}

void header_make_call(uint8_t *message, enum function function, uint32_t sequence, uint32_t attempt)
{
    make_header(message, FUNCTION_MAGIC + function, header_call_size(function), sequence, attempt);
    values_put_argument(message + HEADER_BYTES, function);
}

const uint8_t *header_answer(const uint8_t *message, uint8_t room[ANSWER_ROOM], size_t *length)
{
    struct header header;

    /* The others return their argument. */
    if (!header_read(message, *length, &header) || header.function != FUNCTION_DISTANCE ||
        *length != header_call_size(FUNCTION_DISTANCE))
        return message;
    *length = header_return_size(FUNCTION_DISTANCE);
    memcpy(room, message, HEADER_BYTES);
    put_be32(room + LENGTH_AT, (uint32_t)*length);
    values_execute_distance(message + HEADER_BYTES, room + HEADER_BYTES);
    return room;
}

bool header_is_return(const uint8_t *message, enum function function, uint32_t sequence)
{
    uint8_t expected[HEADER_BYTES];

    make_header(expected, FUNCTION_MAGIC + function, header_return_size(function), sequence, 0);
    return memcmp(message, expected, ATTEMPT_AT) == 0 &&
           values_are_result(message + HEADER_BYTES, function);
}
