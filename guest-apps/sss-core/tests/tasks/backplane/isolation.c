/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to another task, or to none. */
#include <string.h>

#include "cases.h"

/* ---- isolation: what belongs to another task, or to none ---- */
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

const struct task_case isolation_cases[] = {
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
    {NULL, NULL},
};
