// SPDX-License-Identifier: GPL-2.0-or-later
#include "inbox.h"

#include <stdlib.h>
#include <string.h>

static void *grown(void *old, size_t bytes)
{
    void *memory = realloc(old, bytes);
    if (!memory)
        abort(); // the machine cannot go on without a frame that is due
    return memory;
}

static int before(const struct letter *a, const struct letter *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

void inbox_add(struct inbox *inbox, uint64_t due_ns, uint16_t nic, const uint8_t *frame,
               uint32_t length)
{
    if (inbox->used == inbox->allocated) {
        inbox->allocated = inbox->allocated ? 2 * inbox->allocated : 64;
        inbox->heap = grown(inbox->heap, inbox->allocated * sizeof *inbox->heap);
    }
    struct letter *letter = grown(NULL, sizeof *letter + length);
    letter->due_ns = due_ns;
    letter->sequence = inbox->next_sequence++;
    letter->length = length;
    letter->nic = nic;
    memcpy(letter->frame, frame, length);
    uint32_t i = inbox->used++;
    for (; i && before(letter, inbox->heap[(i - 1) / 2]); i = (i - 1) / 2)
        inbox->heap[i] = inbox->heap[(i - 1) / 2];
    inbox->heap[i] = letter;
}

uint64_t inbox_first(const struct inbox *inbox)
{
    return inbox->used ? inbox->heap[0]->due_ns : SYNC_NEVER;
}

struct letter *inbox_take(struct inbox *inbox, uint64_t now)
{
    if (!inbox->used || inbox->heap[0]->due_ns > now)
        return NULL;
    struct letter *first = inbox->heap[0];
    struct letter *last = inbox->heap[--inbox->used];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < inbox->used; i = child) {
        if (child + 1 < inbox->used && before(inbox->heap[child + 1], inbox->heap[child]))
            child++;
        if (!before(inbox->heap[child], last))
            break;
        inbox->heap[i] = inbox->heap[child];
    }
    if (inbox->used)
        inbox->heap[i] = last;
    return first;
}

void done_push(struct done_queue *queue, uint64_t time_ns)
{
    if (queue->pushed - queue->popped == queue->allocated) {
        uint64_t larger = queue->allocated ? 2 * queue->allocated : 64;
        uint64_t *times = grown(NULL, larger * sizeof *times);
        for (uint64_t i = queue->popped; i < queue->pushed; i++)
            times[i & (larger - 1)] = queue->times[i & (queue->allocated - 1)];
        free(queue->times);
        queue->times = times;
        queue->allocated = larger;
    }
    queue->times[queue->pushed++ & (queue->allocated - 1)] = time_ns;
}

uint64_t done_first(const struct done_queue *queue)
{
    return queue->pushed > queue->popped ? queue->times[queue->popped & (queue->allocated - 1)]
                                         : SYNC_NEVER;
}

uint64_t done_pop_before(struct done_queue *queue, uint64_t now)
{
    uint64_t count = 0;
    for (; done_first(queue) < now; count++)
        queue->popped++;
    return count;
}

enum sync_look inbox_drain(struct inbox *inbox, struct done_queue done[], struct sync_end *from,
                           unsigned nics)
{
    const struct sync_expect expect = {.nics = nics, .last_kind = SYNC_TX_DONE};
    struct sync_entry entry;
    enum sync_look look;
    for (; (look = sync_first(from, &expect, &entry)) == SYNC_THERE; sync_pop(from)) {
        if (entry.kind == SYNC_TX_DONE)
            done_push(&done[entry.nic], entry.time_ns);
        else
            inbox_add(inbox, entry.time_ns, entry.nic, entry.data, entry.length);
    }
    return look;
}
