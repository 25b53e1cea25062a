/* SPDX-License-Identifier: Apache-2.0 */
/* What arrives, how, and what it costs. */
#include "cases.h"

/* ---- store: words by automatic update, there and back ---- */
static void store_server(void)
{
    volatile uint64_t *in = memory(PAGES), *out;

    tell("export", export("store.server", in, PAGES, 0));
    sss_ready();
    until_counted(&imported, 1);
    until(&in[0], 1);
    out = bind(PAGES, import("store.client", NULL), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        until(&in[WORDS * i], i);
        out[WORDS * i] = i;
    }
}

static void store_client(void)
{
    volatile uint64_t *in = memory(PAGES), *out;
    struct vmmc_import_setup other = import_setup("store.server");
    int handle;

    tell("export", export("store.client", in, PAGES, 0));
    handle = vmmc_import(&other);
    tell("import", handle);
    tell("pages", other.pages);
    out = bind(PAGES, handle, VMMC_COMBINED);
    tell("zero", (long)(out[0] | out[WORDS * PAGES - 1]));
    out[0] = 1;
    for (uint64_t i = 1; i <= 3; i++) {
        out[WORDS * i] = i;
        until(&in[WORDS * i], i);
    }
    tell("own", (long)out[WORDS]);
    tell("unbind", vmmc_unbind((void *)out, PAGES));
    tell("unbind again", vmmc_unbind((void *)out, PAGES));
    tell("unimport", vmmc_unimport(handle));
    tell("unexport", vmmc_unexport(0));
}

/* ---- deliberate: transfers, each with a notification, and those that are refused ---- */
static const struct {
    uint32_t from, to, length;
} transfers[] = {{0, 0, 1}, {100, 3000, 5000}, {1, 2, BYTES - 2}, {0, 0, BYTES}};
enum { TRANSFERS = sizeof(transfers) / sizeof(*transfers) };

static uint8_t pattern(uint32_t at, uint32_t number)
{
    return (uint8_t)(at * 7 + at / 251 + number * 31 + 1);
}

static void deliberate_server(void)
{
    volatile uint64_t *in = memory(PAGES), *out;
    const volatile uint8_t *bytes = (const volatile uint8_t *)in;

    export("deliberate", in, PAGES, 0);
    sss_ready();
    until_counted(&imported, 1);
    out = bind(1, import("deliberate.answers", NULL), VMMC_NOTIFY);
    for (uint32_t number = 0; number < TRANSFERS; number++) {
        long wrong = 0;

        until_counted(&notified, number + 1);
        for (uint32_t i = 0; i < transfers[number].length; i++)
            wrong += bytes[transfers[number].to + i] != pattern(transfers[number].from + i, number);
        tell("wrong", wrong);
        out[0] = number + 1;
    }
}

static void deliberate_client(void)
{
    volatile uint64_t *answers = memory(1), *source = memory(PAGES), *du;
    volatile uint8_t *bytes = (volatile uint8_t *)source;
    int handle, slot;

    export("deliberate.answers", answers, 1, 0);
    handle = import("deliberate", &du);
    slot = vmmc_source(handle, (void *)source, PAGES);
    tell("slot", slot);
    tell("a source that is not there", vmmc_source(handle, (void *)0x70000000, 1));
    tell("a source of another import", vmmc_source(handle + 1, (void *)source, 1));
    for (uint32_t number = 0; number < TRANSFERS; number++) {
        for (uint32_t i = 0; i < BYTES; i++)
            bytes[i] = pattern(i, number);
        vmmc_send(du, (unsigned)slot, transfers[number].from, transfers[number].to,
                  transfers[number].length, true);
        while (vmmc_pending(du) != 0)
            ;
        until_counted(&notified, number + 1);
    }
    tell("errors", (long)vmmc_errors(du));
    vmmc_send(du, (unsigned)slot, 0, BYTES - 7, 8, false);
    vmmc_send(du, (unsigned)slot, BYTES - 7, 0, 8, false);
    vmmc_send(du, (unsigned)slot + 1, 0, 0, 8, false);
    tell("errors", (long)vmmc_errors(du));
    /* Its sources are memory of this task still, and its end is sent, when the last has been read.
     */
    vmmc_send(du, (unsigned)slot, 0, 0, BYTES, false);
    tell("unimport", vmmc_unimport(handle));
    tell("unimport again", vmmc_unimport(handle));
}

/* ---- flood: more than the outgoing FIFO takes ---- */
enum { FLOOD = 4000 };

static void flood_server(void)
{
    volatile uint64_t *in = memory(1);

    export("flood", in, 1, 0);
    sss_ready();
    until_counted(&imported, 1);
    until(&in[0], FLOOD);
}

static void flooding(void *argument)
{
    volatile uint64_t *out = argument;

    for (uint64_t i = 1; i <= FLOOD; i++)
        out[0] = i;
    gone = 1;
}

/* Faults while its other thread waits for the adapter: both end. */
static void flood_child(void)
{
    volatile uint64_t *out = bind(1, import("flood", NULL), 0);
    uint64_t seen = 0;

    sss_thread(flooding, (void *)out, 4096);
    do {
        seen = out[0];
        sss_yield();
    } while (seen == 0 || out[0] != seen);
    *(volatile uint64_t *)0xffff800000345678 = 1;
}

static void flood_all(void)
{
    volatile uint64_t *out = bind(1, import("flood", NULL), 0);
    uint64_t turns = 0, before = sss_now_ns();

    sss_thread(flooding, (void *)out, 4096);
    for (; gone == 0; turns++)
        sss_yield();
    tell("others ran", turns > 10);
    tell("ns", (long)(sss_now_ns() - before));
    tell("last", (long)out[0]);
}

static void flood_client(void)
{
    tell("child", child("flood-child", NULL));
    flood_all();
}

/* ---- messages: more of the kernel's than the line takes ---- */
enum { ABANDONED = 600, KEPT = 150, EACH_TWICE = 2 * (ABANDONED + KEPT) };
#define MESSAGES_LEFT_NS 500000000ull /* what was in the FIFO, and ends after it */

static void messages_server(void)
{
    volatile uint64_t *in = memory(1);

    export("messages", in, 1, 0);
    sss_ready();
    until(&in[0], 1);
    tell("before the others", imported < EACH_TWICE);
    until_counted(&imported, 2 * EACH_TWICE + 1);
    until(&in[0], 2);
    tell("imported", imported);
}

/* Does not wait for answers; those that come are refused, which is one message more. Ends while the
 * line is full, with more imports than it takes messages then. */
static void messages_child(void)
{
    struct vmmc_import_setup setup = import_setup("messages");
    int handle = 0;

    setup.timeout_ns = 0;
    for (unsigned i = 0; i < ABANDONED; i++)
        vmmc_import(&setup);
    setup.timeout_ns = SSS_FOREVER;
    for (unsigned i = 0; i < KEPT; i++)
        handle = vmmc_import(&setup);
    sss_thread(flooding, (void *)(bind(1, handle, 0) + 1), 4096);
    sss_wait_word(&notified, 0, 30000000);
    *(volatile uint64_t *)0xffff800000345678 = 1;
}

static void messages_hostile(void *unused)
{
    (void)unused;
    tell("child", child("messages-child", NULL));
    gone = 1;
}

static void messages_client(void)
{
    struct vmmc_import_setup setup = import_setup("messages");
    volatile uint64_t *out;
    long before;

    setup.timeout_ns = SSS_FOREVER;
    setup.gone = NULL;
    sss_thread(messages_hostile, NULL, 4096);
    sss_wait_word(&notified, 0, 100000000);
    out = bind(1, vmmc_import(&setup), 0);
    out[0] = 1;
    tell("while it sends", gone == 0);
    until_counted(&gone, 1);
    sss_wait_word(&notified, 0, MESSAGES_LEFT_NS);
    before = free_pages();
    tell("child", child("messages-child", NULL));
    sss_wait_word(&notified, 0, MESSAGES_LEFT_NS);
    tell("pages lost", before - free_pages());
    out[0] = 2;
}

/* ---- short transfers: their headers are more than the line takes ---- */
enum { SHORT = 3000, QUEUED = 64 };

static void short_server(void)
{
    volatile uint64_t *in = memory(1);

    export("short", in, 1, 0);
    sss_ready();
    until_counted(&notified, 1);
    tell("last", (long)in[0]);
}

static void short_client(void)
{
    volatile uint64_t *source = memory(1), *du;
    int slot, handle = import("short", &du);

    slot = vmmc_source(handle, (void *)source, 1);
    source[0] = 77;
    for (unsigned i = 1; i <= SHORT; i++) {
        while (vmmc_pending(du) == QUEUED)
            ;
        vmmc_send(du, (unsigned)slot, 0, 0, 1, i == SHORT);
    }
    tell("errors", (long)vmmc_errors(du));
}

/* ---- costs, in ns of the clock ---- */
static uint64_t count(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

static void costs_server(void)
{
    volatile uint64_t *in = memory(1);

    export("costs", in, 1, 0);
    sss_ready();
    until_counted(&imported, 1);
    until_counted(&notified, 1);
    tell("noticed at", (long)count());
}

static void costs_client(void)
{
    volatile uint64_t *source = memory(1), *du, *out;
    uint64_t before = count();
    int handle = import("costs", &du), slot;

    tell("import", (long)(count() - before));
    slot = vmmc_source(handle, (void *)source, 1);
    before = count();
    vmmc_send(du, (unsigned)slot, 0, 0, 8, false);
    tell("start", (long)(count() - before));
    out = bind(1, handle, VMMC_NOTIFY);
    sss_wait_word(&gone, 0, 1000000);
    out[0] = 1;
    tell("stored at", (long)count());
}

const struct task_case updates_cases[] = {
    {"store-server", store_server},
    {"store-client", store_client},
    {"deliberate-server", deliberate_server},
    {"deliberate-client", deliberate_client},
    {"flood-server", flood_server},
    {"flood-client", flood_client},
    {"flood-child", flood_child},
    {"messages-server", messages_server},
    {"messages-client", messages_client},
    {"messages-child", messages_child},
    {"short-server", short_server},
    {"short-client", short_client},
    {"costs-server", costs_server},
    {"costs-client", costs_client},
    {NULL, NULL},
};
