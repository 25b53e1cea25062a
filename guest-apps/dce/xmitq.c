/* SPDX-License-Identifier: Apache-2.0 */
#include "xmitq.h"

enum {
    FIRST_WINDOW = 8, /* fragments, until a fack tells */
    OSF_BURST = 4,
    OSF_GOOD_FACKS = 8,
    BACKOFF = 4, /* the resend interval doubles up to so many times the first */
};

static unsigned slots_for(unsigned fragment)
{
    unsigned slots = 1;

    while (slots < DCE_SLOTS && slots * fragment < DCE_WINDOW_MOST_KIB * 1024u)
        slots *= 2;
    return slots;
}

size_t dce_xmitq_memory(const struct dce_xmitq_settings *settings)
{
    return (size_t)slots_for(settings->fragment) * settings->fragment;
}

void dce_xmitq_init(struct dce_xmitq *queue, const struct dce_xmitq_settings *settings,
                    uint8_t *memory)
{
    *queue = (struct dce_xmitq){
        .settings = *settings,
        .memory = memory,
        .slots = slots_for(settings->fragment),
        .all_queued = true,
    };
}

static struct dce_slot *slot_of(struct dce_xmitq *queue, uint16_t fragment)
{
    return &queue->slot[fragment % queue->slots];
}

static uint8_t *packet_of(struct dce_xmitq *queue, uint16_t fragment)
{
    return queue->memory + (size_t)(fragment % queue->slots) * queue->settings.fragment;
}

/* Bodies of all but the last fragment are multiples of 8. */
static size_t body_room(const struct dce_xmitq *queue)
{
    return (queue->fragment - DCE_HEADER) & ~(size_t)7;
}

static void restart(struct dce_xmitq *queue, unsigned burst)
{
    queue->permits = queue->burst = burst;
    queue->burst_begun = false;
}

void dce_xmitq_start(struct dce_xmitq *queue, uint64_t now, const struct dce_pdu *header,
                     const struct dce_peer *to, const uint8_t *source, size_t length)
{
    bool osf = queue->settings.policy == DCE_OSF;

    queue->header = *header;
    queue->to = *to;
    queue->source = source;
    queue->total = length;
    queue->copied = 0;
    queue->all_queued = false;
    queue->base = queue->unsent = queue->next = 0;
    queue->fragment = queue->settings.fragment;
    if (osf && queue->fragment > DCE_OSF_FIRST)
        queue->fragment = DCE_OSF_FIRST;
    queue->fragmented = length > body_room(queue);
    queue->serial = 0;
    queue->fack_serial = queue->awaited = UINT16_MAX;
    queue->offered = false;
    queue->window = FIRST_WINDOW < queue->slots ? FIRST_WINDOW : queue->slots;
    queue->outstanding = queue->asks = 0;
    queue->burst_most = osf ? OSF_BURST : DCE_BURST_MOST;
    queue->good_facks = OSF_GOOD_FACKS;
    queue->resend_ns = queue->settings.resend_ns;
    queue->resent = 0;
    queue->sent_ns = now;
    restart(queue, 1);
}

/* ---- queueing ---- */

DCE_MARKER void dce_copy(uint8_t *to, const uint8_t *from, size_t length)
{
    memcpy(to, from, length);
}

DCE_MARKER void xmitq_append(struct dce_xmitq *queue, size_t length)
{
    *slot_of(queue, queue->next) = (struct dce_slot){.length = (uint16_t)length};
    queue->copied += length;
    queue->all_queued = queue->copied == queue->total;
    queue->next++;
}

bool dce_xmitq_fill(struct dce_xmitq *queue)
{
    size_t left = queue->total - queue->copied, room = body_room(queue);
    unsigned queued = (uint16_t)(queue->next - queue->base), most = queue->window;

    if (most == 0 || (queue->settings.policy == DCE_OSF && !queue->offered))
        most = 1; /* the first fack tells the size of the next */
    if (queue->all_queued || queued >= most)
        return false;
    if (left > room)
        left = room;
    if (left != 0)
        dce_copy(packet_of(queue, queue->next) + DCE_HEADER, queue->source + queue->copied, left);
    xmitq_append(queue, left);
    return true;
}

/* ---- sending ---- */

DCE_MARKER void xmitq_send(struct dce_packet *packet, dce_send *send, void *context)
{
    dce_pdu_encode(&packet->pdu, packet->bytes);
    send(context, &packet->to, packet->bytes, DCE_HEADER + (size_t)packet->pdu.length);
}

static bool find_lost(struct dce_xmitq *queue, uint16_t *fragment)
{
    for (*fragment = queue->base; *fragment != queue->unsent; ++*fragment)
        if (slot_of(queue, *fragment)->lost)
            return true;
    return false;
}

/* Whether anything can be sent beside what is lost. */
static bool has_unsent(struct dce_xmitq *queue)
{
    return queue->unsent != queue->next || dce_xmitq_fill(queue);
}

/* How many facks may be asked for at a time in a window. */
static unsigned asks_of(unsigned window)
{
    static const uint8_t asks[] = {0, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4};

    return window < sizeof(asks) ? asks[window] : window / 4;
}

/* Fragments that could be sent if there were no window. */
static unsigned left_to_send(const struct dce_xmitq *queue)
{
    unsigned left = (uint16_t)(queue->next - queue->unsent);

    for (uint16_t fragment = queue->base; fragment != queue->unsent; fragment++)
        left += queue->slot[fragment % queue->slots].lost;
    return left +
           (unsigned)((queue->total - queue->copied + body_room(queue) - 1) / body_room(queue));
}

static void begin_burst(struct dce_xmitq *queue)
{
    unsigned left = left_to_send(queue);

    if (queue->permits > left && left != 0)
        queue->permits = left;
    queue->burst_begun = true;
    queue->until_middle = 0;
    if (queue->settings.policy != DCE_WINDOW && asks_of(queue->window) > queue->asks + 1)
        queue->until_middle = queue->permits / 2;
}

static bool is_end(const struct dce_xmitq *queue, uint16_t fragment)
{
    return queue->all_queued && fragment == (uint16_t)(queue->next - 1);
}

static void transmit(struct dce_xmitq *queue, uint16_t fragment, bool last_of_burst,
                     struct dce_packet *packet)
{
    struct dce_slot *slot = slot_of(queue, fragment);
    bool end = is_end(queue, fragment);

    slot->asked = queue->fragmented && !end && (last_of_burst || queue->until_middle == 1);
    if (queue->until_middle != 0)
        queue->until_middle--;
    if (slot->sent)
        queue->resent++;
    slot->sent = slot->counted = true;
    slot->lost = false;
    slot->serial = queue->serial++;
    queue->outstanding++;
    if (slot->asked) {
        queue->asks++;
        queue->awaited = slot->serial;
    }
    packet->pdu = queue->header;
    packet->pdu.fragment = fragment;
    packet->pdu.serial = slot->serial;
    packet->pdu.length = slot->length;
    if (queue->fragmented)
        packet->pdu.flags1 |= (uint8_t)(DCE_FRAGMENT | (end ? DCE_LAST : 0) |
                                        (slot->asked ? 0 : DCE_NO_FACK));
    packet->bytes = packet_of(queue, fragment);
    packet->pdu.body = packet->bytes + DCE_HEADER;
    packet->to = queue->to;
}

bool dce_xmitq_next(struct dce_xmitq *queue, uint64_t now, struct dce_packet *packet)
{
    uint16_t fragment, other;

    if (queue->permits == 0)
        return false;
    if (!queue->burst_begun)
        begin_burst(queue);
    if (!find_lost(queue, &fragment)) {
        if (!has_unsent(queue))
            return false;
        fragment = queue->unsent++;
    }
    queue->permits--;
    slot_of(queue, fragment)->lost = false;
    /* A burst that ends for want of fragments ends with one that asks, too. */
    transmit(queue, fragment,
             queue->permits == 0 || (!find_lost(queue, &other) && !has_unsent(queue)), packet);
    queue->sent_ns = now;
    return true;
}

/* ---- acknowledgements ---- */

static void uncount(struct dce_xmitq *queue, struct dce_slot *slot)
{
    if (!slot->counted)
        return;
    slot->counted = false;
    queue->outstanding--;
    if (slot->asked)
        queue->asks--;
}

static void take_offer(struct dce_xmitq *queue, const struct dce_fack *fack)
{
    unsigned most = queue->settings.fragment, window = fack->window_kib;

    if (queue->settings.policy == DCE_OSF && most > DCE_MUST_RECEIVE)
        most = DCE_MUST_RECEIVE;
    if (fack->max_fragment >= DCE_OSF_FIRST && fack->max_fragment < most)
        most = fack->max_fragment;
    queue->fragment = most;
    queue->offered = true;
    /* Kilobytes; but 0, 1 and 2 are numbers of fragments. */
    if (window > 2)
        window = window * 1024 / most;
    queue->window = window < queue->slots ? window : queue->slots;
}

static bool is_acked(const struct dce_fack *fack, uint16_t acked, uint16_t fragment)
{
    unsigned ahead = (uint16_t)(fragment - acked - 1);

    if (dce_after(fragment, acked) <= 0)
        return true;
    return fack != NULL && ahead / 32 < fack->selack_words &&
           (fack->selack[ahead / 32] >> ahead % 32 & 1) != 0;
}

/* The burst that made a fack begins behind the fragment that had asked before. */
static uint16_t burst_begin(struct dce_xmitq *queue, uint16_t serial)
{
    uint16_t begin = queue->fack_serial;

    for (uint16_t fragment = queue->base; fragment != queue->unsent; fragment++) {
        const struct dce_slot *slot = slot_of(queue, fragment);

        if (slot->asked && dce_after(slot->serial, begin) > 0 &&
            dce_after(slot->serial, serial) < 0)
            begin = slot->serial;
    }
    return begin;
}

struct news {
    unsigned acked; /* of the burst that made the fack */
    unsigned lost;
};

static struct news mark(struct dce_xmitq *queue, uint16_t acked, const struct dce_fack *fack,
                        uint16_t serial, bool fresh, bool is_nocall)
{
    uint16_t begin = burst_begin(queue, serial);
    struct news news = {0};

    for (uint16_t fragment = queue->base; fragment != queue->unsent; fragment++) {
        struct dce_slot *slot = slot_of(queue, fragment);

        if (slot->acked)
            continue;
        if (is_acked(fack, acked, fragment)) {
            slot->acked = true;
            slot->lost = false;
            if (dce_after(slot->serial, begin) > 0 && dce_after(slot->serial, serial) <= 0)
                news.acked++;
            uncount(queue, slot);
        } else if (slot->counted && fresh && (is_nocall || dce_after(slot->serial, serial) < 0)) {
            slot->lost = true;
            news.lost++;
            uncount(queue, slot);
        }
    }
    while (queue->base != queue->unsent && slot_of(queue, queue->base)->acked)
        queue->base++;
    return news;
}

static void limit_permits(struct dce_xmitq *queue)
{
    unsigned room = queue->window > queue->outstanding ? queue->window - queue->outstanding : 0;

    if (queue->permits > room)
        queue->permits = room;
}

static void open_window(struct dce_xmitq *queue, const struct news *news, uint16_t serial)
{
    if (news->lost != 0) {
        restart(queue, 1);
    } else if (dce_after(serial, queue->awaited) >= 0 || queue->outstanding == 0) {
        restart(queue, queue->burst * 2 < DCE_BURST_MOST ? queue->burst * 2 : DCE_BURST_MOST);
    } else {
        return; /* the burst's last fragment has not been acknowledged yet */
    }
    limit_permits(queue);
}

static void open_halves(struct dce_xmitq *queue, const struct news *news)
{
    unsigned permits = queue->permits + 2 * news->acked;

    if (queue->settings.policy == DCE_OSF && news->lost != 0) {
        queue->good_facks = OSF_GOOD_FACKS;
        if (queue->burst_most > OSF_BURST)
            queue->burst_most -= 2;
    } else if (queue->settings.policy == DCE_OSF && --queue->good_facks == 0) {
        queue->good_facks = OSF_GOOD_FACKS;
        if (queue->burst_most < DCE_BURST_MOST)
            queue->burst_most += 2;
    }
    if (permits > queue->burst_most)
        permits = queue->burst_most;
    if (permits < 2 || news->lost != 0)
        permits = 2;
    restart(queue, permits);
    limit_permits(queue);
}

bool dce_xmitq_fack(struct dce_xmitq *queue, uint16_t fragment, const struct dce_fack *fack,
                    bool is_nocall)
{
    /* Without a serial the latest transmission of the fragment named is what made it. */
    uint16_t serial = slot_of(queue, fragment)->serial;
    struct news news;
    bool fresh;

    if (dce_after(fragment, queue->unsent) >= 0 ||
        dce_after(fragment, (uint16_t)(queue->base - 1 - queue->slots)) < 0)
        return false;
    if (fack != NULL && fack->has_serial)
        serial = fack->serial;
    else if (dce_after(fragment, queue->base) < 0)
        serial = queue->fack_serial;
    if (fack != NULL && fack->window_kib > DCE_WINDOW_MOST_KIB)
        return false;
    if (dce_after(serial, queue->serial) >= 0)
        return false;
    fresh = dce_after(serial, queue->fack_serial) >= 0;
    if (fresh && fack != NULL)
        take_offer(queue, fack);
    news = mark(queue, fragment, fack, serial, fresh, is_nocall);
    /* The same fack twice opens nothing. */
    if (!fresh || (serial == queue->fack_serial && news.acked == 0 && news.lost == 0))
        return true;
    queue->resend_ns = queue->settings.resend_ns;
    if (queue->settings.policy == DCE_WINDOW)
        open_window(queue, &news, serial);
    else
        open_halves(queue, &news);
    queue->fack_serial = serial;
    return true;
}

void dce_xmitq_done(struct dce_xmitq *queue)
{
    queue->copied = queue->total;
    queue->all_queued = true;
    queue->base = queue->unsent = queue->next;
    queue->outstanding = queue->asks = queue->permits = 0;
}

void dce_xmitq_again(struct dce_xmitq *queue)
{
    for (uint16_t fragment = queue->base; fragment != queue->unsent; fragment++) {
        struct dce_slot *slot = slot_of(queue, fragment);

        uncount(queue, slot);
        slot->lost = !slot->acked;
    }
    restart(queue, 2);
}

void dce_xmitq_timeout(struct dce_xmitq *queue)
{
    if (queue->base != queue->unsent) {
        struct dce_slot *head = slot_of(queue, queue->base);

        uncount(queue, head);
        head->lost = true;
    }
    restart(queue, 1); /* whatever the window is: it may be closed, and only an answer opens it */
    queue->resend_ns *= 2;
    if (queue->resend_ns > BACKOFF * queue->settings.resend_ns)
        queue->resend_ns = BACKOFF * queue->settings.resend_ns;
}

uint64_t dce_xmitq_deadline(const struct dce_xmitq *queue)
{
    return dce_xmitq_is_empty(queue) ? UINT64_MAX : queue->sent_ns + queue->resend_ns;
}

bool dce_xmitq_all_sent(const struct dce_xmitq *queue)
{
    if (!queue->all_queued || queue->unsent != queue->next)
        return false;
    for (uint16_t fragment = queue->base; fragment != queue->unsent; fragment++)
        if (queue->slot[fragment % queue->slots].lost)
            return false;
    return true;
}

bool dce_xmitq_is_empty(const struct dce_xmitq *queue)
{
    return queue->all_queued && queue->base == queue->next;
}
