/* SPDX-License-Identifier: Apache-2.0 */
#include "recvq.h"

enum { MAX_TSDU = 65535 - 20 - 8 /* an IPv4 datagram less its headers */ };

size_t dce_recvq_room(size_t bytes)
{
    /* A fragment that came early is copied to the front while it is still at the end. */
    return bytes + DCE_BODY_MOST;
}

void dce_recvq_init(struct dce_recvq *queue, uint8_t *buffer, size_t room)
{
    *queue = (struct dce_recvq){.buffer = buffer, .room = room, .early_at = room};
}

void dce_recvq_reset(struct dce_recvq *queue)
{
    if (queue->early_count != 0)
        memset(queue->early, 0, sizeof(queue->early));
    queue->early_count = 0;
    queue->length = 0;
    queue->early_at = queue->room;
    queue->next = 0;
    queue->high_serial = 0;
    queue->last_known = queue->complete = queue->started = queue->overflow = false;
}

static struct dce_early *early_of(struct dce_recvq *queue, uint16_t fragment)
{
    return &queue->early[fragment % DCE_EARLY_SLOTS];
}

static bool has_early(const struct dce_recvq *queue, uint16_t fragment)
{
    return queue->early[fragment % DCE_EARLY_SLOTS].present;
}

/* Closes the gaps between what came early: the places of what is in order by now. */
static void compact(struct dce_recvq *queue)
{
    size_t end = queue->room;

    for (;;) {
        struct dce_early *highest = NULL;

        for (unsigned i = 0; i < DCE_EARLY_SLOTS; i++) {
            struct dce_early *one = &queue->early[i];

            if (one->present && one->offset < end &&
                (highest == NULL || one->offset > highest->offset))
                highest = one;
        }
        if (highest == NULL)
            break;
        end -= highest->length;
        memmove(queue->buffer + end, queue->buffer + highest->offset, highest->length);
        highest->offset = (uint32_t)end;
    }
    queue->early_at = end;
}

/* False: the stream is too long. It is followed to its end all the same, so that its sender can
 * learn what is wrong. */
static bool make_room(struct dce_recvq *queue, size_t length)
{
    if (queue->early_at - queue->length < length)
        compact(queue);
    if (queue->early_at - queue->length < length)
        queue->overflow = true;
    return queue->early_at - queue->length >= length;
}

/* `bytes` may be at the end of the buffer itself. */
static void append(struct dce_recvq *queue, const uint8_t *bytes, size_t length)
{
    if (length != 0)
        memmove(queue->buffer + queue->length, bytes, length);
    queue->length += length;
    if (queue->last_known && queue->next == queue->last)
        queue->complete = true;
    queue->next++;
}

static void take_early(struct dce_recvq *queue)
{
    while (!queue->complete && has_early(queue, queue->next)) {
        struct dce_early *early = early_of(queue, queue->next);
        size_t length = make_room(queue, early->length) ? early->length : 0;

        append(queue, queue->buffer + early->offset, length);
        early->present = false;
        queue->early_count--;
    }
}

static void keep_early(struct dce_recvq *queue, const struct dce_pdu *pdu)
{
    uint16_t length = make_room(queue, pdu->length) ? pdu->length : 0;

    queue->early_at -= length;
    if (length != 0)
        memcpy(queue->buffer + queue->early_at, pdu->body, length);
    *early_of(queue, pdu->fragment) = (struct dce_early){(uint32_t)queue->early_at, length, true};
    queue->early_count++;
}

static bool contradicts(const struct dce_recvq *queue, const struct dce_pdu *pdu, bool is_last)
{
    if ((pdu->flags1 & DCE_FRAGMENT) == 0 && (pdu->fragment != 0 || queue->started))
        return true;
    if (queue->last_known &&
        (dce_after(pdu->fragment, queue->last) > 0 || (is_last != (pdu->fragment == queue->last))))
        return true;
    if (is_last && queue->early_count != 0)
        for (unsigned ahead = 0; ahead < DCE_AHEAD; ahead++) {
            uint16_t other = (uint16_t)(queue->next + ahead);

            if (has_early(queue, other) && dce_after(other, pdu->fragment) > 0)
                return true;
        }
    return false;
}

enum dce_insert dce_recvq_insert(struct dce_recvq *queue, const struct dce_pdu *pdu)
{
    bool whole = (pdu->flags1 & DCE_FRAGMENT) == 0, is_last = whole || pdu->flags1 & DCE_LAST;
    int ahead = dce_after(pdu->fragment, queue->next);

    if (!queue->started || dce_after(pdu->serial, queue->high_serial) > 0)
        queue->high_serial = pdu->serial;
    if (queue->complete || ahead < 0)
        return DCE_OLD;
    if (ahead >= DCE_AHEAD || pdu->length > DCE_BODY_MOST || contradicts(queue, pdu, is_last))
        return DCE_DROPPED;
    if (has_early(queue, pdu->fragment))
        return DCE_OLD;
    queue->started = true;
    if (is_last) {
        queue->last_known = true;
        queue->last = pdu->fragment;
    }
    if (ahead != 0) {
        keep_early(queue, pdu);
        return DCE_NEW;
    }
    append(queue, pdu->body, make_room(queue, pdu->length) ? pdu->length : 0);
    take_early(queue);
    return DCE_NEW;
}

bool dce_recvq_asks(const struct dce_recvq *queue, const struct dce_pdu *pdu)
{
    return (pdu->flags1 & DCE_FRAGMENT) != 0 && (pdu->flags1 & DCE_NO_FACK) == 0 &&
           !queue->complete;
}

DCE_MARKER void recvq_fack(const struct dce_recvq *queue, const struct dce_offer *offer,
                           uint16_t serial, struct dce_pdu *pdu, uint8_t *body)
{
    struct dce_fack fack = {
        .window_kib = offer->window_kib,
        .max_tsdu = MAX_TSDU,
        .max_fragment = offer->max_fragment,
        .has_serial = true,
        .serial = serial,
    };

    if (queue->early_count != 0)
        for (unsigned i = 0; i < DCE_AHEAD; i++)
            if (has_early(queue, (uint16_t)(queue->next + i))) {
                fack.selack[i / 32] |= UINT32_C(1) << i % 32;
                fack.selack_words = i / 32 + 1;
            }
    pdu->fragment = (uint16_t)(queue->next - 1);
    pdu->length = dce_fack_encode(&fack, body, pdu->big_endian);
    pdu->body = body;
}
