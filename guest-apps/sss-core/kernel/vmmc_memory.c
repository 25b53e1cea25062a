/* SPDX-License-Identifier: Apache-2.0 */
#include "vmmc_memory.h"

#include "memory.h"
#include "space.h"
#include "user.h"
#include "wait.h"

int vmmc_pin(struct vmmc_pages *pages, struct task *task, uint64_t address, uint64_t count,
             bool write)
{
    pages->count = 0;
    if (count > VMMC_EXPORT_PAGES || !space_range_valid(address, count * PAGE))
        return -SSS_EINVAL;
    while (pages->count < count) {
        void *page = space_pin_page(task, address + pages->count * PAGE, write);

        if (page == NULL) {
            vmmc_unpin(pages);
            return -SSS_EFAULT;
        }
        pages->list[pages->count++] = physical(page);
    }
    return 0;
}

void vmmc_unpin(struct vmmc_pages *pages)
{
    while (pages->count != 0)
        page_free(direct(pages->list[--pages->count]));
}

bool vmmc_word_valid(struct task *task, uint64_t address)
{
    int why;

    return address == 0 ||
           (address % sizeof(uint32_t) == 0 && task_page(task, address, true, &why) != NULL);
}

/* What the task has unmapped meanwhile is not written to. */
void vmmc_word_change(struct task *task, uint64_t address, enum vmmc_word_change change)
{
    uint32_t *word;
    int why;

    if (address == 0 || (word = task_page(task, address, true, &why)) == NULL)
        return;
    *word = change == VMMC_WORD_ONE ? 1 : *word + 1;
    task_memory_changed(task);
}
