/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a place in a server's table, which the README of SSS-CORE has and the harness reckons
 * with. */
#include "../server_machine.h"
#include "expect.h"

enum {
    TABLE_BYTES = 7 * 1024 * 1024, /* ../sss-core/dce/runtime.c */
    BESIDE = 2176,                 /* what is not fragments, arguments or results */
    ALIGNMENT = 16,
};

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t place_of(unsigned fragment, size_t largest)
{
    const struct dce_server_settings settings = {
        .xmitq = {.fragment = fragment},
        .activities = 1,
        .request_bytes = largest,
        .response_bytes = largest,
    };

    return dce_server_memory(&settings);
}

static void bytes_are_those_of_the_readme(void)
{
    for (unsigned fragment = 1464; fragment <= 8192; fragment += 8)
        for (size_t largest = 0; largest <= 196608; largest = largest * 3 + 1) {
            size_t slots = 1, kept;

            while (slots < 64 && slots * fragment < 64 * 1024)
                slots *= 2;
            kept = aligned(slots * fragment);
            EXPECT_OF(place_of(fragment, largest) == BESIDE + kept + aligned(largest + 8112) +
                                                         aligned(largest < 4 ? 4 : largest),
                      "%u, %zu: %zu", fragment, largest, place_of(fragment, largest));
        }
}

static void places_are_those_of_the_readme(void)
{
    static const struct {
        unsigned fragment;
        size_t largest;
        unsigned places;
    } rows[] = {{4096, 24096, 59}, {4096, 64256, 35}, {4096, 196608, 15},
                {8192, 0, 96},     {2040, 0, 52},     {4096, 4807, 85}};

    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        EXPECT_OF(TABLE_BYTES / place_of(rows[i].fragment, rows[i].largest) == rows[i].places,
                  "row %u: %zu", i, TABLE_BYTES / place_of(rows[i].fragment, rows[i].largest));
}

int main(void)
{
    static const struct test tests[] = {
        {"bytes_are_those_of_the_readme", bytes_are_those_of_the_readme},
        {"places_are_those_of_the_readme", places_are_those_of_the_readme},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
