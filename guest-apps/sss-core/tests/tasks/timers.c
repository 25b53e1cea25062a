/* SPDX-License-Identifier: Apache-2.0 */
/* Many waits at once, of which some end before their time: each of the others must end at its time,
 * and soon after it. */
#include <stdio.h>

#include "sss/system.h"

enum { THREADS = 8, WAITS = 200, LATE_NS = 100000 };

static volatile uint32_t words[THREADS], finished;
static volatile uint64_t latest_ns, early;

static void waiter(void *argument)
{
    uint64_t number = (uint64_t)argument;
    uint32_t random = (uint32_t)number + 1;

    for (unsigned i = 0; i < WAITS; i++) {
        uint32_t seen = words[number];
        uint64_t wait_ns, begin = sss_now_ns();

        random = random * 1664525 + 1013904223;
        wait_ns = 50000 + (random >> 8) % 20000000;
        if (sss_wait_word(&words[number], seen, wait_ns) == -SSS_ETIMEDOUT) {
            uint64_t took_ns = sss_now_ns() - begin;

            early += took_ns < wait_ns;
            if (took_ns > wait_ns && took_ns - wait_ns > latest_ns)
                latest_ns = took_ns - wait_ns;
        }
        words[(number + i) % THREADS]++; /* ends the wait of one thread */
    }
    finished++;
}

int main(void)
{
    uint64_t begin = sss_now_ns();
    uint32_t seen;

    sss_wait(NULL, 0, 5000000000);
    printf("5 s are %lu ms\n", (sss_now_ns() - begin) / 1000000);
    for (uint64_t i = 0; i < THREADS; i++)
        sss_thread(waiter, (void *)i, 8192);
    while ((seen = finished) < THREADS)
        sss_wait_word(&finished, seen, SSS_FOREVER);
    printf("early %lu, late %s\n", early, latest_ns < LATE_NS ? "never" : "too much");
    return 0;
}
