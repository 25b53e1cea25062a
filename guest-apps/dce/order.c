/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include "machine.h"

size_t dce_order_memory(unsigned places)
{
    return places * (sizeof(uint64_t) + 3 * sizeof(uint16_t));
}

void dce_order_init(struct dce_order *order, unsigned places, uint8_t *memory)
{
    *order = (struct dce_order){.due_ns = (uint64_t *)(void *)memory};
    order->heap = (uint16_t *)(void *)(memory + places * sizeof(uint64_t));
    order->at = order->heap + places;
    order->found = order->at + places;
}

static void put(struct dce_order *order, unsigned index, uint16_t place)
{
    order->heap[index] = place;
    order->at[place] = (uint16_t)index;
}

static uint64_t due_at(const struct dce_order *order, unsigned index)
{
    return order->due_ns[order->heap[index]];
}

static void move_up(struct dce_order *order, unsigned index)
{
    uint16_t place = order->heap[index];

    for (; index != 0 && order->due_ns[place] < due_at(order, (index - 1) / 2);
         index = (index - 1) / 2)
        put(order, index, order->heap[(index - 1) / 2]);
    put(order, index, place);
}

static void move_down(struct dce_order *order, unsigned index)
{
    uint16_t place = order->heap[index];

    for (unsigned child; (child = 2 * index + 1) < order->count; index = child) {
        if (child + 1 < order->count && due_at(order, child + 1) < due_at(order, child))
            child++;
        if (due_at(order, child) >= order->due_ns[place])
            break;
        put(order, index, order->heap[child]);
    }
    put(order, index, place);
}

void dce_order_set(struct dce_order *order, unsigned place, uint64_t due_ns)
{
    uint64_t before;

    if (place == order->count) {
        put(order, order->count++, (uint16_t)place);
        order->due_ns[place] = DCE_NEVER;
    }
    before = order->due_ns[place];
    order->due_ns[place] = due_ns;
    if (due_ns < before)
        move_up(order, order->at[place]);
    else if (due_ns > before)
        move_down(order, order->at[place]);
}

uint64_t dce_order_first(const struct dce_order *order)
{
    return order->count == 0 ? DCE_NEVER : due_at(order, 0);
}

/* Few are due at a time. */
static void sort(uint16_t *places, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        uint16_t place = places[i];
        unsigned at = i;

        for (; at != 0 && places[at - 1] > place; at--)
            places[at] = places[at - 1];
        places[at] = place;
    }
}

unsigned dce_order_due(struct dce_order *order, uint64_t now)
{
    unsigned count = 0;

    if (order->count != 0 && due_at(order, 0) <= now)
        order->found[count++] = order->heap[0];
    /* Below what is not due nothing is. */
    for (unsigned i = 0; i < count; i++) {
        unsigned child = 2u * order->at[order->found[i]] + 1;

        for (unsigned end = child + 2; child < end && child < order->count; child++)
            if (due_at(order, child) <= now)
                order->found[count++] = order->heap[child];
    }
    sort(order->found, count);
    return count;
}
