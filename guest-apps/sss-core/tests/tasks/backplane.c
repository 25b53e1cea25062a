/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a test over a backplane: `case` of the options names what it does. What happened goes
 * to the records as lines of a name and a number.
 */
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "sss/system.h"
#include "sss/vmmc.h"

#define KEY        0x6b65795f6f665f69ull
#define TIMEOUT_NS 20000000ull
enum { PAGES = 4, WORDS = VMMC_PAGE / 8, BYTES = PAGES * VMMC_PAGE };

static uint64_t peer, address;
static const char *case_name;
static volatile uint32_t notified, imported, gone;

static struct vmmc_export_setup export_setup(const char *name, volatile void *memory,
                                             uint32_t pages)
{
    struct vmmc_export_setup setup = {.address = (void *)memory,
                                      .pages = pages,
                                      .key = KEY,
                                      .allow = UINT64_MAX,
                                      .notified = &notified,
                                      .imported = &imported};

    strncpy(setup.name, name, VMMC_NAME - 1);
    return setup;
}

static int export(const char *name, volatile void *memory, uint32_t pages, uint32_t flags)
{
    struct vmmc_export_setup setup = export_setup(name, memory, pages);

    setup.flags = flags;
    return vmmc_export(&setup);
}

static struct vmmc_import_setup import_setup(const char *name)
{
    struct vmmc_import_setup setup = {
        .node = (uint16_t)peer, .key = KEY, .timeout_ns = TIMEOUT_NS, .gone = &gone};

    strncpy(setup.name, name, VMMC_NAME - 1);
    return setup;
}

static int import(const char *name, volatile uint64_t **du)
{
    struct vmmc_import_setup setup = import_setup(name);
    int handle = vmmc_import(&setup);

    if (du != NULL)
        *du = setup.du;
    return handle;
}

static volatile uint64_t *memory(size_t pages)
{
    return sss_map(NULL, pages * VMMC_PAGE, SSS_READ | SSS_WRITE);
}

static void tell(const char *what, long value)
{
    sss_record("{\"type\":\"lab\",\"case\":\"%s\",\"what\":\"%s\",\"value\":%ld}", case_name, what,
               value);
}

static void until(const volatile uint64_t *word, uint64_t value)
{
    while (*word != value)
        ;
}

static void until_counted(const volatile uint32_t *word, uint32_t least)
{
    for (uint32_t seen; (seen = *word) < least;)
        sss_wait_word(word, seen, SSS_FOREVER);
}

static long bind_error(volatile void *at, uint32_t pages, int handle, uint32_t first,
                       unsigned flags)
{
    int error;

    vmmc_bind((void *)at, pages, handle, first, flags, &error);
    return error;
}

static volatile uint64_t *bind(uint32_t pages, int handle, unsigned flags)
{
    int error;
    volatile uint64_t *out = vmmc_bind(NULL, pages, handle, 0, flags, &error);

    if (error != 0)
        tell("bind", error);
    return out;
}

/* Another task of this program: its status. */
static int child(const char *name, volatile void *at)
{
    char options[160];
    struct sss_task_status status;
    int task;

    snprintf(options, sizeof(options), "{\"case\":\"%s\",\"peer\":%lu,\"address\":%lu}", name, peer,
             (unsigned long)at);
    task = sss_task("backplane", options, 0);
    if (task < 0)
        return task;
    for (;;) {
        uint32_t seen = SSS_INFO->tasks;

        if (sss_task_status(task, &status) < 0 || status.state == SSS_GONE)
            return status.status;
        sss_wait_word(&SSS_INFO->tasks, seen, SSS_FOREVER);
    }
}

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
    /* Its sources are memory of this task still, and its end is told, when the last has been read.
     */
    vmmc_send(du, (unsigned)slot, 0, 0, BYTES, false);
    tell("unimport", vmmc_unimport(handle));
    tell("unimport again", vmmc_unimport(handle));
}

/* ---- refusals ---- */
static void refusals_server(void)
{
    volatile uint64_t *in = memory(3);
    struct vmmc_export_setup setup = export_setup("others", in, 1);

    export("open", in, 1, 0);
    export("single", in + WORDS, 1, VMMC_SINGLE);
    export("single", in + 2 * WORDS, 1, VMMC_SINGLE);
    setup.allow = 1ull << 40;
    tell("others", vmmc_export(&setup));
    tell("the same name", export("open", in, 1, 0));
    tell("the same name, single", export("open", in, 1, VMMC_SINGLE));
    tell("a name that single ones have", export("single", in, 1, 0));
    tell("no name", export("", in, 1, 0));
    tell("no pages", export("x", in, 0, 0));
    tell("too many pages", export("x", in, VMMC_EXPORT_PAGES + 1, 0));
    tell("not whole pages", export("x", in + 1, 1, 0));
    tell("not its memory", export("x", (void *)0x70000000, 1, 0));
    tell("read-only memory", export("x", (void *)SSS_INFO, 1, 0));
    tell("unknown flags", export("x", in, 1, 2));
    setup.notified = (uint32_t *)0x70000000;
    tell("not its word", vmmc_export(&setup));
    tell("unexport of none", vmmc_unexport(239));
    sss_ready();
    sss_wait_word(&gone, 0, SSS_FOREVER);
}

static void refusals_client(void)
{
    struct vmmc_import_setup setup = import_setup("open");
    int first, second;

    setup.key++;
    tell("another key", vmmc_import(&setup));
    tell("no such name", import("nothing", NULL));
    tell("for others", import("others", NULL));
    first = import("single", NULL);
    second = import("single", NULL);
    tell("both singles", first >= 0 && second >= 0 && first != second);
    tell("full", import("single", NULL));
    vmmc_unimport(first);
    tell("free again", import("single", NULL) >= 0);
    tell("full again", import("single", NULL));
    tell("no name", import("", NULL));
    setup = import_setup("open");
    setup.node = 9;
    tell("no such node", vmmc_import(&setup));
    setup.node = SSS_INFO->node;
    tell("itself", vmmc_import(&setup));
    setup.node = 0;
    tell("nobody", vmmc_import(&setup));
    setup.node = (uint16_t)peer;
    setup.gone = (uint32_t *)0x70000000;
    tell("not its word", vmmc_import(&setup));
    tell("not its memory", sss_call(SSS_VMMC_IMPORT, 0x70000000, 0, 0, 0, 0, 0));
    first = import("open", NULL);
    tell("open", first >= 0);
    tell("bind beyond", bind_error(NULL, 1, first, 1, 0));
    tell("bind too much", bind_error(NULL, 2, first, 0, 0));
    tell("bind nothing", bind_error(NULL, 0, first, 0, 0));
    tell("bind with unknown flags", bind_error(NULL, 1, first, 0, 4));
    tell("bind to none", bind_error(NULL, 1, 239, 0, 0));
    tell("bind where something is", bind_error((void *)SSS_TEXT, 1, first, 0, 0));
}

/* ---- gone: the exporter unexports, or ends ---- */
static void gone_server(void)
{
    volatile uint64_t *in = memory(1);
    int id = export("going", in, 1, 0);

    sss_ready();
    until_counted(&notified, 1);
    tell("unexport", vmmc_unexport(id));
    tell("unexport again", vmmc_unexport(id));
    sss_wait_word(&notified, 1, 5000000);
    tell("arrived later", (long)in[1]);
    tell("export", export("ending", in, 1, 0));
    until_counted(&notified, 2);
}

static void gone_client(void)
{
    volatile uint64_t *source = memory(1), *du, *out;
    int handle = import("going", &du), slot = vmmc_source(handle, (void *)source, 1);

    out = bind(1, handle, VMMC_NOTIFY);
    out[0] = 1;
    sss_wait_word(&gone, 0, SSS_FOREVER);
    tell("gone", gone);
    out[1] = 1;
    tell("own", (long)out[1]);
    vmmc_send(du, (unsigned)slot, 0, 0, 8, false);
    tell("errors", (long)vmmc_errors(du));
    tell("bind", bind_error(NULL, 1, handle, 0, 0));
    tell("import", import("going", NULL));
    tell("unimport", vmmc_unimport(handle));
    gone = 0;
    while ((handle = import("ending", &du)) < 0)
        sss_wait_word(&gone, 0, 1000000);
    out = bind(1, handle, VMMC_NOTIFY);
    out[0] = 1; /* of which it ends */
    sss_wait_word(&gone, 0, SSS_FOREVER);
    tell("gone", gone);
    tell("import", import("ending", NULL));
}

/* ---- leaving: the importer ends, with a transfer under way ---- */
static void leaving_server(void)
{
    volatile uint64_t *in = memory(16);

    export("left", in, 16, VMMC_SINGLE);
    sss_ready();
    until_counted(&imported, 1);
    until_counted(&imported, 2);
    tell("last word", (long)in[16 * WORDS - 1]);
    until_counted(&imported, 3);
}

static void leaving_child(void)
{
    volatile uint64_t *source = memory(16), *du;
    int handle = import("left", &du), slot = vmmc_source(handle, (void *)source, 16);

    bind(4, handle, 0);
    source[16 * WORDS - 1] = 77;
    vmmc_send(du, (unsigned)slot, 0, 0, 16 * VMMC_PAGE, false);
}

static void leaving_client(void)
{
    tell("child", child("leaving-child", NULL));
    tell("still full", import("left", NULL));
    sss_wait_word(&gone, 0, 5000000); /* 2.85 ms at 23 MB/s */
    tell("free", import("left", NULL) >= 0);
}

/* ---- limits: what is used up is refused, and comes back ---- */
static void limits_server(void)
{
    export("limits", memory(VMMC_EXPORT_PAGES), VMMC_EXPORT_PAGES, 0);
    sss_ready();
    sss_wait_word(&gone, 0, SSS_FOREVER);
}

/* Pages that a task can get. */
static long free_pages(void)
{
    const uint64_t place = 0x100000000ull;
    long count = 0;

    while (sss_map((void *)(place + (uint64_t)count * VMMC_PAGE), VMMC_PAGE, SSS_READ) != NULL)
        count++;
    sss_unmap((void *)place, (size_t)count * VMMC_PAGE);
    return count;
}

static void limits_child(void)
{
    volatile uint64_t *own = memory(1), *du;
    long exports = 0, imports = 0, bound = 0, sources = 0;
    char name[VMMC_NAME];
    int last = -1, error;

    for (error = 0; error >= 0; exports++) {
        snprintf(name, sizeof(name), "limits.%ld", exports);
        error = export(name, own, 1, 0);
    }
    tell("exports", exports - 1);
    tell("one more", error);
    for (; (error = import("limits", &du)) >= 0; imports++)
        last = error;
    tell("imports", imports);
    tell("one more", error);
    while ((error = (int)bind_error(NULL, VMMC_EXPORT_PAGES / 2, last, 0, 0)) == 0)
        bound += VMMC_EXPORT_PAGES / 2;
    tell("bound", bound);
    tell("one more", error);
    for (; (error = vmmc_source(last, (void *)own, 1)) >= 0; sources++)
        ;
    tell("sources", sources);
    tell("one more", error);
}

static void limits_client(void)
{
    long before;

    child("limits-child", NULL);
    before = free_pages();
    child("limits-child", NULL);
    tell("pages lost", before - free_pages());
}

/* ---- isolation: what belongs to another task, or to nobody ---- */
static void isolation_server(void)
{
    export("isolated", memory(2), 2, 0);
    sss_ready();
    sss_wait_word(&gone, 0, SSS_FOREVER);
}

static void touch(void)
{
    *(volatile uint64_t *)address = 1;
}

static void beyond(void)
{
    bind(2, import("isolated", NULL), 0)[2 * WORDS] = 1;
}

static void unbound(void)
{
    volatile uint64_t *out = bind(2, import("isolated", NULL), 0);

    vmmc_unbind((void *)out, 1);
    out[WORDS] = 1;
    out[0] = 1;
}

static void unimported(void)
{
    int handle = import("isolated", NULL);
    volatile uint64_t *out = bind(1, handle, 0);

    vmmc_unimport(handle);
    out[0] = 1;
}

static void untransferred(void)
{
    volatile uint64_t *du;

    vmmc_unimport(import("isolated", &du));
    du[0] = 1;
}

static void foreign(void)
{
    tell("unexport", vmmc_unexport(0));
    tell("unimport", vmmc_unimport(0));
    tell("source", vmmc_source(0, (void *)memory(1), 1));
    tell("bind", bind_error(NULL, 1, 0, 0, 0));
    tell("unbind", vmmc_unbind((void *)address, 1));
}

/* A page of the adapter is nothing else's: it cannot be given to a system call. */
static void own_pages(volatile uint64_t *out)
{
    struct sss_wait wait = {.address = (const volatile uint32_t *)out};

    tell("unmap", sss_unmap((void *)out, VMMC_PAGE));
    tell("protect", sss_protect((void *)out, VMMC_PAGE, SSS_READ | SSS_EXECUTE));
    tell("share", sss_csm_share((void *)out, VMMC_PAGE));
    tell("wait", sss_wait(&wait, 1, 0));
    tell("log", sss_call(SSS_LOG, (uint64_t)out, 1, 0, 0, 0, 0));
    tell("export", export("x", out, 1, 0));
    tell("source", vmmc_source(0, (void *)out, 1));
}

static void isolation_client(void)
{
    volatile uint64_t *du, *out, *own = memory(1);
    int handle;

    export("own", own, 1, 0);
    handle = import("isolated", &du);
    out = bind(1, handle, 0);
    tell("foreign page for transfers", child("touch", du));
    tell("foreign bound page", child("touch", out));
    tell("foreign", child("foreign", out));
    own_pages(out);
    vmmc_unimport(handle);
    tell("beyond", child("beyond", NULL));
    tell("unbound", child("unbound", NULL));
    tell("no longer imported", child("unimported", NULL));
    tell("no transfers any more", child("untransferred", NULL));
    handle = import("isolated", &du);
    out = bind(2, handle, 0);
    out[0] = 1;
    vmmc_unimport(handle);
    handle = import("isolated", &du);
    out = bind(2, handle, 0);
    tell("what another has stored", (long)out[0]);
}

/* ---- random: calls with whatever arguments, by a task that is alone with them ---- */
enum { RANDOM_CALLS = 3000, PLACES = 8 };
static uint64_t random_state, places[PLACES];

static uint64_t below(uint64_t most)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 33) % most;
}

static uint64_t anywhere(void)
{
    return places[below(PLACES)] + (below(4) == 0 ? below(9) * 512 : 0);
}

static void random_server(void)
{
    export("random", memory(4), 4, 0);
    export("random.single", memory(1), 1, VMMC_SINGLE);
    sss_ready();
    sss_wait_word(&gone, 0, SSS_FOREVER);
}

static uint64_t export_something(void)
{
    static struct vmmc_export_setup setup;

    setup = export_setup(below(2) ? "some" : "other", (void *)anywhere(), (uint32_t)below(6));
    setup.flags = (uint32_t)below(3);
    setup.notified = (uint32_t *)(below(4) ? 0 : anywhere());
    return (uint64_t)&setup;
}

static uint64_t import_something(void)
{
    static struct vmmc_import_setup setup;

    setup = import_setup(below(3) ? "random" : below(2) ? "random.single" : "nothing");
    setup.timeout_ns = below(2) * TIMEOUT_NS;
    setup.gone = (uint32_t *)(below(4) ? 0 : anywhere());
    return (uint64_t)&setup;
}

static long random_call(void)
{
    long call = SSS_VMMC_EXPORT + (long)below(10);
    uint64_t a[5];

    for (unsigned i = 0; i < 5; i++)
        a[i] = below(3) ? below(6) : anywhere();
    if (call == SSS_VMMC_EXPORT && below(8) != 0)
        a[0] = export_something();
    if (call == SSS_VMMC_IMPORT && below(8) != 0)
        a[0] = import_something();
    if (call == SSS_VMMC_BIND)
        a[0] = below(2) ? 0 : anywhere();
    if (call == SSS_VMMC_UNBIND)
        a[0] = anywhere();
    if (call > SSS_VMMC_SOURCE) { /* memory, the task's program and stack excepted */
        a[0] = places[below(PLACES - 2)];
        a[1] = below(4) * VMMC_PAGE;
        call = call == SSS_VMMC_SOURCE + 1   ? SSS_MEMORY_UNMAP
               : call == SSS_VMMC_SOURCE + 2 ? SSS_MEMORY_PROTECT
                                             : SSS_CSM_SHARE;
    }
    return sss_call(call, a[0], a[1], a[2], a[3], a[4], 0);
}

static void random_child(void)
{
    volatile uint64_t *du;
    int handle = import("random", &du);
    const uint64_t fixed[PLACES] = {(uint64_t)memory(4), (uint64_t)bind(4, handle, 0),
                                    (uint64_t)du,        (uint64_t)memory(2),
                                    0xffff800000000000,  0,
                                    (uint64_t)&notified, SSS_TEXT};
    long well = 0;

    random_state = address;
    memcpy(places, fixed, sizeof(places));
    for (unsigned i = 0; i < RANDOM_CALLS; i++) {
        well += random_call() >= 0;
        sss_map((void *)(places[0] + i % 4 * VMMC_PAGE), VMMC_PAGE, SSS_READ | SSS_WRITE);
    }
    tell("went well", well);
}

static void random_client(void)
{
    long before;

    child("random-child", (void *)1);
    before = free_pages();
    for (uint64_t seed = 2; seed <= 6; seed++)
        tell("child", child("random-child", (void *)seed));
    sss_wait_word(&gone, 0, 1000000);
    tell("pages lost", before - free_pages());
    tell("single", import("random.single", NULL) >= 0);
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

/* ---- restart: the exporter's node crashes; then it is there again ---- */
static void restart_server(void)
{
    volatile uint64_t *in = memory(1);

    export("restarting", in, 1, VMMC_SINGLE);
    sss_ready();
    until_counted(&notified, 1);
    tell("stored", (long)in[0]);
    sss_wait_word(&notified, 1, SSS_FOREVER);
}

static void restart_client(void)
{
    volatile uint64_t *out;
    int handle;

    for (uint64_t life = 1; life <= 2; life++) {
        while ((handle = import("restarting", NULL)) < 0)
            sss_wait_word(&notified, 0, 1000000);
        gone = 0;
        out = bind(1, handle, VMMC_NOTIFY);
        out[0] = life;
        while (life == 1 && gone == 0) {
            out[1] = life; /* refused when it has crashed */
            sss_wait_word(&gone, 0, 1000000);
        }
        tell("gone", gone);
    }
}

/* ---- crash: the importer's node, with a transfer under way and something being combined ---- */
static void crash_server(void)
{
    volatile uint64_t *in = memory(16);

    export("crashed", in, 16, 0);
    sss_ready();
    until_counted(&imported, 2);
    tell("last word", (long)in[16 * WORDS - 1]);
    sss_wait_word(&gone, 0, SSS_FOREVER);
}

static void crash_client(void)
{
    volatile uint64_t *source = memory(16), *du;
    int handle = import("crashed", &du), slot = vmmc_source(handle, (void *)source, 16);

    tell("import", handle);
    source[16 * WORDS - 1] = 77;
    vmmc_send(du, (unsigned)slot, 0, 0, 16 * VMMC_PAGE, false);
    bind(4, handle, VMMC_COMBINED)[0] = 5;
    sss_ready();
    sss_wait_word(&gone, 0, SSS_FOREVER);
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

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"store-server", store_server},
    {"store-client", store_client},
    {"deliberate-server", deliberate_server},
    {"deliberate-client", deliberate_client},
    {"refusals-server", refusals_server},
    {"refusals-client", refusals_client},
    {"gone-server", gone_server},
    {"gone-client", gone_client},
    {"leaving-server", leaving_server},
    {"leaving-client", leaving_client},
    {"leaving-child", leaving_child},
    {"limits-server", limits_server},
    {"limits-client", limits_client},
    {"limits-child", limits_child},
    {"isolation-server", isolation_server},
    {"isolation-client", isolation_client},
    {"touch", touch},
    {"foreign", foreign},
    {"beyond", beyond},
    {"unbound", unbound},
    {"unimported", unimported},
    {"untransferred", untransferred},
    {"random-server", random_server},
    {"random-client", random_client},
    {"random-child", random_child},
    {"flood-server", flood_server},
    {"flood-client", flood_client},
    {"flood-child", flood_child},
    {"restart-server", restart_server},
    {"restart-client", restart_client},
    {"crash-server", crash_server},
    {"crash-client", crash_client},
    {"costs-server", costs_server},
    {"costs-client", costs_client},
};

int main(int argc, char **argv)
{
    struct json_value options, value;

    (void)argc;
    if (json_check(argv[1], strlen(argv[1]), &options) != NULL ||
        !json_field(&options, "case", &value))
        return 2;
    if (json_field(&options, "peer", &value))
        json_uint(&value, &peer);
    if (json_field(&options, "address", &value))
        json_uint(&value, &address);
    json_field(&options, "case", &value);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (json_is(&value, cases[i].name)) {
            case_name = cases[i].name;
            cases[i].run();
            return 0;
        }
    return 2;
}
