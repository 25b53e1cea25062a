/* SPDX-License-Identifier: Apache-2.0 */
#include "mbcf_cache.h"

#include <rpc/copies.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct mbm_caller caller;
    void *reply; /* NULL: nothing */
    uint32_t length;
    uint32_t next; /* of the same bucket, as index + 1 */
};

struct mbm_cache {
    unsigned size;
    unsigned oldest;
    uint32_t *buckets; /* index + 1 */
    struct entry *entries;
};

struct mbm_cache *mbm_cache_new(unsigned entries)
{
    struct mbm_cache *cache = calloc(1, sizeof(*cache));

    if (cache == NULL)
        return NULL;
    cache->size = entries;
    cache->buckets = calloc(entries, sizeof(*cache->buckets));
    cache->entries = calloc(entries, sizeof(*cache->entries));
    if (cache->buckets != NULL && cache->entries != NULL)
        return cache;
    mbm_cache_free(cache);
    return NULL;
}

void mbm_cache_free(struct mbm_cache *cache)
{
    for (unsigned i = 0; cache->entries != NULL && i < cache->size; i++)
        free(cache->entries[i].reply);
    free(cache->buckets);
    free(cache->entries);
    free(cache);
}

static uint32_t *bucket(const struct mbm_cache *cache, const struct mbm_caller *caller)
{
    return &cache->buckets[(caller->xid + (uint32_t)caller->key) % cache->size];
}

static bool is_same(const struct mbm_caller *a, const struct mbm_caller *b)
{
    return a->xid == b->xid && a->key == b->key && a->node == b->node && a->task == b->task;
}

const void *mbm_cache_find(const struct mbm_cache *cache, const struct mbm_caller *caller,
                           uint32_t *length)
{
    for (uint32_t place = *bucket(cache, caller); place != 0;
         place = cache->entries[place - 1].next) {
        const struct entry *entry = &cache->entries[place - 1];

        if (is_same(&entry->caller, caller)) {
            *length = entry->length;
            return entry->reply;
        }
    }
    return NULL;
}

static void drop(struct mbm_cache *cache, uint32_t index)
{
    uint32_t *link = bucket(cache, &cache->entries[index].caller);

    while (*link != index + 1)
        link = &cache->entries[*link - 1].next;
    *link = cache->entries[index].next;
    free(cache->entries[index].reply);
    cache->entries[index].reply = NULL;
}

bool mbm_cache_keep(struct mbm_cache *cache, const struct mbm_caller *caller, const void *reply,
                    uint32_t length)
{
    uint32_t index = cache->oldest;
    struct entry *entry = &cache->entries[index];
    void *copy = malloc(length);

    if (copy == NULL)
        return false;
    memcpy(copy, reply, length);
    rpc_copied(RPC_COPY_OTHER, length);
    if (entry->reply != NULL)
        drop(cache, index);
    *entry = (struct entry){*caller, copy, length, *bucket(cache, caller)};
    *bucket(cache, caller) = index + 1;
    cache->oldest = (index + 1) % cache->size;
    return true;
}
