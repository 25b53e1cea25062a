// SPDX-License-Identifier: Apache-2.0
#include "xdr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 4096, SAMPLE_DEPTH = 3, SAMPLE_ITEMS = 2, FIRST_BYTES = 1024 };

struct xdr_block {
    struct xdr_block *next;
    max_align_t memory[];
};

void *xdr_new(struct xdr *xdr, size_t size)
{
    if (size > SIZE_MAX - sizeof(struct xdr_block))
        return NULL;
    struct xdr_block *block = calloc(1, sizeof *block + size);
    if (!block)
        return NULL;
    block->next = xdr->blocks;
    xdr->blocks = block;
    return block->memory;
}

void xdr_forget(struct xdr *xdr)
{
    while (xdr->blocks) {
        struct xdr_block *block = xdr->blocks;
        xdr->blocks = block->next;
        free(block);
    }
}

void xdr_begin(struct xdr *xdr)
{
    xdr->at = 0;
}

static uint8_t *room(struct xdr *xdr, size_t count)
{
    if (count > xdr->end - xdr->at) {
        size_t end = xdr->end ? xdr->end : FIRST_BYTES;
        while (end - xdr->at < count)
            end *= 2;
        uint8_t *bytes = realloc(xdr->bytes, end);
        if (!bytes)
            return NULL;
        xdr->bytes = bytes;
        xdr->end = end;
    }
    uint8_t *found = xdr->bytes + xdr->at;
    xdr->at += count;
    return found;
}

static const uint8_t *take(struct xdr *xdr, size_t count)
{
    if (count > xdr->end - xdr->at)
        return NULL;
    const uint8_t *found = xdr->bytes + xdr->at;
    xdr->at += count;
    return found;
}

static bool put(struct xdr *xdr, uint64_t value, unsigned size)
{
    uint8_t *bytes = room(xdr, size);
    for (unsigned i = 0; bytes && i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * (size - 1 - i)));
    return bytes;
}

static bool get(struct xdr *xdr, uint64_t *value, unsigned size)
{
    const uint8_t *bytes = take(xdr, size);
    *value = 0;
    for (unsigned i = 0; bytes && i < size; i++)
        *value = *value << 8 | bytes[i];
    return bytes;
}

bool xdr_put(struct xdr *xdr, uint32_t word)
{
    return put(xdr, word, 4);
}

bool xdr_get(struct xdr *xdr, uint32_t *word)
{
    uint64_t value;
    bool got = get(xdr, &value, 4);
    *word = (uint32_t)value;
    return got;
}

// A number of 4 or 8 bytes, but for printing.
static bool number(struct xdr *xdr, uint64_t *value, unsigned size)
{
    switch (xdr->operation) {
    case XDR_ENCODE:
        return put(xdr, *value, size);
    case XDR_DECODE:
        return get(xdr, value, size);
    default:
        *value = xdr->next++;
        if (size == 8)
            *value |= *value << 32;
        return true;
    }
}

#define NUMBER(name, type, size, format)                                                           \
    bool name(struct xdr *xdr, void *value)                                                        \
    {                                                                                              \
        type *own = value;                                                                         \
        uint64_t wire = (uint64_t)*own;                                                            \
        if (xdr->operation == XDR_PRINT)                                                           \
            return fprintf(xdr->out, " %" format, *own) > 0;                                       \
        bool done = number(xdr, &wire, size);                                                      \
        *own = (type)wire;                                                                         \
        return done;                                                                               \
    }

NUMBER(xdr_int, int32_t, 4, PRId32)
NUMBER(xdr_unsigned, uint32_t, 4, PRIu32)
NUMBER(xdr_hyper, int64_t, 8, PRId64)
NUMBER(xdr_unsigned_hyper, uint64_t, 8, PRIu64)

// IEEE 754, as the machine has it.
#define FLOATING(name, type, bits, size, format)                                                   \
    bool name(struct xdr *xdr, void *value)                                                        \
    {                                                                                              \
        type *own = value;                                                                         \
        if (xdr->operation == XDR_SAMPLE) {                                                        \
            *own = (type)xdr->next++ + (type)0.5;                                                  \
            return true;                                                                           \
        }                                                                                          \
        bits raw;                                                                                  \
        memcpy(&raw, own, sizeof raw);                                                             \
        if (xdr->operation == XDR_PRINT)                                                           \
            return fprintf(xdr->out, " x%0" format, raw) > 0;                                      \
        uint64_t wire = raw;                                                                       \
        bool done = number(xdr, &wire, size);                                                      \
        raw = (bits)wire;                                                                          \
        memcpy(own, &raw, sizeof raw);                                                             \
        return done;                                                                               \
    }

FLOATING(xdr_float, float, uint32_t, 4, "8" PRIx32)
FLOATING(xdr_double, double, uint64_t, 8, "16" PRIx64)

bool xdr_quadruple(struct xdr *xdr, void *value)
{
    return xdr_opaque(xdr, ((struct xdr_quadruple *)value)->bytes, 16);
}

bool xdr_bool(struct xdr *xdr, void *value)
{
    bool *own = value;
    if (xdr->operation == XDR_SAMPLE) {
        *own = xdr->next++ % 2;
        return true;
    }
    uint32_t wire = xdr->operation == XDR_DECODE ? 0 : *own;
    bool done = xdr_unsigned(xdr, &wire) && wire <= 1;
    *own = wire;
    return done;
}

bool xdr_enum(struct xdr *xdr, int32_t *value, const int32_t *values, uint32_t count)
{
    if (xdr->operation == XDR_SAMPLE) {
        *value = values[xdr->next++ % count];
        return true;
    }
    if (!xdr_int(xdr, value))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (values[i] == *value)
            return true;
    return false;
}

uint32_t xdr_choice(struct xdr *xdr, uint32_t count)
{
    return xdr->next++ % count;
}

bool xdr_opaque(struct xdr *xdr, void *bytes, uint32_t count)
{
    static const uint8_t zeros[4];
    uint8_t *own = bytes;
    unsigned pad = -count & 3;
    switch (xdr->operation) {
    case XDR_ENCODE: {
        uint8_t *to = room(xdr, (size_t)count + pad);
        if (!to)
            return false;
        if (count)
            memcpy(to, own, count);
        memset(to + count, 0, pad);
        return true;
    }
    case XDR_DECODE: {
        const uint8_t *from = take(xdr, (size_t)count + pad);
        if (!from || memcmp(from + count, zeros, pad))
            return false;
        if (count)
            memcpy(own, from, count);
        return true;
    }
    case XDR_PRINT:
        fputs(" x", xdr->out);
        for (uint32_t i = 0; i < count; i++)
            fprintf(xdr->out, "%02x", own[i]);
        return true;
    default:
        for (uint32_t i = 0; i < count; i++)
            own[i] = (uint8_t)(xdr->next + i);
        xdr->next++;
        return true;
    }
}

bool xdr_bytes(struct xdr *xdr, struct xdr_bytes *value, uint32_t most, bool text)
{
    if (xdr->operation == XDR_PRINT)
        return xdr_opaque(xdr, value->data, value->length);
    if (xdr->operation == XDR_SAMPLE) {
        char sample[24];
        int length = snprintf(sample, sizeof sample, "text %" PRIu32, xdr->next);
        value->length = (uint32_t)length < most ? (uint32_t)length : most;
        value->data = xdr_new(xdr, (size_t)value->length + 1);
        if (!value->data)
            return false;
        if (!text)
            return xdr_opaque(xdr, value->data, value->length);
        xdr->next++;
        memcpy(value->data, sample, value->length);
        return true;
    }
    if (!xdr_unsigned(xdr, &value->length) || value->length > most)
        return false;
    if (xdr->operation == XDR_DECODE) {
        if (value->length > xdr->end - xdr->at)
            return false;
        value->data = xdr_new(xdr, (size_t)value->length + 1);
        if (!value->data)
            return false;
    }
    return xdr_opaque(xdr, value->data, value->length);
}

bool xdr_vector(struct xdr *xdr, void *items, uint32_t count, size_t size, xdr_filter *filter)
{
    bool done = ++xdr->depth <= DEPTH_MOST;
    for (uint32_t i = 0; done && i < count; i++)
        done = filter(xdr, (char *)items + i * size);
    xdr->depth--;
    return done;
}

bool xdr_array(struct xdr *xdr, uint32_t *length, void **items, uint32_t most, size_t size,
               uint32_t least, xdr_filter *filter)
{
    if (xdr->operation == XDR_SAMPLE) {
        *length = xdr->depth >= SAMPLE_DEPTH ? 0 : most < SAMPLE_ITEMS ? most : SAMPLE_ITEMS;
    } else if (!xdr_unsigned(xdr, length) || *length > most) {
        return false;
    }
    if (xdr->operation == XDR_DECODE && *length > (xdr->end - xdr->at) / least)
        return false;
    if (xdr->operation == XDR_DECODE || xdr->operation == XDR_SAMPLE) {
        *items = xdr_new(xdr, *length * size);
        if (!*items)
            return false;
    }
    return xdr_vector(xdr, *items, *length, size, filter);
}

bool xdr_optional(struct xdr *xdr, void **value, size_t size, xdr_filter *filter)
{
    bool present = xdr->operation == XDR_SAMPLE ? xdr->depth < SAMPLE_DEPTH : *value != NULL;
    if (xdr->operation != XDR_SAMPLE &&
        !(xdr->operation == XDR_PRINT ? fprintf(xdr->out, " %d", present) > 0
                                      : xdr_bool(xdr, &present)))
        return false;
    if (xdr->operation == XDR_DECODE || xdr->operation == XDR_SAMPLE) {
        *value = present ? xdr_new(xdr, size) : NULL;
        if (present && !*value)
            return false;
    }
    return !present || xdr_vector(xdr, *value, 1, size, filter);
}

bool xdr_sample(struct xdr *xdr, xdr_filter *filter, void *value)
{
    struct xdr own = {.operation = XDR_SAMPLE, .blocks = xdr->blocks, .next = 1};
    bool done = filter(&own, value);
    xdr->blocks = own.blocks;
    return done;
}

void xdr_print(FILE *out, xdr_filter *filter, void *value)
{
    struct xdr own = {.operation = XDR_PRINT, .out = out};
    filter(&own, value);
}

bool xdr_encode(struct xdr *xdr, xdr_filter *filter, void *value)
{
    xdr->operation = XDR_ENCODE;
    return filter(xdr, value);
}

bool xdr_decode(struct xdr *xdr, const uint8_t *bytes, size_t count, xdr_filter *filter,
                void *value)
{
    // What is decoded is not changed.
    struct xdr own = {.operation = XDR_DECODE,
                      .bytes = (uint8_t *)(uintptr_t)bytes,
                      .end = count,
                      .blocks = xdr->blocks};
    bool done = filter(&own, value) && own.at == count;
    xdr->blocks = own.blocks;
    return done;
}
