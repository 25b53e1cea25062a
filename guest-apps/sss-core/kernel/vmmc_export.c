/* SPDX-License-Identifier: Apache-2.0 */
#include "vmmc_export.h"

#include <string.h>

#include "memory.h"
#include "panic.h"
#include "runqueue.h"
#include "task.h"
#include "user.h"
#include "vmmc_device.h"
#include "vmmc_memory.h"

struct export
{
    struct vmmc_pages pages;
    struct task *task;
    uint32_t generation;
    uint16_t use;
    bool single;
    uint16_t importer;  /* of one that is single; 0: it is free */
    uint64_t importers; /* bit n - 1: node n has imported it, and learns of its end */
    uint64_t key, allow;
    uint64_t notified, imported, wanted; /* words of the task */
};

/* A name stays until its place is used again: who asks for it learns that the export is gone. */
static struct {
    struct export *at[VMMC_EXPORTS];
    struct ending {
        uint64_t importers; /* that do not know yet that it is gone */
        uint32_t generation;
    } ending[VMMC_EXPORTS];
    uint64_t names[VMMC_EXPORTS][VMMC_NAME / sizeof(uint64_t)];
} * exports;
static unsigned used;       /* places that have ever been used */
static uint32_t generation; /* the last: none comes twice, whatever the node has gone through */

void vmmc_exports_init(void)
{
    exports = pages_alloc((sizeof(*exports) + PAGE - 1) / PAGE);
    if (exports == NULL)
        panic("no memory for the backplane's exports");
}

static uint64_t bit(uint16_t node)
{
    return 1ull << (node - 1);
}

static bool is_named(unsigned id, const uint64_t name[4])
{
    return exports->names[id][0] == name[0] && memcmp(exports->names[id], name, VMMC_NAME) == 0;
}

/* ---- for tasks ---- */

/* Exports have one name only if all are single and of one task. */
static bool name_is_free(const struct task *task, const uint64_t name[4], bool single)
{
    for (unsigned id = 0; id < used; id++) {
        const struct export *other = exports->at[id];

        if (other != NULL && is_named(id, name) &&
            (!single || !other->single || other->task != task))
            return false;
    }
    return true;
}

static int check(struct task *task, const struct vmmc_export_setup *setup)
{
    if ((setup->flags & ~(uint32_t)VMMC_SINGLE) != 0 || setup->use > UINT16_MAX ||
        setup->name[0] == '\0')
        return -SSS_EINVAL;
    if (!vmmc_word_valid(task, (uint64_t)setup->notified) ||
        !vmmc_word_valid(task, (uint64_t)setup->imported) ||
        !vmmc_word_valid(task, (uint64_t)setup->wanted))
        return -SSS_EFAULT;
    return 0;
}

static int open(unsigned id, struct task *task, const struct vmmc_export_setup *setup)
{
    struct export *export = page_alloc_user();
    int error;

    _Static_assert(sizeof(*export) <= PAGE, "an export is one page");
    if (export == NULL)
        return -SSS_ENOMEM;
    error = vmmc_pin(&export->pages, task, (uint64_t)setup->address, setup->pages, true);
    if (error != 0) {
        page_free(export);
        return error;
    }
    if (++generation == 0) /* which means that there is none */
        generation = 1;
    export->task = task;
    export->generation = generation;
    export->use = (uint16_t)setup->use;
    export->single = (setup->flags & VMMC_SINGLE) != 0;
    export->key = setup->key;
    export->allow = setup->allow;
    export->notified = (uint64_t)setup->notified;
    export->imported = (uint64_t)setup->imported;
    export->wanted = (uint64_t)setup->wanted;
    exports->at[id] = export;
    vmmc_show_export(id, generation, export->pages.count, export->pages.list);
    return (int)id;
}

long vmmc_export_open(uint64_t setup_address)
{
    struct task *task = task_current();
    struct vmmc_export_setup setup;
    uint64_t name[4] = {0};
    unsigned id = 0;
    int result;

    if (!user_read(&setup, setup_address, sizeof(setup)))
        return -SSS_EFAULT;
    result = check(task, &setup);
    if (result != 0)
        return result;
    strncpy((char *)name, setup.name, VMMC_NAME - 1);
    if (!name_is_free(task, name, (setup.flags & VMMC_SINGLE) != 0))
        return -SSS_EEXIST;
    while (id < VMMC_EXPORTS && (exports->at[id] != NULL || exports->ending[id].importers != 0))
        id++;
    if (id == VMMC_EXPORTS)
        return -SSS_EAGAIN;
    result = open(id, task, &setup);
    if (result < 0)
        return result;
    memcpy(exports->names[id], name, sizeof(name));
    if (id == used)
        used++;
    return result;
}

/* Packets that are due already have been written; from now on they are refused. */
static void close(unsigned id)
{
    struct export *export = exports->at[id];

    vmmc_hide_export(id);
    exports->at[id] = NULL;
    vmmc_unpin(&export->pages);
    page_free(export);
}

/* As many as the line takes. */
static void tell_importers(unsigned id)
{
    struct ending *ending = &exports->ending[id];
    const struct vmmc_message gone = {
        .type = VMW_GONE, .export = id, .generation = ending->generation};

    for (uint16_t node = 1; node <= SSS_NODES; node++)
        if ((ending->importers & bit(node)) != 0 && !vmmc_line_full()) {
            ending->importers &= ~bit(node);
            vmmc_send_message(node, &gone);
        }
}

void vmmc_exports_tell(void)
{
    for (unsigned id = 0; id < used; id++)
        if (exports->ending[id].importers != 0)
            tell_importers(id);
}

static void close_and_tell(unsigned id)
{
    exports->ending[id].importers = exports->at[id]->importers;
    exports->ending[id].generation = exports->at[id]->generation;
    close(id);
    tell_importers(id);
}

long vmmc_export_close(struct task *task, uint64_t id)
{
    if (id >= used || exports->at[id] == NULL || exports->at[id]->task != task)
        return -SSS_ENOENT;
    close_and_tell((unsigned)id);
    return 0;
}

void vmmc_exports_of_ended(const struct task *task)
{
    for (unsigned id = 0; id < used; id++)
        if (exports->at[id] != NULL && exports->at[id]->task == task)
            close_and_tell(id);
}

void vmmc_exports_forget(void)
{
    for (unsigned id = 0; id < used; id++) {
        exports->ending[id].importers = 0;
        if (exports->at[id] != NULL)
            close(id);
    }
}

/* ---- for other nodes ---- */

static unsigned judge(const struct export *export, uint16_t from, uint64_t key)
{
    if (export == NULL)
        return VMMC_GONE;
    if (export->key != key)
        return VMMC_NO_KEY;
    if ((export->allow & bit(from)) == 0)
        return VMMC_NO_NODE;
    return export->single && export->importer != 0 ? VMMC_FULL : 0;
}

/* -> 0 with the export's id, or why not and which of that name says so: what is there says more
 * than what was there once. */
static unsigned find(uint16_t from, const struct vmmc_message *asked, uint32_t *found)
{
    unsigned why = VMMC_NO_NAME;

    for (uint32_t id = 0; id < used; id++) {
        unsigned refusal;

        if (!is_named(id, asked->name))
            continue;
        refusal = judge(exports->at[id], from, asked->key);
        if (refusal == 0 || why == VMMC_NO_NAME || why == VMMC_GONE ||
            (refusal != VMMC_GONE && refusal > why)) {
            why = refusal;
            *found = id;
        }
        if (refusal == 0)
            break;
    }
    return why;
}

void vmmc_export_asked(uint16_t from, const struct vmmc_message *asked)
{
    struct vmmc_message answer = {.type = VMW_ANSWER, .request = asked->request};
    struct export *export;
    uint32_t id = 0;

    answer.status = find(from, asked, &id);
    export = exports->at[id];
    if (answer.status == 0) {
        answer.export = id;
        answer.generation = export->generation;
        answer.pages = (uint16_t) export->pages.count;
        answer.use = export->use;
        export->importers |= bit(from);
        export->importer = from;
    }
    vmmc_send_message(from, &answer);
    if (answer.status == 0)
        vmmc_word_change(export->task, export->imported, VMMC_WORD_COUNT);
    else if (answer.status == VMMC_FULL)
        vmmc_word_change(export->task, export->wanted, VMMC_WORD_COUNT);
}

static struct export *live(uint32_t id, uint32_t of_generation)
{
    struct export *export = id < used ? exports->at[id] : NULL;

    return export == NULL || export->generation != of_generation ? NULL : export;
}

/* A node that has imported it more than once still learns of its end. */
void vmmc_export_left(uint16_t from, const struct vmmc_message *message)
{
    struct export *export = live(message->export, message->generation);

    if (export == NULL || (export->importers & bit(from)) == 0)
        return;
    if (export->single) {
        export->importers &= ~bit(from);
        export->importer = 0;
    }
    vmmc_word_change(export->task, export->imported, VMMC_WORD_COUNT);
}

void vmmc_export_notified(uint32_t id, uint32_t of_generation)
{
    const struct export *export = live(id, of_generation);

    if (export != NULL)
        vmmc_word_change(export->task, export->notified, VMMC_WORD_COUNT);
}
