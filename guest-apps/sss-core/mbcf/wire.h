/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * MBCF packets. The format is Sundial's own: the papers describe the operations, not the bytes.
 * wire.def has the fields, operations and flags; here they become constants of C, and of each field
 * a pair of accessors, of a header or a payload: mbw_seq(header), mbw_set_seq(header, value).
 *
 * An operation has succeeded when all its frames have been acknowledged: by a frame that is not
 * UNSURE and comes in its turn, again, or outside the sequence. A RESULT reports an error, or has
 * the data of READ, or the old value of an atomic operation whose op_id names it (not its
 * connection).
 *
 * A frame has the length of its headers and payload, or FRAME_LEAST where that is more.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sss/mbcf.h"

enum {
#define MBW_NUMBER(name, value) MBW_##name = (value),
#include "wire.def"
};

/* In front of the header. */
enum { MBW_MAC = 6, MBW_SOURCE_MAC_AT = 6, MBW_ETHERTYPE_AT = 12 };

enum mbw_op {
#define MBW_CONTROL(name, code) MBW_##name = (code),
#define MBW_REQUEST(name, code) MBW_##name = (code),
#define MBW_NOTICE(name, code)  MBW_##name = (code),
#include "wire.def"
};

enum mbw_flag {
#define MBW_FLAG(name, bit) MBW_##name = (bit),
#include "wire.def"
};

/* Where a field is, for those that write several at once: MBW_AT(seq). */
#define MBW_AT(field) ((int)mbw_offset_##field)
enum mbw_offset {
#define MBW_FIELD(name, offset, bits)         mbw_offset_##name = (offset),
#define MBW_PAYLOAD_FIELD(name, offset, bits) mbw_offset_##name = (offset),
#include "wire.def"
};

_Static_assert(MBW_FRAME_MOST == MBW_ETHERNET + MBW_HEADER + MBW_DEFINITION + MBW_PAYLOAD, "sizes");
_Static_assert(MBW_TASKQUE_MOST == MBW_PAYLOAD - MBW_TASKQUE_HEAD, "sizes");
_Static_assert(MBW_SIGNAL_MOST == MBW_PAYLOAD - MBW_SIGNAL_ARGUMENTS * MBW_SIGNAL_ARGUMENT,
               "sizes");
#define MBW_REQUEST(name, code)                                                                    \
    _Static_assert((int)MB_OP_##name == (code), "as the interface says");
#include "wire.def"

static inline uint8_t get_be8(const uint8_t *at)
{
    return *at;
}

static inline uint16_t get_be16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return __builtin_bswap16(value);
}

static inline uint32_t get_be32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return __builtin_bswap32(value);
}

static inline uint64_t get_be64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return __builtin_bswap64(value);
}

static inline void put_be8(uint8_t *at, uint8_t value)
{
    *at = value;
}

static inline void put_be16(uint8_t *at, uint16_t value)
{
    value = __builtin_bswap16(value);
    memcpy(at, &value, sizeof(value));
}

static inline void put_be32(uint8_t *at, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(at, &value, sizeof(value));
}

static inline void put_be64(uint8_t *at, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(at, &value, sizeof(value));
}

#define MBW_ACCESSORS(name, bits)                                                                  \
    static inline uint##bits##_t mbw_##name(const uint8_t *from)                                   \
    {                                                                                              \
        return get_be##bits(from + mbw_offset_##name);                                             \
    }                                                                                              \
    static inline void mbw_set_##name(uint8_t *to, uint##bits##_t value)                           \
    {                                                                                              \
        put_be##bits(to + mbw_offset_##name, value);                                               \
    }
#define MBW_FIELD(name, offset, bits)         MBW_ACCESSORS(name, bits)
#define MBW_PAYLOAD_FIELD(name, offset, bits) MBW_ACCESSORS(name, bits)
#include "wire.def"
#undef MBW_ACCESSORS

/* Neighbours in one step: the compiler does not join them by itself. */
_Static_assert(MBW_AT(op) == 0 && MBW_AT(flags) == 1 && MBW_AT(version_status) == 2 &&
                   MBW_AT(tag) == 3,
               "neighbours");
_Static_assert(MBW_AT(target_epoch) == MBW_AT(epoch) + 4 && MBW_AT(ack) == MBW_AT(seq) + 4,
               "neighbours");
_Static_assert(MBW_AT(op_id) == MBW_AT(length) + 2 && MBW_AT(offset) == MBW_AT(op_id) + 2,
               "neighbours");

#define MBW_FIRST_WORD(op, flags, status, tag)                                                     \
    ((uint32_t)(op) << 24 | (uint32_t)(flags) << 16 |                                              \
     (uint32_t)(MBW_VERSION << MBW_VERSION_SHIFT | (status)) << 8 | (uint32_t)(tag))

static inline uint32_t mbw_first_word(const uint8_t *header)
{
    return get_be32(header);
}

static inline void mbw_set_first_word(uint8_t *header, uint32_t word)
{
    put_be32(header, word);
}

static inline uint64_t mbw_epochs(const uint8_t *header)
{
    return get_be64(header + MBW_AT(epoch));
}

static inline void mbw_set_seq_and_ack(uint8_t *header, uint32_t seq, uint32_t ack)
{
    put_be64(header + MBW_AT(seq), (uint64_t)seq << 32 | ack);
}

static inline void mbw_set_length_to_end(uint8_t *header, uint32_t length, uint16_t op_id,
                                         uint32_t offset)
{
    put_be64(header + MBW_AT(length), (uint64_t)(length << 16 | op_id) << 32 | offset);
}

static inline unsigned mbw_version(const uint8_t *header)
{
    return mbw_version_status(header) >> MBW_VERSION_SHIFT;
}

static inline uint8_t mbw_status(const uint8_t *header)
{
    return mbw_version_status(header) & MBW_STATUS_MASK;
}

/* Operations on the memory of a task: a tag says whose, and with which key. */
static inline bool mbw_is_keyed(uint8_t op)
{
    return op >= MBW_WRITE && op <= MBW_FETCH_ADD;
}

static inline uint16_t mbw_definition_bytes(uint8_t flags)
{
    return flags & MBW_DEFINES ? MBW_DEFINITION : 0;
}

static inline uint32_t mbw_frame_bytes(uint32_t behind_header)
{
    uint32_t length = MBW_ETHERNET + MBW_HEADER + behind_header;

    return length > MBW_FRAME_LEAST ? length : MBW_FRAME_LEAST;
}

/* The payload of a SIGNAL begins with its arguments. */
static inline uint64_t mbw_signal_argument(const uint8_t *payload, unsigned number)
{
    return get_be64(payload + (size_t)MBW_SIGNAL_ARGUMENT * number);
}

static inline void mbw_set_signal_argument(uint8_t *payload, unsigned number, uint64_t value)
{
    put_be64(payload + (size_t)MBW_SIGNAL_ARGUMENT * number, value);
}
