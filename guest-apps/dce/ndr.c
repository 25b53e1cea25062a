/* SPDX-License-Identifier: Apache-2.0 */
#include "ndr.h"

enum { UNIQUE_REFERENT = 0x20000 /* any number but 0 */ };

struct dce_ndr dce_ndr_reader(const uint8_t *bytes, size_t length, bool big_endian)
{
    return (struct dce_ndr){(uint8_t *)(uintptr_t)bytes, length, 0, big_endian, false};
}

struct dce_ndr dce_ndr_writer(uint8_t *bytes, size_t room, bool big_endian)
{
    return (struct dce_ndr){bytes, room, 0, big_endian, false};
}

/* The next `count` bytes; NULL: there are not as many. */
static uint8_t *take(struct dce_ndr *ndr, size_t count)
{
    uint8_t *at = ndr->bytes + ndr->at;

    if (ndr->failed || ndr->length - ndr->at < count) {
        ndr->failed = true;
        return NULL;
    }
    ndr->at += count;
    return at;
}

void dce_ndr_align(struct dce_ndr *ndr, size_t to)
{
    size_t past = ndr->at % to;

    if (past != 0)
        take(ndr, to - past);
}

/* The same for a writer, whose gaps are zeros. */
static void fill(struct dce_ndr *ndr, size_t to)
{
    while (!ndr->failed && ndr->at % to != 0)
        dce_ndr_put8(ndr, 0);
}

uint8_t dce_ndr_get8(struct dce_ndr *ndr)
{
    const uint8_t *at = take(ndr, 1);

    return at == NULL ? 0 : *at;
}

uint16_t dce_ndr_get16(struct dce_ndr *ndr)
{
    const uint8_t *at;

    dce_ndr_align(ndr, 2);
    at = take(ndr, 2);
    return at == NULL ? 0 : dce_get16(at, ndr->big_endian);
}

uint32_t dce_ndr_get32(struct dce_ndr *ndr)
{
    const uint8_t *at;

    dce_ndr_align(ndr, 4);
    at = take(ndr, 4);
    return at == NULL ? 0 : dce_get32(at, ndr->big_endian);
}

uint64_t dce_ndr_get64(struct dce_ndr *ndr)
{
    const uint8_t *at;
    uint64_t first, second;

    dce_ndr_align(ndr, 8);
    at = take(ndr, 8);
    if (at == NULL)
        return 0;
    first = dce_get32(at, ndr->big_endian);
    second = dce_get32(at + 4, ndr->big_endian);
    return ndr->big_endian ? first << 32 | second : second << 32 | first;
}

void dce_ndr_get_uuid(struct dce_ndr *ndr, struct dce_uuid *uuid)
{
    const uint8_t *at;

    dce_ndr_align(ndr, 4);
    at = take(ndr, 16);
    *uuid = (struct dce_uuid){{0}};
    if (at != NULL)
        dce_get_uuid(at, uuid, ndr->big_endian);
}

const uint8_t *dce_ndr_get_bytes(struct dce_ndr *ndr, size_t count)
{
    return take(ndr, count);
}

const uint8_t *dce_ndr_get_array(struct dce_ndr *ndr, size_t most, size_t *count)
{
    *count = dce_ndr_get32(ndr);
    if (*count > most)
        ndr->failed = true;
    if (ndr->failed)
        *count = 0;
    return take(ndr, *count);
}

const char *dce_ndr_get_string(struct dce_ndr *ndr, size_t most)
{
    uint32_t room = dce_ndr_get32(ndr), offset = dce_ndr_get32(ndr), count = dce_ndr_get32(ndr);
    const uint8_t *text;

    if (offset != 0 || count == 0 || count > room || count > most + 1)
        ndr->failed = true;
    text = take(ndr, count);
    if (text != NULL && memchr(text, '\0', count) != text + count - 1)
        ndr->failed = true;
    return ndr->failed ? NULL : (const char *)text;
}

void dce_ndr_put8(struct dce_ndr *ndr, uint8_t value)
{
    uint8_t *at = take(ndr, 1);

    if (at != NULL)
        *at = value;
}

void dce_ndr_put16(struct dce_ndr *ndr, uint16_t value)
{
    uint8_t *at;

    fill(ndr, 2);
    at = take(ndr, 2);
    if (at != NULL)
        dce_put16(at, value, ndr->big_endian);
}

void dce_ndr_put32(struct dce_ndr *ndr, uint32_t value)
{
    uint8_t *at;

    fill(ndr, 4);
    at = take(ndr, 4);
    if (at != NULL)
        dce_put32(at, value, ndr->big_endian);
}

void dce_ndr_put64(struct dce_ndr *ndr, uint64_t value)
{
    uint32_t high = (uint32_t)(value >> 32), low = (uint32_t)value;
    uint8_t *at;

    fill(ndr, 8);
    at = take(ndr, 8);
    if (at == NULL)
        return;
    dce_put32(at, ndr->big_endian ? high : low, ndr->big_endian);
    dce_put32(at + 4, ndr->big_endian ? low : high, ndr->big_endian);
}

void dce_ndr_put_uuid(struct dce_ndr *ndr, const struct dce_uuid *uuid)
{
    uint8_t *at;

    fill(ndr, 4);
    at = take(ndr, 16);
    if (at != NULL)
        dce_put_uuid(at, uuid, ndr->big_endian);
}

void dce_ndr_put_bytes(struct dce_ndr *ndr, const uint8_t *bytes, size_t count)
{
    uint8_t *at = take(ndr, count);

    if (at != NULL && count != 0)
        memcpy(at, bytes, count);
}

void dce_ndr_put_array(struct dce_ndr *ndr, const uint8_t *bytes, size_t count)
{
    dce_ndr_put32(ndr, (uint32_t)count);
    dce_ndr_put_bytes(ndr, bytes, count);
}

/* As much room as it takes; from its beginning; its bytes, and the NUL. */
void dce_ndr_put_string(struct dce_ndr *ndr, const char *text)
{
    size_t count = strlen(text) + 1;

    dce_ndr_put32(ndr, (uint32_t)count);
    dce_ndr_put32(ndr, 0);
    dce_ndr_put32(ndr, (uint32_t)count);
    dce_ndr_put_bytes(ndr, (const uint8_t *)text, count);
}

bool dce_ndr_get_unique(struct dce_ndr *ndr)
{
    return dce_ndr_get32(ndr) != 0;
}

void dce_ndr_put_unique(struct dce_ndr *ndr, bool is_null)
{
    dce_ndr_put32(ndr, is_null ? 0 : UNIQUE_REFERENT);
}

enum dce_full dce_ndr_get_full(struct dce_ndr *ndr, struct dce_referents *seen, unsigned *index)
{
    uint32_t id = dce_ndr_get32(ndr);

    *index = 0;
    if (id == 0)
        return DCE_FULL_NULL;
    for (; *index < seen->count; ++*index)
        if (seen->ids[*index] == id)
            return DCE_FULL_SEEN;
    if (seen->count == DCE_REFERENTS) {
        ndr->failed = true;
        *index = 0;
        return DCE_FULL_NULL;
    }
    seen->ids[seen->count++] = id;
    return DCE_FULL_NEW;
}

void dce_ndr_put_full(struct dce_ndr *ndr, uint32_t id)
{
    dce_ndr_put32(ndr, id);
}
