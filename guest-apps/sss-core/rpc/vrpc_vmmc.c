/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of vRPC over a backplane: a pair of buffers, each bound to the other one. */
#include <sss/system.h>
#include <sss/vmmc_pair.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vrpc_carriers.h"

enum { SOURCE_PAGES = (VRPC_MESSAGE_MOST + (int)sizeof(struct ring_record)) / VMMC_PAGE };
_Static_assert(SOURCE_PAGES *VMMC_PAGE == VRPC_MESSAGE_MOST + sizeof(struct ring_record), "whole");
_Static_assert((int)RING_CONTROL == (int)VMMC_PAGE && (int)RING_TAIL >= (int)VMMC_PAIR_OWN,
               "a pair's control page is the rings'");

struct pair_line {
    struct vrpc_line line; /* first */
    struct vmmc_pair pair;
    uint8_t *source; /* registered; NULL: not yet */
    int slot;
};

struct vrpc_offer {
    rpcprog_t program;
    rpcvers_t version;
    struct vmmc_pair_setup setup;
    uint32_t deliberate_above;
    struct pair_line *free; /* NULL: memory was short */
    volatile uint32_t wanted;
    uint32_t wanted_seen;
    bool lacking; /* a client has come for whom memory or the adapter had no place */
};

static struct pair_line *of(struct vrpc_line *line)
{
    return (struct pair_line *)line;
}

/* ---- the carrier ---- */

/* Made when the first long message is sent. */
static uint8_t *source(struct vrpc_line *line)
{
    struct pair_line *own = of(line);
    size_t bytes = (size_t)SOURCE_PAGES * VMMC_PAGE;

    if (own->source != NULL)
        return own->source;
    own->source = sss_map(NULL, bytes, SSS_READ | SSS_WRITE);
    if (own->source == NULL)
        return NULL;
    own->slot = vmmc_source(own->pair.handle, own->source, SOURCE_PAGES);
    if (own->slot >= 0)
        return own->source;
    sss_unmap(own->source, bytes);
    own->source = NULL;
    return NULL;
}

/* The tail, by automatic update, must not overtake it. */
static void deliberate(struct vrpc_line *line, uint32_t at, uint32_t bytes)
{
    struct pair_line *own = of(line);

    for (uint32_t sent = 0, part; sent < bytes; sent += part) {
        part = bytes - sent < VMMC_TRANSFER ? bytes - sent : VMMC_TRANSFER;
        vmmc_pair_send(&own->pair, (unsigned)own->slot, sent, at + sent, part, false);
    }
    while (vmmc_pending(own->pair.du) != 0)
        ;
}

static unsigned words(struct vrpc_line *line, struct sss_wait waits[VRPC_WORDS])
{
    struct pair_line *own = of(line);

    waits[0] = (struct sss_wait){.address = &own->pair.notified, .seen = own->pair.notified};
    waits[1] = (struct sss_wait){.address = &own->pair.gone, .seen = own->pair.gone};
    return 2;
}

static bool is_gone(struct vrpc_line *line)
{
    return vmmc_pair_ended(&of(line)->pair);
}

static void probe(struct vrpc_line *line)
{
    vmmc_pair_probe(&of(line)->pair);
}

static void close_line(struct vrpc_line *line)
{
    struct pair_line *own = of(line);

    vmmc_pair_close(&own->pair);
    if (own->source != NULL)
        sss_unmap(own->source, (size_t)SOURCE_PAGES * VMMC_PAGE);
    free(own);
}

static void open_line(struct pair_line *own, uint32_t deliberate_above)
{
    static const struct vrpc_carrier carrier = {.source = source,
                                                .deliberate = deliberate,
                                                .words = words,
                                                .is_gone = is_gone,
                                                .probe = probe,
                                                .close = close_line};

    vrpc_line_open(&own->line, &carrier, (uint8_t *)(uintptr_t)own->pair.in,
                   (uint8_t *)(uintptr_t)own->pair.out, deliberate_above);
    own->line.node = own->pair.peer;
    own->line.task = own->pair.peer_task;
}

/* Who waits otherwise, or has other rings, is refused. */
static struct vmmc_pair_setup setup_of(rpcprog_t program, rpcvers_t version, enum vrpc_wait wait,
                                       uint64_t timeout_ns)
{
    struct vmmc_pair_setup setup = {
        .hash = (uint64_t)VRPC_RING << 8 | wait,
        .pages = VRPC_RING / VMMC_PAGE,
        .use = VMMC_VRPC,
        .notify = wait == VRPC_NOTIFY ? VMMC_PAIR_NOTIFY_CONTROL : VMMC_PAIR_SILENT,
        .combine = true,
        .timeout_ns = timeout_ns,
    };

    snprintf(setup.name, sizeof(setup.name), "vrpc.%x.%u", program, version);
    return setup;
}

/* ---- the client ---- */

struct vrpc_line *vrpc_vmmc_connect(uint16_t node, rpcprog_t program, rpcvers_t version,
                                    const struct clntvrpc_options *options, int *error)
{
    struct vmmc_pair_setup setup = setup_of(program, version, options->wait, options->connect_ns);
    struct pair_line *own = calloc(1, sizeof(*own));

    *error = own == NULL ? -SSS_ENOMEM : vmmc_pair_connect(&own->pair, node, &setup);
    /* A client may have come to the place that was free, and left without a word. */
    if (*error == -(VMMC_REFUSED + VMMC_GONE))
        *error = vmmc_pair_connect(&own->pair, node, &setup);
    if (*error < 0) {
        free(own);
        return NULL;
    }
    open_line(own, options->deliberate_above);
    return &own->line;
}

/* ---- the server ---- */

static void offer_next(struct vrpc_offer *offer)
{
    offer->free = calloc(1, sizeof(*offer->free));
    if (offer->free != NULL && vmmc_pair_offer(&offer->free->pair, &offer->setup) < 0) {
        free(offer->free);
        offer->free = NULL;
    }
}

struct vrpc_offer *vrpc_vmmc_offer(rpcprog_t program, rpcvers_t version,
                                   const struct svcvrpc_options *options,
                                   volatile uint32_t *notified)
{
    struct vrpc_offer *offer = calloc(1, sizeof(*offer));

    if (offer == NULL)
        return NULL;
    offer->program = program;
    offer->version = version;
    offer->setup = setup_of(program, version, options->wait, VRPC_CONNECT_NS);
    offer->setup.notified = notified;
    offer->setup.wanted = &offer->wanted;
    offer->deliberate_above = options->deliberate_above;
    offer_next(offer);
    if (offer->free != NULL)
        return offer;
    free(offer);
    return NULL;
}

struct vrpc_line *vrpc_vmmc_accept(struct vrpc_offer *offer)
{
    struct pair_line *own = offer->free;
    int heard;

    if (own == NULL)
        return NULL;
    heard = vmmc_pair_accept(&own->pair);
    if (heard == 0)
        return NULL;
    offer_next(offer);
    if (heard < 0) { /* the pair is closed */
        offer->lacking |= vmmc_pair_lacks_place(heard);
        free(own);
        return NULL;
    }
    open_line(own, offer->deliberate_above);
    return &own->line;
}

bool vrpc_vmmc_offers(const struct vrpc_offer *offer, rpcprog_t program, rpcvers_t version)
{
    return offer->program == program && offer->version == version;
}

bool vrpc_vmmc_was_full(struct vrpc_offer *offer)
{
    bool was;

    if (offer->free == NULL)
        offer_next(offer); /* there may be memory again */
    was = offer->lacking || (offer->free == NULL && offer->wanted != offer->wanted_seen);

    offer->lacking = false;
    offer->wanted_seen = offer->wanted;
    return was;
}

const volatile uint32_t *vrpc_vmmc_wanted(const struct vrpc_offer *offer)
{
    return &offer->wanted;
}
