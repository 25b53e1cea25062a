/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The reply cache of at-most-once: the newest replies by (client, transaction number). A request
 * that comes again after its reply has given way to newer ones is executed again: the weakness that
 * kamesawa98 section 3.2 tells of.
 */
#include <stdbool.h>
#include <stdint.h>

struct mbm_caller {
    uint64_t key; /* the client's accesskey tells one incarnation of a task from the next */
    uint16_t node;
    uint16_t task;
    uint32_t xid;
};

struct mbm_cache;
struct mbm_cache *mbm_cache_new(unsigned entries); /* NULL: out of memory */
void mbm_cache_free(struct mbm_cache *cache);
/* The reply that was kept for the call, or NULL. */
const void *mbm_cache_find(const struct mbm_cache *cache, const struct mbm_caller *caller,
                           uint32_t *length);
/* Keeps a copy; the oldest reply gives way. False: out of memory, nothing is kept. */
bool mbm_cache_keep(struct mbm_cache *cache, const struct mbm_caller *caller, const void *reply,
                    uint32_t length);
