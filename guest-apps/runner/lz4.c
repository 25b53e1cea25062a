/* SPDX-License-Identifier: Apache-2.0 */
#include "lz4.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LEGACY_MAGIC = 0x184c2102,
    LEGACY_BLOCK = 8 << 20, /* decoded bytes in each block but the last */
    LEAST_MATCH = 4,
    LONG_LENGTH = 15,
    WORD = 4,
    STEP = 8,
    SHORT = 32,
};

struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

static uint32_t get_le32(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* A length of 15 goes on in the following bytes, up to one below 255. */
static bool read_length(struct reader *in, size_t *length)
{
    uint8_t more;

    if (*length != LONG_LENGTH)
        return true;
    do {
        if (in->at == in->end)
            return false;
        more = *in->at++;
        *length += more;
    } while (more == 255);
    return true;
}

/*
 * Most copies are shorter than a call of memcpy costs, so they go in steps of eight bytes, which
 * may write up to seven bytes too far: only where `slack` bytes behind them belong to the buffer,
 * and where the source is at least a step away.
 */
static void copy_short(uint8_t *to, const uint8_t *from, size_t length)
{
    for (size_t done = 0; done < length; done += STEP)
        memcpy(to + done, from + done, STEP);
}

static bool can_step(size_t length, size_t slack)
{
    return length <= SHORT && slack >= STEP;
}

/* The match may overlap what it makes: then it repeats the bytes between. */
static void copy_match(uint8_t *to, size_t distance, size_t length, size_t slack)
{
    const uint8_t *from = to - distance;

    if (distance >= STEP && can_step(length, slack))
        copy_short(to, from, length);
    else if (distance >= length)
        memcpy(to, from, length);
    else
        while (length-- > 0)
            *to++ = *from++;
}

static void copy_literals(uint8_t *to, const struct reader *in, size_t length, size_t slack)
{
    if (can_step(length, slack) && (size_t)(in->end - in->at) >= length + STEP)
        copy_short(to, in->at, length);
    else
        memcpy(to, in->at, length);
}

ptrdiff_t lz4_decode_block(const uint8_t *block, size_t length, uint8_t *out, size_t room)
{
    struct reader in = {block, block + length};
    size_t done = 0;

    while (in.at < in.end) {
        uint8_t token = *in.at++;
        size_t literals = token >> 4;
        size_t match = token & 15;
        size_t distance;

        if (!read_length(&in, &literals) || literals > (size_t)(in.end - in.at) ||
            literals > room - done)
            return -1;
        copy_literals(out + done, &in, literals, room - done - literals);
        in.at += literals;
        done += literals;
        if (in.at == in.end)
            return (ptrdiff_t)done; /* the last sequence has no match */
        if (in.end - in.at < 2)
            return -1;
        distance = in.at[0] | (size_t)in.at[1] << 8;
        in.at += 2;
        if (!read_length(&in, &match))
            return -1;
        match += LEAST_MATCH;
        if (distance == 0 || distance > done || match > room - done)
            return -1;
        copy_match(out + done, distance, match, room - done - match);
        done += match;
    }
    return -1; /* a block ends with literals */
}

/* The bytes of the next block, and `in` behind it; false where it is not whole. */
static bool take_block(struct reader *in, struct reader *block)
{
    size_t size;

    if (in->end - in->at < WORD)
        return false;
    size = get_le32(in->at);
    in->at += WORD;
    if (size > (size_t)(in->end - in->at))
        return false;
    block->at = in->at;
    block->end = in->at += size;
    return true;
}

/* The most that the blocks of a frame decode to; 0 where one is not whole. */
static size_t room_for(struct reader in)
{
    struct reader block;
    size_t room = 0;

    for (; in.at < in.end; room += LEGACY_BLOCK)
        if (!take_block(&in, &block))
            return 0;
    return room;
}

static bool decode_blocks(struct reader in, uint8_t *out, size_t *length)
{
    struct reader block;

    for (*length = 0; in.at < in.end && take_block(&in, &block);) {
        ptrdiff_t decoded = lz4_decode_block(block.at, (size_t)(block.end - block.at),
                                             out + *length, LEGACY_BLOCK);

        if (decoded < 0)
            return false;
        *length += (size_t)decoded;
    }
    return *length > 0;
}

uint8_t *lz4_decode_legacy(const uint8_t *frame, size_t length, size_t *decoded)
{
    struct reader in = {frame, frame + length};
    uint8_t *out;
    size_t room;

    if (length < WORD || get_le32(frame) != LEGACY_MAGIC)
        return NULL;
    in.at += WORD;
    room = room_for(in);
    if (room == 0)
        return NULL;
    out = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (out == MAP_FAILED)
        return NULL;
    if (decode_blocks(in, out, decoded) && mremap(out, room, *decoded, 0) != MAP_FAILED)
        return out;
    munmap(out, room);
    return NULL;
}
