/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of PDUs, of NDR's types, of towers and of ept_map, written by hand from C706: the
 * numbers of the fields differ in every byte, so that none can stand in another's place.
 */
#include "../conv.h"
#include "../epm.h"
#include "expect.h"

enum { DIRTY = 0xa5 };

static const struct dce_uuid object = {{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x10, 0x11,
                                        0x12, 0x13, 0x14, 0x15, 0x16, 0x17}};
static const struct dce_uuid interface = {{0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
                                           0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f}};
static const struct dce_uuid activity = {{0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
                                          0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f}};

/* Figure 12-1: type, flags, and the length are filled in; serial 0x5a6b. */
static const uint8_t little[DCE_HEADER] = {
    0x04, 0,    0,    0,    0x10, 0x00, 0x00, 0x5a, /* version, type, flags, representation, serial
                                                       high */
    0x67, 0x45, 0x23, 0x01, 0xab, 0x89, 0xef, 0xcd, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15,
    0x16, 0x17, 0x23, 0x22, 0x21, 0x20, 0x25, 0x24, 0x27, 0x26, 0x28, 0x29, 0x2a, 0x2b,
    0x2c, 0x2d, 0x2e, 0x2f, 0x33, 0x32, 0x31, 0x30, 0x35, 0x34, 0x37, 0x36, 0x38, 0x39,
    0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0x44, 0x43, 0x42, 0x41, /* boot time 0x41424344 */
    0x48, 0x47, 0x46, 0x45,                                     /* interface version */
    0x4c, 0x4b, 0x4a, 0x49,                                     /* sequence */
    0x4e, 0x4d, 0x50, 0x4f, 0x52, 0x51, /* opnum, interface hint, activity hint */
    0,    0,    0x54, 0x53, 0x00, 0x6b, /* length, fragment, authentication, serial low */
};
static const uint8_t big[DCE_HEADER] = {
    0x04, 0,    0,    0,    0x00, 0x00, 0x00, 0x5a, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27,
    0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37,
    0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
    0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f, 0x50, 0x51, 0x52, 0,    0,    0x53, 0x54, 0x00, 0x6b,
};

/* What each type has behind its header. */
struct body {
    uint8_t ptype, flags1, flags2, length;
    uint8_t little[24], big[24];
};
static const struct body bodies[] = {
    {DCE_REQUEST, DCE_FRAGMENT | DCE_NO_FACK, 0, 3, {0x61, 0x62, 0x63}, {0x61, 0x62, 0x63}},
    {DCE_PING, 0, 0, 0, {0}, {0}},
    {DCE_RESPONSE, DCE_LAST | DCE_FRAGMENT | DCE_NO_FACK, DCE_CANCEL_PENDING, 1, {0x64}, {0x64}},
    {DCE_FAULT, 0, 0, 4, {0x07, 0x00, 0x00, 0x1c}, {0x1c, 0x00, 0x00, 0x07}},
    {DCE_WORKING, 0, 0, 0, {0}, {0}},
    {DCE_NOCALL, 0, 0, 0, {0}, {0}},
    /* A nocall with the body of a fack whose selack names the second and third fragment behind. */
    {DCE_NOCALL,
     0,
     0,
     20,
     {1, 0, 0x20, 0, 0xe4, 0xff, 0, 0, 0x00, 0x10, 0, 0, 0x34, 0x12, 1, 0, 0x06, 0, 0, 0},
     {1, 0, 0, 0x20, 0, 0, 0xff, 0xe4, 0, 0, 0x10, 0x00, 0x12, 0x34, 0, 1, 0, 0, 0, 0x06}},
    {DCE_REJECT, 0, 0, 4, {0x03, 0x00, 0x01, 0x1c}, {0x1c, 0x01, 0x00, 0x03}},
    {DCE_ACK, 0, 0, 0, {0}, {0}},
    {DCE_CANCEL, 0, 0, 8, {0, 0, 0, 0, 0x0a, 0x09, 0x08, 0x07}, {0, 0, 0, 0, 7, 8, 9, 0x0a}},
    {DCE_CANCEL, 0, 0, 0, {0}, {0}},
    {DCE_FACK,
     0,
     0,
     16,
     {1, 0, 0x20, 0, 0xe4, 0xff, 0, 0, 0x00, 0x10, 0, 0, 0x34, 0x12, 0, 0},
     {1, 0, 0, 0x20, 0, 0, 0xff, 0xe4, 0, 0, 0x10, 0x00, 0x12, 0x34, 0, 0}},
    {DCE_CANCEL_ACK,
     0,
     0,
     9,
     {0, 0, 0, 0, 0x0a, 0x09, 0x08, 0x07, 1},
     {0, 0, 0, 0, 7, 8, 9, 0x0a, 1}},
};
enum { BODIES = sizeof(bodies) / sizeof(*bodies) };

static void make(const struct body *body, bool is_big, uint8_t *bytes)
{
    memcpy(bytes, is_big ? big : little, DCE_HEADER);
    bytes[1] = body->ptype;
    bytes[2] = body->flags1;
    bytes[3] = body->flags2;
    bytes[is_big ? 75 : 74] = body->length;
    memcpy(bytes + DCE_HEADER, is_big ? body->big : body->little, body->length);
}

static bool fields_are_right(const struct dce_pdu *pdu)
{
    return dce_uuid_equal(&pdu->object, &object) && dce_uuid_equal(&pdu->interface, &interface) &&
           dce_uuid_equal(&pdu->activity, &activity) && pdu->boot_time == 0x41424344 &&
           pdu->version == 0x45464748 && pdu->seq == 0x494a4b4c && pdu->opnum == 0x4d4e &&
           pdu->interface_hint == 0x4f50 && pdu->activity_hint == 0x5152 &&
           pdu->fragment == 0x5354 && pdu->serial == 0x5a6b && pdu->auth == 0;
}

static void every_type_in_both_orders(void)
{
    for (unsigned i = 0; i < BODIES; i++)
        for (unsigned order = 0; order < 2; order++) {
            const struct body *body = &bodies[i];
            uint8_t golden[DCE_HEADER + 24], written[DCE_HEADER + 1];
            struct dce_pdu pdu;

            make(body, order, golden);
            EXPECT_OF(dce_pdu_decode(golden, DCE_HEADER + (size_t)body->length, &pdu), "%u", i);
            EXPECT_OF(fields_are_right(&pdu), "%u", i);
            EXPECT(pdu.ptype == body->ptype && pdu.flags1 == body->flags1);
            EXPECT(pdu.flags2 == body->flags2 && pdu.big_endian == order);
            EXPECT(pdu.length == body->length && pdu.body == golden + DCE_HEADER);
            memset(written, DIRTY, sizeof(written));
            dce_pdu_encode(&pdu, written);
            EXPECT_OF(memcmp(written, golden, DCE_HEADER) == 0, "%u", i);
            EXPECT(written[DCE_HEADER] == DIRTY);
        }
}

/* Bodies are decoded to these and encoded back to the golden bytes. */
static void bodies_in_both_orders(void)
{
    for (unsigned i = 0; i < BODIES; i++)
        for (unsigned order = 0; order < 2; order++) {
            const struct body *body = &bodies[i];
            uint8_t golden[DCE_HEADER + 24], written[DCE_CONTROL_BODY + 1];
            struct dce_cancel cancel;
            struct dce_fack fack;
            struct dce_pdu pdu;
            uint32_t status;
            bool has_body;
            uint16_t length = body->length;

            make(body, order, golden);
            EXPECT(dce_pdu_decode(golden, DCE_HEADER + (size_t)body->length, &pdu));
            memset(written, DIRTY, sizeof(written));
            switch (body->ptype) {
            case DCE_FACK:
            case DCE_NOCALL:
                EXPECT(dce_fack_decode(&pdu, &fack, &has_body) && has_body == (length != 0));
                if (length == 0)
                    continue;
                EXPECT(fack.window_kib == 32 && fack.max_tsdu == 65508 &&
                       fack.max_fragment == 4096 && fack.has_serial && fack.serial == 0x1234);
                EXPECT(fack.selack_words == (length - 16u) / 4 &&
                       fack.selack[0] == (length == 20 ? 6 : 0));
                length = dce_fack_encode(&fack, written, order);
                break;
            case DCE_CANCEL:
            case DCE_CANCEL_ACK:
                EXPECT(dce_cancel_decode(&pdu, &cancel) && cancel.orphan == (length == 0));
                EXPECT(cancel.id == (length == 0 ? 0 : 0x0708090a));
                EXPECT(cancel.accepting == (body->ptype == DCE_CANCEL_ACK));
                length = dce_cancel_encode(&cancel, body->ptype == DCE_CANCEL_ACK, written, order);
                break;
            case DCE_FAULT:
            case DCE_REJECT:
                EXPECT(dce_status_decode(&pdu, &status) &&
                       status == (body->ptype == DCE_FAULT ? DCE_INVALID_BOUND : DCE_UNKNOWN_IF));
                continue;
            default:
                EXPECT(!dce_status_decode(&pdu, &status));
                continue;
            }
            EXPECT_OF(length == body->length, "%u", i);
            EXPECT_OF(memcmp(written, golden + DCE_HEADER, length) == 0, "%u", i);
            EXPECT(written[length] == DIRTY);
        }
}

static void old_and_longer_facks(void)
{
    uint8_t bytes[DCE_HEADER + 40] = {0};
    struct dce_fack fack;
    struct dce_pdu pdu;
    bool has_body;

    for (uint16_t length = 0; length <= 40; length++) {
        make(&bodies[11], false, bytes);
        bytes[74] = (uint8_t)length;
        EXPECT(dce_pdu_decode(bytes, DCE_HEADER + (size_t)length, &pdu));
        EXPECT_OF(dce_fack_decode(&pdu, &fack, &has_body) ==
                      (length == 0 || length == 12 || (length >= 16 && length % 4 == 0)),
                  "length %u", length);
        if (length == 12)
            EXPECT(fack.window_kib == 32 && !fack.has_serial);
    }
    /* More words than the body has; then more than any of ours. */
    bytes[DCE_HEADER + 14] = 2;
    pdu.length = 20;
    EXPECT(!dce_fack_decode(&pdu, &fack, &has_body));
    bytes[DCE_HEADER + 14] = 5;
    pdu.length = 36;
    EXPECT(dce_fack_decode(&pdu, &fack, &has_body) && fack.selack_words == DCE_SELACK_WORDS);
}

static void what_is_no_pdu(void)
{
    uint8_t bytes[DCE_HEADER + 24];
    struct dce_pdu pdu;

    for (size_t length = 0; length < DCE_HEADER + 3; length++) {
        make(&bodies[0], true, bytes);
        EXPECT(!dce_pdu_decode(bytes, length, &pdu));
    }
    EXPECT(dce_pdu_decode(bytes, DCE_HEADER + 3, &pdu));
    EXPECT(dce_pdu_decode(bytes, DCE_HEADER + 24, &pdu)); /* an authentication trailer */
    static const struct {
        uint8_t at, value;
        bool allowed;
    } changes[] = {
        {0, 0x05, false}, {0, 0xf4, true}, {1, 11, false}, {1, 255, false}, {4, 0x20, false},
        {4, 0x01, false}, {5, 1, false},   {6, 9, true},   {75, 4, false},  {74, 1, false},
    };
    for (unsigned i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        make(&bodies[0], true, bytes);
        bytes[changes[i].at] = changes[i].value;
        EXPECT_OF(dce_pdu_decode(bytes, DCE_HEADER + 3, &pdu) == changes[i].allowed, "%u", i);
    }
}

/* ---- NDR ---- */

/* u8, u16, u32, u8, a UUID, a conformant array of 3, a fixed array of 2, unique and full pointers.
 */
static const uint8_t ndr_little[] = {
    0x01, 0,    0x03, 0x02, 0x07, 0x06, 0x05, 0x04, 0x08, 0,    0,    0,
    0x67, 0x45, 0x23, 0x01, 0xab, 0x89, 0xef, 0xcd, 0x10, 0x11, 0x12, 0x13,
    0x14, 0x15, 0x16, 0x17, 3,    0,    0,    0,    0xa1, 0xa2, 0xa3, 0xb1,
    0xb2, 0,    0,    0,    0,    0,    2,    0,    0,    0,    0,    0, /* unique: there, null */
    5,    0,    0,    0,    6,    0,    0,    0,    5,    0,    0,    0,
    0,    0,    0,    0, /* full: one, another, the one again, null */
};
static const uint8_t ndr_big[] = {
    0x01, 0,    0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0,    0,    0,    0x01, 0x23, 0x45, 0x67,
    0x89, 0xab, 0xcd, 0xef, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0,    0,    0,    3,
    0xa1, 0xa2, 0xa3, 0xb1, 0xb2, 0,    0,    0,    0,    2,    0,    0,    0,    0,    0,    0,
    0,    0,    0,    5,    0,    0,    0,    6,    0,    0,    0,    5,    0,    0,    0,    0,
};

static void read_all(const uint8_t *bytes, size_t length, bool order, bool whole)
{
    struct dce_ndr ndr = dce_ndr_reader(bytes, length, order);
    struct dce_referents seen = {.count = 0};
    struct dce_uuid uuid;
    const uint8_t *array, *fixed;
    size_t count;
    unsigned index[4];
    bool right;

    right = dce_ndr_get8(&ndr) == 1;
    right &= dce_ndr_get16(&ndr) == 0x0203;
    right &= dce_ndr_get32(&ndr) == 0x04050607;
    right &= dce_ndr_get8(&ndr) == 8;
    dce_ndr_get_uuid(&ndr, &uuid);
    right &= dce_uuid_equal(&uuid, &object);
    array = dce_ndr_get_array(&ndr, 3, &count);
    fixed = dce_ndr_get_bytes(&ndr, 2);
    right &= count == 3 && array != NULL && array[2] == 0xa3 && fixed != NULL && fixed[1] == 0xb2;
    right &= dce_ndr_get_unique(&ndr);
    right &= !dce_ndr_get_unique(&ndr);
    right &= dce_ndr_get_full(&ndr, &seen, &index[0]) == DCE_FULL_NEW && index[0] == 0;
    right &= dce_ndr_get_full(&ndr, &seen, &index[1]) == DCE_FULL_NEW && index[1] == 1;
    right &= dce_ndr_get_full(&ndr, &seen, &index[2]) == DCE_FULL_SEEN && index[2] == 0;
    right &= dce_ndr_get_full(&ndr, &seen, &index[3]) == DCE_FULL_NULL;
    EXPECT_OF(ndr.failed != whole, "length %zu", length);
    EXPECT_OF(!whole || right, "length %zu", length);
}

static void write_all(struct dce_ndr *ndr)
{
    static const uint8_t array[] = {0xa1, 0xa2, 0xa3}, fixed[] = {0xb1, 0xb2};

    dce_ndr_put8(ndr, 1);
    dce_ndr_put16(ndr, 0x0203);
    dce_ndr_put32(ndr, 0x04050607);
    dce_ndr_put8(ndr, 8);
    dce_ndr_put_uuid(ndr, &object);
    dce_ndr_put_array(ndr, array, sizeof(array));
    dce_ndr_put_bytes(ndr, fixed, sizeof(fixed));
    dce_ndr_put_unique(ndr, false);
    dce_ndr_put_unique(ndr, true);
    dce_ndr_put_full(ndr, 5);
    dce_ndr_put_full(ndr, 6);
    dce_ndr_put_full(ndr, 5);
    dce_ndr_put_full(ndr, 0);
}

static void ndr_types_in_both_orders(void)
{
    for (unsigned order = 0; order < 2; order++)
        for (size_t length = 0; length <= sizeof(ndr_little); length++) {
            const uint8_t *golden = order ? ndr_big : ndr_little;
            bool whole = length == sizeof(ndr_little);
            uint8_t bytes[sizeof(ndr_little) + 1];
            struct dce_ndr writer;

            memcpy(bytes, golden, length);
            read_all(bytes, length, order, whole);
            memset(bytes, DIRTY, sizeof(bytes));
            writer = dce_ndr_writer(bytes, length, order);
            write_all(&writer);
            EXPECT(writer.failed != whole && writer.at <= length && bytes[length] == DIRTY);
            EXPECT(!whole || memcmp(bytes, golden, length) == 0);
        }
}

static void arrays_and_pointers_are_bounded(void)
{
    uint8_t bytes[4 * (DCE_REFERENTS + 1)];
    struct dce_referents seen = {.count = 0};
    struct dce_ndr ndr;
    unsigned index;
    size_t count;

    ndr = dce_ndr_reader(ndr_little + 28, 8, false);
    EXPECT(dce_ndr_get_array(&ndr, 2, &count) == NULL && count == 0 && ndr.failed);
    for (uint8_t i = 0; i <= DCE_REFERENTS; i++)
        memcpy(bytes + 4 * i, (const uint8_t[]){i + 1, 0, 0, 0}, 4);
    ndr = dce_ndr_reader(bytes, sizeof(bytes), false);
    for (unsigned i = 0; i < DCE_REFERENTS; i++)
        EXPECT(dce_ndr_get_full(&ndr, &seen, &index) == DCE_FULL_NEW && index == i);
    EXPECT(dce_ndr_get_full(&ndr, &seen, &index) == DCE_FULL_NULL && ndr.failed);
}

/* ---- conv and epm ---- */

static void who_are_you(void)
{
    static const uint8_t question[] = {0x33, 0x32, 0x31, 0x30, 0x35, 0x34, 0x37, 0x36, 0x38, 0x39,
                                       0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0x04, 0x03, 0x02, 0x01};
    static const uint8_t plain[] = {0, 0, 0, 9, 0x1c, 0x01, 0x00, 0x09};
    static const uint8_t with_space[] = {0,    0,    0,    9,    0x20, 0x21, 0x22, 0x23,
                                         0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b,
                                         0x2c, 0x2d, 0x2e, 0x2f, 0,    0,    0,    0};
    struct dce_pdu pdu = {.length = sizeof(question), .body = question};
    struct dce_conv_question asked;
    struct dce_conv_answer answer = {9, interface, DCE_YOU_CRASHED}, read;
    uint8_t written[DCE_CONV_OUT2];

    EXPECT(dce_conv_get_question(&pdu, &asked));
    EXPECT(dce_uuid_equal(&asked.activity, &activity) && asked.boot_time == 0x01020304);
    EXPECT(dce_conv_put_question(&asked, written, false) == sizeof(question));
    EXPECT(memcmp(written, question, sizeof(question)) == 0);
    pdu.length--;
    EXPECT(!dce_conv_get_question(&pdu, &asked));

    EXPECT(dce_conv_put_answer(&answer, DCE_CONV_WHO_ARE_YOU, written, true) == sizeof(plain));
    EXPECT(memcmp(written, plain, sizeof(plain)) == 0);
    pdu = (struct dce_pdu){.big_endian = true, .length = sizeof(plain), .body = plain};
    EXPECT(dce_conv_get_answer(&pdu, &read) && read.seq == 9 && read.status == DCE_YOU_CRASHED);
    answer.status = 0;
    EXPECT(dce_conv_put_answer(&answer, DCE_CONV_WHO_ARE_YOU2, written, true) ==
           sizeof(with_space));
    EXPECT(memcmp(written, with_space, sizeof(with_space)) == 0);
    pdu.opnum = DCE_CONV_WHO_ARE_YOU2;
    EXPECT(!dce_conv_get_answer(&pdu, &read));
    pdu.length = sizeof(with_space);
    pdu.body = with_space;
    EXPECT(dce_conv_get_answer(&pdu, &read) && read.seq == 9 && read.status == 0);
}

#define TOWER(major, minor, port_high, port_low)                                                   \
    5, 0, 0x13, 0, 0x0d, 0x23, 0x22, 0x21, 0x20, 0x25, 0x24, 0x27, 0x26, 0x28, 0x29, 0x2a, 0x2b,   \
        0x2c, 0x2d, 0x2e, 0x2f, major, 0, 2, 0, minor, 0, /* the interface */                      \
        0x13, 0, 0x0d, 0x04, 0x5d, 0x88, 0x8a, 0xeb, 0x1c, 0xc9, 0x11, 0x9f, 0xe8, 0x08, 0x00,     \
        0x2b, 0x10, 0x48, 0x60, 2, 0, 2, 0, 0, 0,                      /* NDR 2.0 */               \
        1, 0, 0x0a, 2, 0, 0, 0, 1, 0, 0x08, 2, 0, port_high, port_low, /* CL, UDP */               \
        1, 0, 0x09, 4, 0, 10, 9, 0, 2                                  /* IP */

static const uint8_t tower_octets[] = {TOWER(1, 3, 0x07, 0xd1)};

static void towers(void)
{
    struct dce_tower tower = {interface, 3 << 16 | 1, 2001, 0x0a090002}, read;
    uint8_t octets[DCE_TOWER + 1];

    EXPECT(sizeof(tower_octets) == DCE_TOWER);
    memset(octets, DIRTY, sizeof(octets));
    dce_tower_encode(&tower, octets);
    EXPECT(memcmp(octets, tower_octets, DCE_TOWER) == 0 && octets[DCE_TOWER] == DIRTY);
    EXPECT(dce_tower_decode(tower_octets, DCE_TOWER, &read));
    EXPECT(dce_uuid_equal(&read.interface, &interface) && read.version == (3 << 16 | 1) &&
           read.port == 2001 && read.address == 0x0a090002);
    for (size_t length = 0; length < DCE_TOWER; length++) {
        memcpy(octets, tower_octets, length);
        EXPECT(!dce_tower_decode(octets, length, &read));
    }
    /* Other transports: the protocol of floor 4 is TCP, or floor 3 is connection-oriented. */
    memcpy(octets, tower_octets, DCE_TOWER);
    octets[61] = 0x07;
    EXPECT(!dce_tower_decode(octets, DCE_TOWER, &read));
    memcpy(octets, tower_octets, DCE_TOWER);
    octets[54] = 0x0b;
    EXPECT(!dce_tower_decode(octets, DCE_TOWER, &read));
}

static const uint8_t map_in[] = {
    0, 0, 0, 0, /* no object */
    3, 0, 0, 0, 75, 0, 0, 0, 75, 0, 0, 0, TOWER(1, 0, 0, 0),
    0, /* the tower, to a multiple of 4 */
    0, 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
    0, 0, 0, 0, 0,  0, 0, /* no handle */
    4, 0, 0, 0,           /* towers, at most */
};
static const uint8_t map_out[] = {
    0, 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
    0, 0, 0, 0, 0,  0, 0, /* no handle */
    1, 0, 0, 0, 4,  0, 0, 0, 0,  0, 0, 0, 1,
    0, 0, 0, /* towers; bound, offset, length */
    3, 0, 0, 0, 75, 0, 0, 0, 75, 0, 0, 0, TOWER(1, 3, 0x07, 0xd1),
    0, 0, 0, 0, 0, /* status */
};

static void ept_map(void)
{
    const struct dce_tower asked = {interface, 1, 0, 0x0a090002};
    const struct dce_tower registered[] = {
        {object, 1, 1111, 0}, {interface, 2, 2222, 0}, {interface, 3 << 16 | 1, 2001, 0}};
    uint8_t written[DCE_EPM_BODY], cut[sizeof(map_in)];
    uint32_t status;
    uint16_t port;

    EXPECT(dce_epm_put_map(&asked, written, false) == sizeof(map_in));
    EXPECT(memcmp(written, map_in, sizeof(map_in)) == 0);
    EXPECT(dce_epm_serve(registered, 3, map_in, sizeof(map_in), false, written, false) ==
           sizeof(map_out));
    EXPECT(memcmp(written, map_out, sizeof(map_out)) == 0);
    EXPECT(dce_epm_get_map(map_out, sizeof(map_out), false, &port, &status));
    EXPECT(port == 2001 && status == DCE_OK);
    for (size_t length = 0; length < sizeof(map_in); length++) {
        memcpy(cut, map_in, length);
        EXPECT(dce_epm_serve(registered, 3, cut, length, false, written, true) == 0);
    }
    EXPECT(!dce_epm_get_map(map_out, sizeof(map_out) - 1, false, &port, &status));
    /* No server has it; and the whole in the other order. */
    for (unsigned order = 0; order < 2; order++)
        for (size_t count = 0; count <= 3; count += 3) {
            size_t length = dce_epm_put_map(&asked, written, order), back;

            back = dce_epm_serve(registered, count, written, length, order, written, !order);
            EXPECT(dce_epm_get_map(written, back, !order, &port, &status));
            EXPECT(port == (count ? 2001 : 0));
            EXPECT(status == (count ? DCE_OK : DCE_EPM_NOT_REGISTERED));
        }
}

/* All of them as text, for other parties to dissect. */
static int dump(void)
{
    for (unsigned i = 0; i < BODIES; i++)
        for (unsigned order = 0; order < 2; order++) {
            uint8_t golden[DCE_HEADER + 24];

            make(&bodies[i], order, golden);
            for (unsigned at = 0; at < DCE_HEADER + (unsigned)bodies[i].length; at++)
                printf("%02x", golden[at]);
            printf("\n");
        }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        {"every_type_in_both_orders", every_type_in_both_orders},
        {"bodies_in_both_orders", bodies_in_both_orders},
        {"old_and_longer_facks", old_and_longer_facks},
        {"what_is_no_pdu", what_is_no_pdu},
        {"ndr_types_in_both_orders", ndr_types_in_both_orders},
        {"arrays_and_pointers_are_bounded", arrays_and_pointers_are_bounded},
        {"who_are_you", who_are_you},
        {"towers", towers},
        {"ept_map", ept_map},
    };

    if (argc > 1 && strcmp(argv[1], "dump") == 0)
        return dump();
    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
