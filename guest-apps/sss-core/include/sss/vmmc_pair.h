/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pairs over VMMC: two buffers, each exported by its owner and bound by the other one, so that what
 * one stores in `out` the other finds in `in`. A server offers a pair under a name and always keeps
 * one that is free; a client connects to it. Functions return 0 or more, or errors as those of
 * vmmc.h do.
 *
 * A buffer is a control page, whose stores are a packet each, and the data pages. The first
 * VMMC_PAIR_OWN bytes of the control page are those of the pair itself; the others, and the data,
 * begin as zeros.
 */
#include "vmmc.h"

enum {
    VMMC_PAIR_OWN = 256,
    VMMC_PAIR_PAGES = VMMC_EXPORT_PAGES - 1, /* data pages at most */
    VMMC_MISMATCH = 16,                      /* beside enum vmmc_refusal: the hashes differ */
};

/* Which packets are notifications to their receiver: the client says it for both directions, and
 * the server finds it in the pair's setup. */
enum vmmc_pair_notify {
    VMMC_PAIR_SILENT = 0,
    VMMC_PAIR_NOTIFY_CONTROL = 1, /* those to the control page */
    VMMC_PAIR_NOTIFY_END = 2,     /* those to the last data page */
};

struct vmmc_pair_setup {
    char name[VMMC_NAME];
    uint64_t key;
    uint64_t hash;       /* of what is spoken; both must give the same */
    uint32_t pages;      /* data pages of each side */
    uint32_t use;        /* enum vmmc_use */
    unsigned notify;     /* enum vmmc_pair_notify; a server's does not count */
    bool combine;        /* in the data pages */
    uint64_t timeout_ns; /* to import, to be welcomed and, in a server, until the hello */
    /* A word that notifications of this pair increment, maybe that of several pairs; NULL: the
     * pair's own. */
    volatile uint32_t *notified;
    volatile uint32_t *wanted; /* of a server: grows when a client finds none that is free */
};

struct vmmc_pair {
    volatile uint8_t *in;  /* own memory, which the peer writes */
    volatile uint8_t *out; /* NULL until both know one another */
    volatile uint64_t *du; /* of the import, for vmmc_send */
    struct vmmc_pair_setup setup;
    int handle, export_id;
    uint16_t peer;              /* node */
    uint16_t peer_task;         /* as it says */
    volatile uint32_t notified; /* see the setup */
    volatile uint32_t imported; /* 1: there is a client, 2: there was one */
    volatile uint32_t gone;     /* the peer's buffer is no longer there */
    uint64_t imported_ns;
};

/* Server: the pair can be connected to from now on. */
int vmmc_pair_offer(struct vmmc_pair *pair, const struct vmmc_pair_setup *setup);
/*
 * Server: 0 while no client has connected (that costs a load), 1 when one has. Below 0 the client
 * was refused, or has left, or says nothing: the pair is closed, and another one is to be offered.
 */
int vmmc_pair_hear(struct vmmc_pair *pair);
static inline int vmmc_pair_accept(struct vmmc_pair *pair)
{
    return pair->imported == 0 ? 0 : vmmc_pair_hear(pair);
}
/* Client: waits for the server's welcome. -(VMMC_REFUSED + VMMC_MISMATCH): the hashes differ. */
int vmmc_pair_connect(struct vmmc_pair *pair, uint16_t node, const struct vmmc_pair_setup *setup);
/* Server: stores a word that changes nothing. Of a client whose node has crashed the pair has ended
 * when that is refused; such a client notifies no node. */
static inline void vmmc_pair_probe(const struct vmmc_pair *pair)
{
    volatile uint64_t *welcome = (volatile uint64_t *)pair->out;
    uint64_t said = *welcome;

    *welcome = said;
}
/* Whether `error` of a pair says that memory or the adapter have no place for it. */
static inline bool vmmc_pair_lacks_place(int error)
{
    return error == -SSS_ENOMEM || error == -SSS_EAGAIN;
}
/* Whether the peer is no longer there. */
static inline bool vmmc_pair_ended(const struct vmmc_pair *pair)
{
    return pair->gone != 0 || pair->imported > 1;
}
/*
 * vmmc_send, for the only thread that sends so to the peer, of what is within the source and the
 * peer's buffer. Other tasks may have all VMMC_TRANSFERS of the node: then it is started again
 * until it has a place, or the pair has ended.
 */
void vmmc_pair_send_again(const struct vmmc_pair *pair, unsigned slot, uint32_t from, uint32_t to,
                          uint32_t length, bool notify);
static inline void vmmc_pair_send(const struct vmmc_pair *pair, unsigned slot, uint32_t from,
                                  uint32_t to, uint32_t length, bool notify)
{
    uint64_t errors = vmmc_errors(pair->du);

    vmmc_send(pair->du, slot, from, to, length, notify);
    if (vmmc_errors(pair->du) != errors)
        vmmc_pair_send_again(pair, slot, from, to, length, notify);
}
/* Once, and never of a pair that was not opened. */
void vmmc_pair_close(struct vmmc_pair *pair);
