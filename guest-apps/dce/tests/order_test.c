/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines in order, against looking at all of them. */
#include "../machine.h"
#include "../order.h"
#include "expect.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 300, ROUNDS = 20000 };

static uint64_t due_ns[MOST];
static uint64_t seed = 1;

static uint64_t random_below(uint64_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % limit;
}

static uint64_t first_of(unsigned count)
{
    uint64_t first = DCE_NEVER;

    for (unsigned i = 0; i < count; i++)
        first = dce_earlier(first, due_ns[i]);
    return first;
}

static unsigned due_of(unsigned count, uint64_t now, uint16_t *places)
{
    unsigned found = 0;

    for (unsigned i = 0; i < count; i++)
        if (due_ns[i] <= now)
            places[found++] = (uint16_t)i;
    return found;
}

/* Few instants, so that many are equal; some places are never due. */
static void any_changes_of(unsigned places)
{
    uint8_t *memory = malloc(dce_order_memory(places));
    uint16_t expected[MOST];
    struct dce_order order;
    unsigned count = 0;

    if (memory == NULL)
        abort();
    dce_order_init(&order, places, memory);
    EXPECT(dce_order_first(&order) == DCE_NEVER && dce_order_due(&order, DCE_NEVER) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned place = (unsigned)random_below(count < places ? count + 1 : places);
        uint64_t now = random_below(1000), found;

        due_ns[place] = random_below(5) == 0 ? DCE_NEVER : random_below(1000);
        count += place == count;
        dce_order_set(&order, place, due_ns[place]);
        EXPECT(dce_order_first(&order) == first_of(count));
        if (round % 16 == 0) {
            found = due_of(count, now, expected);
            EXPECT(dce_order_due(&order, now) == found &&
                   memcmp(order.found, expected, found * sizeof(*expected)) == 0);
        }
    }
    free(memory);
}

static void all_tables(void)
{
    for (unsigned places = 1; places < 10; places++)
        any_changes_of(places);
    any_changes_of(128);
    any_changes_of(MOST);
}

int main(void)
{
    static const struct test tests[] = {{"all_tables", all_tables}};

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
