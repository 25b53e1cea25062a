/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A world around the kernel's part in a backplane: memory, one task with one thread, timers, and an
 * adapter that takes everything. For one file. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "runqueue.h"
#include "space.h"
#include "sss/vmmc.h"
#include "task.h"
#include "user.h"
#include "vmmc.h"
#include "vmmc_device.h"
#include "wait.h"

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { NODE = 1 };

/* ---- the kernel around it ---- */
struct runqueue runqueue;
bool schedule_needed;
static struct task task;
static struct thread thread;
static void (*ended)(struct task *task);
static bool (*fault)(uint64_t address);
static long pages_in_use, pinned, table_writes;
static struct {
    uint32_t notified, imported, wanted, gone;
} words;
static struct vmmc_message sent;
static unsigned sent_count;
static uint64_t pending; /* of every import */
enum { TIMERS = 4 };     /* of one that is asked for, and of those that are closing */
static struct timer *timers[TIMERS];
static uint64_t word_changes;
static unsigned line_takes = UINT32_MAX; /* messages until it is full */
static int bound_page = -1;              /* what every address of a task is; -1: memory */

void *page_alloc_user(void)
{
    pages_in_use++;
    return calloc(1, PAGE);
}

void page_free(void *page)
{
    if ((uint64_t)page - DIRECT_MAP == 0x5000) { /* direct() of what space_pin_page gave */
        pinned--;
        return;
    }
    pages_in_use--;
    free(page);
}

void *pages_alloc(size_t count)
{
    return calloc(count, PAGE);
}

void panic(const char *format, ...);
void panic(const char *format, ...)
{
    puts(format);
    abort();
}

void *space_pin_page(struct task *of, uint64_t address, bool write)
{
    (void)of;
    (void)address;
    (void)write;
    pinned++;
    return (void *)(DIRECT_MAP + 0x5000);
}

bool space_range_valid(uint64_t address, uint64_t bytes)
{
    return address % PAGE == 0 && bytes != 0;
}

uint64_t space_next_address(struct task *of, uint64_t bytes)
{
    of->heap_next += bytes;
    return of->heap_next;
}

int space_map_device(struct task *of, uint64_t address, uint64_t page)
{
    (void)of;
    (void)address;
    (void)page;
    return 0;
}

void space_unmap_device(struct task *of, uint64_t address)
{
    (void)of;
    (void)address;
}

uint64_t space_device_page(struct task *of, uint64_t address)
{
    (void)of;
    (void)address;
    return 0;
}

void space_device_writable(struct task *of, uint64_t address, bool writable)
{
    (void)of;
    (void)address;
    (void)writable;
}

bool user_read(void *to, uint64_t from, size_t length)
{
    memcpy(to, (const void *)from, length);
    return true;
}

bool user_write(uint64_t to, const void *from, size_t length)
{
    memcpy((void *)to, from, length);
    return true;
}

void *task_page(struct task *of, uint64_t address, bool write, int *why)
{
    (void)of;
    (void)write;
    (void)why;
    return (void *)address;
}

void task_memory_changed(struct task *of)
{
    CHECK(of == &task);
    word_changes++;
}

void thread_sleep(struct wait_queue *queue, call_function again)
{
    queue->first = &thread;
    thread.context->again = again;
    thread.state = THREAD_ASLEEP;
}

void thread_wake_all(struct wait_queue *queue)
{
    if (queue->first != NULL)
        thread.state = THREAD_RUNNABLE;
    queue->first = NULL;
}

uint64_t now_ns(void)
{
    return 0;
}

void timer_cancel(struct timer *timer)
{
    timer->armed = false;
    for (unsigned i = 0; i < TIMERS; i++)
        if (timers[i] == timer)
            timers[i] = NULL;
}

void timer_set(struct timer *timer, uint64_t due_ns)
{
    unsigned place = 0;

    (void)due_ns;
    timer_cancel(timer);
    while (timers[place] != NULL)
        CHECK(++place < TIMERS);
    timers[place] = timer;
    timer->armed = true;
}

static void let_time_pass(void)
{
    for (unsigned i = 0; i < TIMERS; i++) {
        struct timer *timer = timers[i];

        if (timer == NULL)
            continue;
        timer_cancel(timer);
        timer->expired(timer);
    }
}

void task_on_end(void (*hook)(struct task *of))
{
    ended = hook;
}

void trap_on_page_fault(bool (*hook)(uint64_t address))
{
    fault = hook;
}

/* ---- the adapter ---- */
bool vmmc_device_find(void)
{
    return true;
}

bool vmmc_device_begin(void)
{
    return true;
}

bool vmmc_device_works(void)
{
    return true;
}

uint16_t vmmc_device_node(void)
{
    return NODE;
}

uint64_t vmmc_automatic_page(unsigned page)
{
    return page * PAGE;
}

int vmmc_automatic_number(uint64_t physical_page)
{
    (void)physical_page;
    return bound_page;
}

uint64_t vmmc_deliberate_page(unsigned import)
{
    return import * PAGE;
}

void vmmc_clear_page(unsigned page)
{
    (void)page;
}

void vmmc_show_export(unsigned id, uint32_t generation, uint32_t pages, const uint64_t *list)
{
    CHECK(id < VMMC_EXPORTS && generation != 0 && pages != 0 && list != NULL);
    table_writes++;
}

void vmmc_hide_export(unsigned id)
{
    CHECK(id < VMMC_EXPORTS);
    table_writes++;
}

void vmmc_show_binding(unsigned page, const struct vmmc_target *to, unsigned flags, uint32_t first)
{
    CHECK(page < VMMC_BOUND_PAGES && to->node != 0 && flags <= 6 && first < VMMC_EXPORT_PAGES);
    table_writes++;
}

void vmmc_hide_binding(unsigned page)
{
    CHECK(page < VMMC_BOUND_PAGES);
    table_writes++;
}

void vmmc_show_import(unsigned import, const struct vmmc_target *to, uint32_t pages)
{
    CHECK(import < VMMC_EXPORTS && to->generation != 0 && pages != 0 && pages <= VMMC_EXPORT_PAGES);
    table_writes++;
}

void vmmc_hide_import(unsigned import)
{
    CHECK(import < VMMC_EXPORTS);
    table_writes++;
}

void vmmc_show_source(unsigned import, unsigned slot, const uint64_t *list, uint32_t pages)
{
    CHECK(import < VMMC_EXPORTS && slot < VMMC_SOURCES && list != NULL && pages != 0);
}

void vmmc_hide_source(unsigned import, unsigned slot)
{
    CHECK(import < VMMC_EXPORTS && slot < VMMC_SOURCES);
}

uint64_t vmmc_transfers_pending(unsigned import)
{
    (void)import;
    return pending;
}

void vmmc_flush(void)
{
}

bool vmmc_line_full(void)
{
    return line_takes == 0;
}

void vmmc_send_message(uint16_t to, const struct vmmc_message *message)
{
    CHECK(to >= 1 && to <= SSS_NODES && line_takes != 0);
    line_takes -= line_takes != UINT32_MAX;
    sent = *message;
    sent_count++;
}
