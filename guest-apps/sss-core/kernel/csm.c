/* SPDX-License-Identifier: Apache-2.0 */
#include "csm.h"

#include <stddef.h>

#include "memory.h"
#include "runqueue.h"
#include "space.h"
#include "task.h"
#include "user.h"

enum { AREAS = 64 };

static struct area {
    const struct task *owner; /* NULL: free */
    uint64_t address, bytes;  /* in the owner's memory at the time of sharing */
    void **pages;             /* one reference each; the array is one page */
} areas[AREAS];
enum { AREA_BYTES = PAGE / sizeof(void *) * PAGE };

static struct task *sharing;

struct task *csm_tasks(void)
{
    return sharing;
}

static void note_sharing(struct task *task)
{
    if (task->csm)
        return;
    task->csm = true;
    task->next_sharing = sharing;
    sharing = task;
}

static void release(struct area *area, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes; done += PAGE)
        page_free(area->pages[done / PAGE]);
    page_free(area->pages);
    area->owner = NULL;
}

int csm_share(struct task *task, uint64_t address, uint64_t bytes)
{
    struct area *area = areas;
    int why;

    if (!space_range_valid(address, bytes) || bytes > AREA_BYTES)
        return -SSS_EINVAL;
    while (area < areas + AREAS && area->owner != NULL)
        area++;
    if (area == areas + AREAS)
        return -SSS_EAGAIN;
    area->pages = task->new_page();
    if (area->pages == NULL)
        return -SSS_ENOMEM;
    for (uint64_t done = 0; done < bytes; done += PAGE) {
        /* only what it may write can be shared */
        void *page = task_page(task, address + done, true, &why);

        if (page == NULL || !page_share(page)) {
            release(area, done);
            return page == NULL ? -SSS_EFAULT : -SSS_EAGAIN;
        }
        area->pages[done / PAGE] = page;
    }
    area->owner = task;
    area->address = address;
    area->bytes = bytes;
    note_sharing(task);
    return (int)(area - areas) + 1;
}

/* Whether `task` may map what `owner` shares: the same task, its creator, one that it has created,
 * or a sibling. */
static bool related(const struct task *task, const struct task *owner)
{
    return owner == task || owner->id == task->creator || owner->creator == task->id ||
           (owner->creator == task->creator && owner->creator != 0);
}

int csm_map(struct task *task, int id, uint64_t address, unsigned protection)
{
    const struct area *area = id >= 1 && id <= AREAS ? &areas[id - 1] : NULL;

    if (area == NULL || area->owner == NULL)
        return -SSS_ENOENT;
    if (!related(task, area->owner) && !related(task_current(), area->owner))
        return -SSS_EPERM;
    if (!space_range_valid(address, area->bytes))
        return -SSS_EINVAL;
    for (uint64_t done = 0; done < area->bytes; done += PAGE) {
        void *page = area->pages[done / PAGE];
        bool shared = page_share(page);
        int error = shared ? space_map_shared(task, address + done, page, protection) : -SSS_EAGAIN;

        if (error == 0)
            continue;
        if (shared)
            page_free(page);
        if (done != 0)
            space_unmap(task, address, done);
        return error;
    }
    note_sharing(task);
    return 0;
}

void csm_unmapped(const struct task *task, uint64_t address, uint64_t bytes)
{
    for (struct area *area = areas; area < areas + AREAS; area++)
        if (area->owner == task && area->address >= address && area->address - address < bytes)
            release(area, area->bytes);
}

void csm_task_ended(struct task *task)
{
    struct task **place = &sharing;

    while (*place != NULL && *place != task)
        place = &(*place)->next_sharing;
    if (*place != NULL)
        *place = task->next_sharing;
    for (struct area *area = areas; area < areas + AREAS; area++)
        if (area->owner == task)
            release(area, area->bytes);
}
