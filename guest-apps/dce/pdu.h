/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The PDUs of connectionless DCE RPC (C706, chapter 12; version 4), in both byte orders. */
enum {
    DCE_HEADER = 80,
    DCE_BODY_MOST = 8192 - DCE_HEADER,            /* of a fragment, as `fragment_bytes` limits it */
    DCE_SELACK_WORDS = 3,                         /* for DCE_AHEAD fragments, recvq.h */
    DCE_CONTROL_BODY = 16 + 4 * DCE_SELACK_WORDS, /* of all PDUs but request and response */
};

enum dce_ptype {
    DCE_REQUEST,
    DCE_PING,
    DCE_RESPONSE,
    DCE_FAULT,
    DCE_WORKING,
    DCE_NOCALL,
    DCE_REJECT,
    DCE_ACK,
    DCE_CANCEL,
    DCE_FACK,
    DCE_CANCEL_ACK,
    DCE_PTYPES,
};

/* flags1 */
enum {
    DCE_FORWARDED = 0x01,
    DCE_LAST = 0x02,
    DCE_FRAGMENT = 0x04,
    DCE_NO_FACK = 0x08,
    DCE_MAYBE = 0x10,
    DCE_IDEMPOTENT = 0x20,
    DCE_BROADCAST = 0x40,
    DCE_OUTS_MAY_BE_BLASTED = 0x80,
};
/* flags2 */
enum { DCE_CANCEL_PENDING = 0x02 };

/* Statuses of rejects and faults (C706, appendix E), and those that a call can end with here. */
#define DCE_OK               0x00000000u
#define DCE_COMM_FAILURE     0x1c010001u
#define DCE_OP_RANGE         0x1c010002u
#define DCE_UNKNOWN_IF       0x1c010003u
#define DCE_WRONG_BOOT_TIME  0x1c010006u
#define DCE_YOU_CRASHED      0x1c010009u
#define DCE_UNKNOWN_ACTIVITY 0x1c01000au
#define DCE_PROTOCOL_ERROR   0x1c01000bu
#define DCE_OUT_OF_RANGE     0x1c010013u /* the results are too large for the caller */
#define DCE_TOO_BUSY         0x1c010014u
#define DCE_INVALID_BOUND    0x1c000007u
#define DCE_WHO_ARE_YOU      0x1c00000bu /* who_are_you was not answered */
#define DCE_CANCELLED        0x1c00000du
#define DCE_UNKNOWN_AUTH     0x1c00001du

#define DCE_NO_HINT 0xffffu

/* As its text reads: the three numbers in front are big endian. */
struct dce_uuid {
    uint8_t bytes[16];
};

static inline bool dce_uuid_equal(const struct dce_uuid *one, const struct dce_uuid *other)
{
    return memcmp(one->bytes, other->bytes, sizeof(one->bytes)) == 0;
}

struct dce_pdu {
    uint8_t ptype;
    uint8_t flags1;
    uint8_t flags2;
    bool big_endian;
    struct dce_uuid object;
    struct dce_uuid interface;
    struct dce_uuid activity;
    uint32_t boot_time;
    uint32_t version; /* of the interface: minor << 16 | major */
    uint32_t seq;
    uint16_t opnum;
    uint16_t interface_hint;
    uint16_t activity_hint;
    uint16_t fragment;
    uint16_t serial;
    uint8_t auth;
    uint16_t length;
    const uint8_t *body;
};

/*
 * False: no PDU of this version (too short, version, type, representation, length). Bytes behind
 * the body are allowed, as an authentication trailer would be there.
 */
bool dce_pdu_decode(const uint8_t *bytes, size_t length, struct dce_pdu *pdu);
/* Writes the DCE_HEADER bytes in front of the body. */
void dce_pdu_encode(const struct dce_pdu *pdu, uint8_t *header);

/* Integers in the order of a PDU. */
uint16_t dce_get16(const uint8_t *at, bool big_endian);
uint32_t dce_get32(const uint8_t *at, bool big_endian);
void dce_put16(uint8_t *at, uint16_t value, bool big_endian);
void dce_put32(uint8_t *at, uint32_t value, bool big_endian);
void dce_get_uuid(const uint8_t *at, struct dce_uuid *uuid, bool big_endian);
void dce_put_uuid(uint8_t *at, const struct dce_uuid *uuid, bool big_endian);

/* The body of a fack, and of a nocall that has one. */
struct dce_fack {
    uint16_t window_kib;
    uint32_t max_tsdu;
    uint32_t max_fragment;
    bool has_serial; /* an older peer sends neither serial nor selack */
    uint16_t serial;
    unsigned selack_words;
    uint32_t selack[DCE_SELACK_WORDS]; /* bit i of word w: fragment + 1 + 32 w + i has come */
};

/* False: neither 0, 12 nor 16 + 4n bytes, or more words than its body has. Words beyond those here
 * are left. An empty body gives has_body false. */
bool dce_fack_decode(const struct dce_pdu *pdu, struct dce_fack *fack, bool *has_body);
/* Bytes written, at most DCE_CONTROL_BODY. */
uint16_t dce_fack_encode(const struct dce_fack *fack, uint8_t *body, bool big_endian);

struct dce_cancel {
    uint32_t id;
    bool orphan;    /* no body: the caller quits the call */
    bool accepting; /* cancel_ack */
};
bool dce_cancel_decode(const struct dce_pdu *pdu, struct dce_cancel *cancel);
/* The body of a cancel or, with `is_ack`, of its acknowledgement; bytes written. */
uint16_t dce_cancel_encode(const struct dce_cancel *cancel, bool is_ack, uint8_t *body,
                           bool big_endian);

/* The status of a fault or a reject; false: it has none. */
bool dce_status_decode(const struct dce_pdu *pdu, uint32_t *status);

/* Sequence numbers, fragment numbers and serials wrap around. */
static inline int32_t dce_seq_after(uint32_t one, uint32_t other)
{
    return (int32_t)(one - other);
}

static inline int16_t dce_after(uint16_t one, uint16_t other)
{
    return (int16_t)(uint16_t)(one - other);
}
