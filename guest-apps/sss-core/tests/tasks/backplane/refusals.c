/* SPDX-License-Identifier: Apache-2.0 */
/* What may not be exported, imported and bound, and what there is no more of. */
#include <stdio.h>

#include "cases.h"

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
    tell("node 0", vmmc_import(&setup));
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

/* ---- limits: what is used up is refused, and comes back ---- */
static void limits_server(void)
{
    export("limits", memory(VMMC_EXPORT_PAGES), VMMC_EXPORT_PAGES, 0);
    sss_ready();
    sss_wait_word(&gone, 0, SSS_FOREVER);
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

const struct task_case refusals_cases[] = {
    {"refusals-server", refusals_server}, {"refusals-client", refusals_client},
    {"limits-server", limits_server},     {"limits-client", limits_client},
    {"limits-child", limits_child},       {NULL, NULL},
};
