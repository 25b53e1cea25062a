/* SPDX-License-Identifier: Apache-2.0 */
/* How exports and imports end, and those who have them. */
#include "cases.h"

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
    tell("errors", (long)vmmc_errors(du)); /* the page is that of the import before */
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

const struct task_case ends_cases[] = {
    {"gone-server", gone_server},       {"gone-client", gone_client},
    {"leaving-server", leaving_server}, {"leaving-client", leaving_client},
    {"leaving-child", leaving_child},   {"restart-server", restart_server},
    {"restart-client", restart_client}, {"crash-server", crash_server},
    {"crash-client", crash_client},     {NULL, NULL},
};
