/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mbcf_server.h"
#include "sss/system.h"

enum {
    PAGE_BYTES = 4096,
    RING_RECORDS = 2, /* of the longest, that always fit: shorter ones are many more */
    OPTIONS_BYTES = SSS_OPTIONS,
};
#define ORDER_NS 1000000000ull /* what a dummy has for an order */
/* Where the FIFO is in a dummy's address space: away from everything that a program could have.
 */
#define DUMMY_FIFO 0x100000000ull

static uint32_t ring_bytes(const struct mbm_server *server)
{
    return mbm_ring_bytes((uint32_t)server->options.message_most, RING_RECORDS);
}

/* How the places of one type are made, handed out and taken back. */
struct mbm_place_way {
    bool (*make)(struct mbm_place *place);
    /* Makes it the client's, and says in `bound` where its requests go. */
    bool (*assign)(struct mbm_place *place, const struct mbm_bind *bind, struct mbm_bound *bound);
    /* The client has gone. NULL: nothing of it is left. */
    void (*release)(struct mbm_place *place);
    /* Ends the dummy. NULL: there is none. */
    void (*end)(struct mbm_place *place);
    /* Frees what was made, once there is no dummy. */
    void (*free)(struct mbm_place *place);
};

static bool dummy_lives(const struct mbm_place *place)
{
    struct sss_task_status status;

    return sss_task_status(place->dummy, &status) == 0 && status.state != SSS_GONE;
}

static bool can_serve(const struct mbm_place *place)
{
    return place->way->end == NULL || dummy_lives(place);
}

static void end_dummy(struct mbm_place *place)
{
    sss_kill(place->dummy);
}

/* ---- requests in a FIFO: types 3 and 3a ---- */

static void serve_fifo(void *context)
{
    struct mbm_place *place = context;
    struct mb_record *record;

    while ((record = mb_fifo_peek(place->fifo)) != NULL) {
        /* A task that has learnt the key, or had this place before, is not answered in the
         * client's name. */
        if (place->used && record->node == place->origin.caller.node &&
            record->task == place->origin.caller.task)
            mbm_service_call(&place->server->service, &place->origin, mb_record_data(record),
                             record->length);
        else
            place->server->service.counters.malformed++;
        mb_fifo_pop(place->fifo);
    }
}

static bool make_3(struct mbm_place *place)
{
    place->fifo = mbm_fifo_open(ring_bytes(place->server));
    return place->fifo != NULL && svc_add_word(&place->fifo->events, serve_fifo, place);
}

static bool assign_3(struct mbm_place *place, const struct mbm_bind *bind, struct mbm_bound *bound)
{
    uint16_t node, task;

    (void)bind;
    serve_fifo(place); /* what the client before has left */
    mb_self(&node, &task);
    bound->ring = place->fifo->size;
    bound->task = task;
    bound->key = mbm_key(MBM_KEY_SERVER);
    bound->fifo = (uintptr_t)place->fifo;
    return bound->key != 0;
}

static void free_3a(struct mbm_place *place)
{
    svc_remove_word(&place->fifo->events);
    sss_unmap(place->fifo, mbm_whole_pages(MB_FIFO_HEADER + (size_t)ring_bytes(place->server)));
}

static void free_3(struct mbm_place *place)
{
    mb_fifo_remove(place->fifo);
    free_3a(place);
}

/* The dummy is an address space that holds nothing but the FIFO: a client can harm only
 * itself. */
static bool make_3a(struct mbm_place *place)
{
    uint32_t ring = ring_bytes(place->server);
    size_t bytes = mbm_whole_pages(MB_FIFO_HEADER + (size_t)ring);
    int csm;

    place->fifo = sss_map(NULL, bytes, SSS_READ | SSS_WRITE);
    if (place->fifo == NULL)
        return false;
    csm = sss_csm_share(place->fifo, bytes);
    place->dummy = sss_task("rpc-area", "{}", SSS_EMPTY);
    if (csm >= 0 && place->dummy > 0 &&
        sss_csm_map(place->dummy, csm, DUMMY_FIFO, SSS_READ | SSS_WRITE) >= 0 &&
        mb_fifo_of((uint16_t)place->dummy, DUMMY_FIFO, MB_FIFO_HEADER + ring) == 0 &&
        svc_add_word(&place->fifo->events, serve_fifo, place))
        return true;
    if (place->dummy > 0)
        sss_kill(place->dummy);
    sss_unmap(place->fifo, bytes);
    return false;
}

static bool assign_3a(struct mbm_place *place, const struct mbm_bind *bind, struct mbm_bound *bound)
{
    (void)bind;
    serve_fifo(place); /* what the client before has left */
    bound->ring = place->fifo->size;
    bound->task = (uint16_t)place->dummy;
    bound->key = mbm_key_new(place->origin.caller.key);
    bound->fifo = DUMMY_FIFO;
    return mb_key_of(bound->task, 0, bound->key, MB_WRITE_ALLOWED) == 0;
}

static void release_3a(struct mbm_place *place)
{
    mb_key_of((uint16_t)place->dummy, 0, 0, 0);
}

/* ---- a dummy with a thread: type 3b ---- */

/* Gives an order and waits for it. False: the dummy has ended, or does not obey. */
static bool order(const struct mbm_place *place, enum mbm_order what)
{
    struct mbm_share *share = place->share;
    uint32_t number = share->order + 1;
    uint64_t deadline = sss_now_ns() + ORDER_NS;

    share->what = what;
    share->order = number;
    for (;;) {
        struct sss_wait words[2] = {{&share->done, share->done, 0},
                                    {&SSS_INFO->tasks, SSS_INFO->tasks, 0}};
        uint64_t now = sss_now_ns();

        if (words[0].seen == number)
            return share->status == 0;
        if (now >= deadline || !dummy_lives(place))
            return false;
        sss_wait(words, 2, deadline - now);
    }
}

static bool make_3b(struct mbm_place *place)
{
    const struct svcmb_options *options = &place->server->options;
    char *text = malloc(OPTIONS_BYTES);
    uint16_t node, task;
    int csm;

    place->share = sss_map(NULL, MBM_SHARE_BYTES, SSS_READ | SSS_WRITE);
    if (text == NULL || place->share == NULL || options->dummy_task == NULL) {
        free(text);
        return false;
    }
    mb_self(&node, &task);
    place->share->dispatcher = task;
    place->share->message_most = (uint32_t)options->message_most;
    place->share->semantics = options->semantics;
    place->share->cache = options->cache;
    csm = sss_csm_share(place->share, MBM_SHARE_BYTES);
    snprintf(text, OPTIONS_BYTES, "{\"csm\":%d%s}", csm,
             options->dummy_options != NULL ? options->dummy_options : "");
    place->dummy = csm < 0 ? csm : sss_task(options->dummy_task, text, 0);
    free(text);
    if (place->dummy > 0 && order(place, MBM_RELEASE)) /* it has come up */
        return true;
    if (place->dummy > 0)
        sss_kill(place->dummy);
    sss_unmap(place->share, MBM_SHARE_BYTES);
    return false;
}

static bool assign_3b(struct mbm_place *place, const struct mbm_bind *bind, struct mbm_bound *bound)
{
    struct mbm_share *share = place->share;

    share->client_node = place->origin.caller.node;
    share->client_task = place->origin.caller.task;
    share->client_key = place->origin.caller.key;
    share->client_replies = place->origin.replies;
    share->reply_most = place->origin.reply_most;
    share->request_most = bind->request_most;
    share->depth = bind->depth;
    share->key = mbm_key_new(place->origin.caller.key);
    if (!order(place, MBM_ASSIGN))
        return false;
    *bound = share->bound;
    return true;
}

static void release_3b(struct mbm_place *place)
{
    if (dummy_lives(place) && !order(place, MBM_RELEASE))
        sss_kill(place->dummy);
}

static void end_3b(struct mbm_place *place)
{
    order(place, MBM_END);
    end_dummy(place);
}

static void free_3b(struct mbm_place *place)
{
    for (unsigned i = 0; i < SVCMB_DUMMY_WORDS; i++)
        place->server->ended_words[i] += place->share->words[i];
    sss_unmap(place->share, MBM_SHARE_BYTES);
}

/* ---- places ---- */

static const struct mbm_place_way way_3 = {make_3, assign_3, NULL, NULL, free_3};
static const struct mbm_place_way way_3a = {make_3a, assign_3a, release_3a, end_dummy, free_3a};
static const struct mbm_place_way way_3b = {make_3b, assign_3b, release_3b, end_3b, free_3b};
/* NULL: calls of the type need no place. */
static const struct mbm_place_way *const ways[MBCF_TYPES] = {
    [MBCF3] = &way_3, [MBCF3A] = &way_3a, [MBCF3B] = &way_3b};

static void clear(struct mbm_place *place)
{
    place->way->free(place);
    *place = (struct mbm_place){.server = place->server};
}

static void free_place(struct mbm_place *place)
{
    mb_close(place->origin.ltn);
    place->used = false;
    place->server->service.counters.clients_gone++;
    if (place->way->release != NULL)
        place->way->release(place);
}

void mbm_places_look_after(struct mbm_server *server)
{
    for (unsigned i = 0; i < server->options.clients; i++) {
        struct mbm_place *place = &server->places[i];
        struct mb_connection connection;

        if (!place->exists)
            continue;
        if (place->used && (mb_connection(place->origin.ltn, &connection) != 0 ||
                            connection.state == MB_CONNECTION_BROKEN || !can_serve(place)))
            free_place(place);
        if (!place->used && !can_serve(place))
            clear(place);
    }
}

/* It is not in use, and another type wants its place. */
static void give_up(struct mbm_place *place)
{
    if (place->way->end != NULL)
        place->way->end(place);
    clear(place);
}

/* One of the type that is not in use, else a new one; where there is no room for it, in the place
 * of another type's. */
static struct mbm_place *find_place(struct mbm_server *server, const struct mbm_place_way *way)
{
    struct mbm_place *empty = NULL, *idle = NULL;

    mbm_places_look_after(server);
    for (unsigned i = 0; i < server->options.clients; i++) {
        struct mbm_place *place = &server->places[i];

        if (place->exists && !place->used && place->way == way)
            return place;
        if (!place->exists && empty == NULL)
            empty = place;
        if (place->exists && !place->used)
            idle = place;
    }
    if (empty == NULL && idle != NULL)
        give_up(empty = idle);
    if (empty == NULL)
        return NULL;
    *empty = (struct mbm_place){.server = server, .way = way};
    empty->exists = way->make(empty);
    return empty->exists ? empty : NULL;
}

bool mbm_serves_program(const struct mbm_server *server, const struct mbm_bind *bind)
{
    for (unsigned i = 0; i < server->program_count; i++)
        if (server->programs[i].program == bind->program &&
            server->programs[i].version == bind->version)
            return true;
    return false;
}

static enum mbm_refusal refusal(const struct mbm_server *server, const struct mbm_bind *bind,
                                bool serves_type)
{
    if (!mbm_serves_program(server, bind))
        return MBM_NO_PROGRAM;
    if (bind->type >= MBCF_TYPES || ways[bind->type] == NULL || !serves_type)
        return MBM_NO_TYPE;
    if (bind->request_most > server->options.message_most || bind->depth == 0 ||
        bind->depth > MBCF_DEPTH_MOST)
        return MBM_TOO_LARGE;
    return MBM_ACCEPTED;
}

void mbm_places_bind(struct mbm_server *server, const struct mbm_origin *origin,
                     const struct mbm_bind *bind, bool serves_type)
{
    struct mbm_bound bound = {.magic = MBM_BOUND};
    enum mbm_refusal why = refusal(server, bind, serves_type);
    struct mbm_place *place = NULL;

    if (why == MBM_ACCEPTED) {
        place = find_place(server, ways[bind->type]);
        why = MBM_NO_PLACE;
    }
    if (place != NULL) {
        place->origin = *origin;
        if (place->way->assign(place, bind, &bound)) {
            place->used = true;
            why = MBM_ACCEPTED;
        }
    }
    bound.magic = MBM_BOUND;
    bound.refusal = why;
    if (why == MBM_ACCEPTED)
        server->service.counters.clients++;
    else
        server->service.counters.refused++;
    mb_fifo_write(origin->ltn, origin->replies, &bound, sizeof(bound), NULL);
    if (why != MBM_ACCEPTED)
        mb_close(origin->ltn);
}

volatile uint64_t *svcmb_dummy_words(const SVCXPRT *transport, unsigned index)
{
    struct mbm_server *server = transport->xp_p1;

    if (index-- == 0)
        return server->ended_words;
    for (unsigned i = 0; i < server->options.clients; i++)
        if (server->places[i].exists && server->places[i].share != NULL && index-- == 0)
            return server->places[i].share->words;
    return NULL;
}
