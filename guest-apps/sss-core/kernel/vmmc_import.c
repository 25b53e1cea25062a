/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An import whose transfers have not been read to the end stays until they are: its sources must
 * not become other memory, and its exporter not think it is over. So does one whose exporter cannot
 * be notified yet, for the adapter is full: a task that ends may have more of them than it takes.
 */
#include "vmmc_import.h"

#include <string.h>

#include "memory.h"
#include "panic.h"
#include "runqueue.h"
#include "space.h"
#include "task.h"
#include "timer.h"
#include "user.h"
#include "vmmc_bind.h"
#include "vmmc_device.h"
#include "vmmc_memory.h"

#define CLOSING_NS 50000ull /* between two looks at transfers */

enum state { ASKING, ANSWERED, TIMED_OUT, OPEN, CLOSING };

struct import {
    struct task *task;
    enum state state;
    bool gone;    /* there is no such export any more */
    bool untold;  /* closing: the exporter does not know */
    uint16_t use; /* of the answer, as what follows */
    uint32_t request, status, pages;
    struct vmmc_target target;
    uint64_t gone_word, deliberate; /* addresses in the task */
    struct timer timer;
    struct wait_queue asker;
    unsigned source_count;
    struct vmmc_pages *sources[VMMC_SOURCES];
};

static struct import **imports;
static unsigned used; /* places that have ever been used */
static uint32_t last_request;
static struct timer closing;

static void look_at_closing(struct timer *timer);

void vmmc_imports_init(void)
{
    imports = pages_alloc((VMMC_EXPORTS * sizeof(*imports) + PAGE - 1) / PAGE);
    if (imports == NULL)
        panic("no memory for the backplane's imports");
    closing.expired = look_at_closing;
}

static struct import *open_import(const struct task *task, uint64_t handle)
{
    struct import *import = handle < used ? imports[handle] : NULL;

    return import == NULL || import->task != task || import->state != OPEN ? NULL : import;
}

/* ---- the end ---- */

static void tell_unimport(uint16_t node, uint32_t export_id, uint32_t generation)
{
    const struct vmmc_message message = {
        .type = VMW_UNIMPORT, .export = export_id, .generation = generation};

    vmmc_send_message(node, &message);
}

/* -> false: look again, its transfers are not over. Else it is, or will be when the line takes
 * more.
 */
static bool settle(unsigned id)
{
    struct import *import = imports[id];
    bool tell = import->untold && !import->gone;

    if (vmmc_transfers_pending(id) != 0)
        return false;
    if (tell && vmmc_line_full())
        return true;
    if (tell)
        tell_unimport(import->target.node, import->target.export_id, import->target.generation);
    for (unsigned slot = 0; slot < import->source_count; slot++) {
        vmmc_hide_source(id, slot);
        vmmc_unpin(import->sources[slot]);
        page_free(import->sources[slot]);
    }
    imports[id] = NULL;
    page_free(import);
    return true;
}

void vmmc_imports_settle(void)
{
    bool again = false;

    for (unsigned id = 0; id < used; id++)
        if (imports[id] != NULL && imports[id]->state == CLOSING && !settle(id))
            again = true;
    if (again && !closing.armed)
        timer_set(&closing, now_ns() + CLOSING_NS);
}

static void look_at_closing(struct timer *timer)
{
    (void)timer;
    vmmc_imports_settle();
}

static void close(unsigned id, bool tell)
{
    struct import *import = imports[id];

    vmmc_hide_import(id);
    vmmc_bindings_free(id);
    if (import->deliberate != 0)
        space_unmap_device(import->task, import->deliberate);
    timer_cancel(&import->timer);
    thread_wake_all(&import->asker); /* it ends before it runs */
    import->untold = tell && (import->state == OPEN || import->state == ANSWERED) &&
                     import->status == 0;
    import->state = CLOSING;
    import->task = NULL;
    if (!settle(id) && !closing.armed)
        timer_set(&closing, now_ns() + CLOSING_NS);
}

long vmmc_import_close(struct task *task, uint64_t handle)
{
    if (open_import(task, handle) == NULL)
        return -SSS_ENOENT;
    close((unsigned)handle, true);
    return 0;
}

void vmmc_imports_of_ended(const struct task *task)
{
    for (unsigned id = 0; id < used; id++)
        if (imports[id] != NULL && imports[id]->task == task)
            close(id, true);
}

void vmmc_imports_forget(void)
{
    for (unsigned id = 0; id < used; id++)
        if (imports[id] != NULL && imports[id]->state != CLOSING)
            close(id, false);
}

/* ---- asking ---- */

static void asking_expired(struct timer *timer)
{
    struct import *import = timer->context;

    if (import->state == ASKING)
        import->state = TIMED_OUT;
    thread_wake_all(&import->asker);
}

/* Maps the page for deliberate updates, and says what has been imported. */
static int hand_over(unsigned id, uint64_t setup_address)
{
    struct import *import = imports[id];
    struct vmmc_import_setup results = {.pages = import->pages, .use = import->use};
    uint64_t address = space_next_address(import->task, PAGE);
    int error = address == 0 ? -SSS_ENOMEM
                             : space_map_device(import->task, address, vmmc_deliberate_page(id));
    enum { RESULTS_AT = offsetof(struct vmmc_import_setup, pages) };

    if (error != 0)
        return error;
    import->deliberate = address;
    results.du = (volatile uint64_t *)address;
    if (!user_write(setup_address + RESULTS_AT, (const char *)&results + RESULTS_AT,
                    sizeof(results) - RESULTS_AT))
        return -SSS_EFAULT;
    vmmc_show_import(id, &import->target, import->pages);
    import->state = OPEN;
    return 0;
}

static long answer_is_here(const uint64_t arguments[6])
{
    unsigned id = (unsigned)*call_progress();
    const struct import *import = imports[id];
    long result;

    if (import->state == TIMED_OUT)
        result = -SSS_ETIMEDOUT;
    else if (import->status != 0)
        result = -(long)(VMMC_REFUSED + import->status);
    else if (import->gone)
        result = -(VMMC_REFUSED + VMMC_GONE);
    else
        result = hand_over(id, arguments[0]);
    if (result == 0)
        return id;
    close(id, true);
    return result;
}

static void ask(struct import *import, const struct vmmc_import_setup *setup)
{
    struct vmmc_message message = {
        .type = VMW_IMPORT, .request = ++last_request, .key = setup->key};

    import->request = message.request;
    strncpy((char *)message.name, setup->name, VMMC_NAME - 1);
    vmmc_send_message(import->target.node, &message);
    if (setup->timeout_ns == UINT64_MAX)
        return;
    import->timer.expired = asking_expired;
    import->timer.context = import;
    timer_set(&import->timer, setup->timeout_ns < UINT64_MAX - now_ns()
                                  ? now_ns() + setup->timeout_ns
                                  : UINT64_MAX);
}

long vmmc_import_open(const uint64_t arguments[6])
{
    struct vmmc_import_setup setup;
    struct import *import;
    unsigned id = 0;

    if (!user_read(&setup, arguments[0], sizeof(setup)))
        return -SSS_EFAULT;
    if (setup.node < 1 || setup.node > SSS_NODES || setup.node == vmmc_device_node() ||
        setup.name[0] == '\0')
        return -SSS_EINVAL;
    if (!vmmc_word_valid(task_current(), (uint64_t)setup.gone))
        return -SSS_EFAULT;
    while (id < VMMC_EXPORTS && imports[id] != NULL)
        id++;
    if (id == VMMC_EXPORTS)
        return -SSS_EAGAIN;
    import = page_alloc_user();
    _Static_assert(sizeof(*import) <= PAGE, "an import is one page");
    if (import == NULL)
        return -SSS_ENOMEM;
    import->task = task_current();
    import->target.node = setup.node;
    import->gone_word = (uint64_t)setup.gone;
    imports[id] = import;
    if (id == used)
        used++;
    ask(import, &setup);
    *call_progress() = id;
    thread_sleep(&import->asker, answer_is_here);
    return TASK_AGAIN;
}

/* No task waits for it any more, or none has asked: an import that was granted is over at once. */
static void refuse_answer(uint16_t from, const struct vmmc_message *answer)
{
    if (answer->status == 0)
        tell_unimport(from, answer->export, answer->generation);
}

static bool answer_makes_sense(const struct vmmc_message *answer)
{
    if (answer->status != 0)
        return answer->status <= VMMC_GONE;
    return answer->export < VMMC_EXPORTS && answer->generation != 0 && answer->pages >= 1 &&
           answer->pages <= VMMC_EXPORT_PAGES;
}

void vmmc_import_answered(uint16_t from, const struct vmmc_message *answer)
{
    struct import *import = NULL;

    if (!answer_makes_sense(answer))
        return;
    for (unsigned id = 0; id < used && import == NULL; id++)
        if (imports[id] != NULL && imports[id]->state == ASKING &&
            imports[id]->request == answer->request && imports[id]->target.node == from)
            import = imports[id];
    if (import == NULL) {
        refuse_answer(from, answer);
        return;
    }
    timer_cancel(&import->timer);
    import->state = ANSWERED;
    import->status = answer->status;
    import->pages = answer->pages;
    import->use = answer->use;
    import->target.export_id = (uint8_t)answer->export;
    import->target.generation = answer->generation;
    thread_wake_all(&import->asker);
}

/* ---- an open import ---- */

long vmmc_import_bind(const uint64_t arguments[6])
{
    const struct import *import = open_import(task_current(), arguments[2]);
    uint64_t pages = arguments[1], first = arguments[3], flags = arguments[4];

    if (import == NULL)
        return -SSS_ENOENT;
    if (pages == 0 || pages > import->pages || first > import->pages - pages ||
        (flags & ~(uint64_t)(VMMC_COMBINED | VMMC_NOTIFY)) != 0)
        return -SSS_EINVAL;
    if (import->gone)
        return -(VMMC_REFUSED + VMMC_GONE);
    return vmmc_bind_pages(task_current(), arguments[0], pages, (unsigned)arguments[2],
                           &import->target, (uint32_t)first,
                           (flags & VMMC_COMBINED ? TARGET_COMBINE : 0u) |
                               (flags & VMMC_NOTIFY ? TARGET_NOTIFY : 0u));
}

long vmmc_import_source(const uint64_t arguments[6])
{
    struct import *import = open_import(task_current(), arguments[0]);
    struct vmmc_pages *pages;
    int error;

    if (import == NULL)
        return -SSS_ENOENT;
    if (import->source_count == VMMC_SOURCES)
        return -SSS_EAGAIN;
    pages = page_alloc_user();
    if (pages == NULL)
        return -SSS_ENOMEM;
    error = vmmc_pin(pages, import->task, arguments[1], arguments[2], false);
    if (error != 0) {
        page_free(pages);
        return error;
    }
    import->sources[import->source_count] = pages;
    vmmc_show_source((unsigned)arguments[0], import->source_count, pages->list, pages->count);
    return import->source_count++;
}

void vmmc_import_gone(uint16_t from, uint32_t export_id, uint32_t generation)
{
    for (unsigned id = 0; id < used; id++) {
        struct import *import = imports[id];

        if (import == NULL || import->gone || import->target.node != from ||
            import->target.export_id != export_id || import->target.generation != generation ||
            generation == 0)
            continue;
        import->gone = true;
        vmmc_hide_import(id);
        vmmc_bindings_disable(id);
        if (import->state == OPEN)
            vmmc_word_change(import->task, import->gone_word, VMMC_WORD_ONE);
    }
}
