/* SPDX-License-Identifier: Apache-2.0 */
#include "pdu.h"

enum {
    VERSION = 4, /* in the low four bits of byte 0 */
    LITTLE_ENDIAN_REP = 0x10,
    FACK_OLD = 12, /* without serial and selack */
    FACK_FULL = 16,
    FACK_VERSION = 1, /* what the OSF runtime writes */
    CANCEL_BODY = 8,
    CANCEL_ACK_BODY = 9,
};

uint16_t dce_get16(const uint8_t *at, bool big_endian)
{
    return (uint16_t)(big_endian ? at[0] << 8 | at[1] : at[1] << 8 | at[0]);
}

uint32_t dce_get32(const uint8_t *at, bool big_endian)
{
    uint32_t first = dce_get16(at, big_endian), second = dce_get16(at + 2, big_endian);

    return big_endian ? first << 16 | second : second << 16 | first;
}

void dce_put16(uint8_t *at, uint16_t value, bool big_endian)
{
    at[big_endian ? 0 : 1] = (uint8_t)(value >> 8);
    at[big_endian ? 1 : 0] = (uint8_t)value;
}

void dce_put32(uint8_t *at, uint32_t value, bool big_endian)
{
    dce_put16(at, (uint16_t)(big_endian ? value >> 16 : value), big_endian);
    dce_put16(at + 2, (uint16_t)(big_endian ? value : value >> 16), big_endian);
}

void dce_get_uuid(const uint8_t *at, struct dce_uuid *uuid, bool big_endian)
{
    dce_put32(uuid->bytes, dce_get32(at, big_endian), true);
    dce_put16(uuid->bytes + 4, dce_get16(at + 4, big_endian), true);
    dce_put16(uuid->bytes + 6, dce_get16(at + 6, big_endian), true);
    memcpy(uuid->bytes + 8, at + 8, 8);
}

void dce_put_uuid(uint8_t *at, const struct dce_uuid *uuid, bool big_endian)
{
    dce_put32(at, dce_get32(uuid->bytes, true), big_endian);
    dce_put16(at + 4, dce_get16(uuid->bytes + 4, true), big_endian);
    dce_put16(at + 6, dce_get16(uuid->bytes + 6, true), big_endian);
    memcpy(at + 8, uuid->bytes + 8, 8);
}

bool dce_pdu_decode(const uint8_t *bytes, size_t length, struct dce_pdu *pdu)
{
    bool big;

    if (length < DCE_HEADER || (bytes[0] & 0x0f) != VERSION || bytes[1] >= DCE_PTYPES)
        return false;
    /* Characters in ASCII, floating point as IEEE: the only ones that have been seen. */
    if ((bytes[4] != 0 && bytes[4] != LITTLE_ENDIAN_REP) || bytes[5] != 0)
        return false;
    big = bytes[4] == 0;
    *pdu = (struct dce_pdu){
        .ptype = bytes[1],
        .flags1 = bytes[2],
        .flags2 = bytes[3],
        .big_endian = big,
        .boot_time = dce_get32(bytes + 56, big),
        .version = dce_get32(bytes + 60, big),
        .seq = dce_get32(bytes + 64, big),
        .opnum = dce_get16(bytes + 68, big),
        .interface_hint = dce_get16(bytes + 70, big),
        .activity_hint = dce_get16(bytes + 72, big),
        .length = dce_get16(bytes + 74, big),
        .fragment = dce_get16(bytes + 76, big),
        .auth = bytes[78],
        .serial = (uint16_t)(bytes[7] << 8 | bytes[79]),
        .body = bytes + DCE_HEADER,
    };
    dce_get_uuid(bytes + 8, &pdu->object, big);
    dce_get_uuid(bytes + 24, &pdu->interface, big);
    dce_get_uuid(bytes + 40, &pdu->activity, big);
    return pdu->length <= length - DCE_HEADER;
}

void dce_pdu_encode(const struct dce_pdu *pdu, uint8_t *header)
{
    bool big = pdu->big_endian;

    header[0] = VERSION;
    header[1] = pdu->ptype;
    header[2] = pdu->flags1;
    header[3] = pdu->flags2;
    header[4] = big ? 0 : LITTLE_ENDIAN_REP;
    header[5] = 0;
    header[6] = 0;
    header[7] = (uint8_t)(pdu->serial >> 8);
    dce_put_uuid(header + 8, &pdu->object, big);
    dce_put_uuid(header + 24, &pdu->interface, big);
    dce_put_uuid(header + 40, &pdu->activity, big);
    dce_put32(header + 56, pdu->boot_time, big);
    dce_put32(header + 60, pdu->version, big);
    dce_put32(header + 64, pdu->seq, big);
    dce_put16(header + 68, pdu->opnum, big);
    dce_put16(header + 70, pdu->interface_hint, big);
    dce_put16(header + 72, pdu->activity_hint, big);
    dce_put16(header + 74, pdu->length, big);
    dce_put16(header + 76, pdu->fragment, big);
    header[78] = pdu->auth;
    header[79] = (uint8_t)pdu->serial;
}

bool dce_fack_decode(const struct dce_pdu *pdu, struct dce_fack *fack, bool *has_body)
{
    const uint8_t *body = pdu->body;
    bool big = pdu->big_endian;
    unsigned words;

    *fack = (struct dce_fack){0};
    *has_body = pdu->length != 0;
    if (!*has_body)
        return true;
    if (pdu->length != FACK_OLD && (pdu->length < FACK_FULL || pdu->length % 4 != 0))
        return false;
    fack->window_kib = dce_get16(body + 2, big);
    fack->max_tsdu = dce_get32(body + 4, big);
    fack->max_fragment = dce_get32(body + 8, big);
    if (pdu->length == FACK_OLD)
        return true;
    fack->has_serial = true;
    fack->serial = dce_get16(body + 12, big);
    words = dce_get16(body + 14, big);
    if (words > (pdu->length - FACK_FULL) / 4u)
        return false;
    fack->selack_words = words < DCE_SELACK_WORDS ? words : DCE_SELACK_WORDS;
    for (unsigned i = 0; i < fack->selack_words; i++)
        fack->selack[i] = dce_get32(body + FACK_FULL + 4 * i, big);
    return true;
}

uint16_t dce_fack_encode(const struct dce_fack *fack, uint8_t *body, bool big_endian)
{
    body[0] = FACK_VERSION;
    body[1] = 0;
    dce_put16(body + 2, fack->window_kib, big_endian);
    dce_put32(body + 4, fack->max_tsdu, big_endian);
    dce_put32(body + 8, fack->max_fragment, big_endian);
    dce_put16(body + 12, fack->serial, big_endian);
    dce_put16(body + 14, (uint16_t)fack->selack_words, big_endian);
    for (unsigned i = 0; i < fack->selack_words; i++)
        dce_put32(body + FACK_FULL + 4 * i, fack->selack[i], big_endian);
    return (uint16_t)(FACK_FULL + 4 * fack->selack_words);
}

bool dce_cancel_decode(const struct dce_pdu *pdu, struct dce_cancel *cancel)
{
    bool is_ack = pdu->ptype == DCE_CANCEL_ACK;

    *cancel = (struct dce_cancel){.orphan = pdu->length == 0};
    if (cancel->orphan)
        return true;
    if (pdu->length < (is_ack ? CANCEL_ACK_BODY : CANCEL_BODY))
        return false;
    cancel->id = dce_get32(pdu->body + 4, pdu->big_endian);
    cancel->accepting = is_ack && pdu->body[8] != 0;
    return true;
}

uint16_t dce_cancel_encode(const struct dce_cancel *cancel, bool is_ack, uint8_t *body,
                           bool big_endian)
{
    if (cancel->orphan)
        return 0;
    dce_put32(body, 0, big_endian); /* the version of this body */
    dce_put32(body + 4, cancel->id, big_endian);
    if (!is_ack)
        return CANCEL_BODY;
    body[8] = cancel->accepting;
    return CANCEL_ACK_BODY;
}

bool dce_status_decode(const struct dce_pdu *pdu, uint32_t *status)
{
    if (pdu->length < 4)
        return false;
    *status = dce_get32(pdu->body, pdu->big_endian);
    return true;
}
