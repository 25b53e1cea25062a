/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of other nodes may say what they like: nothing comes of it that was not asked for,
 * nothing is let in without its key, and nothing is lost when all has ended. The adapter, memory
 * and tasks are this file's.
 */
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

enum { NODE = 1, OTHER = 2, KEY = 4711, EXPORTS = 6, IMPORTS = 6, FRAME = 58 + 64 };

/* ---- the kernel around it ---- */
struct runqueue runqueue;
bool schedule_needed;
static struct task task;
static struct thread thread;
static void (*ended)(struct task *task);
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
    (void)hook;
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
    return -1;
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

/* ---- what the other node says ---- */
static bool deliver(const struct vmmc_packet *packet, const struct vmmc_message *message,
                    size_t length)
{
    uint8_t frame[FRAME] = "\xff\xff\xff\xff\xff\xff\x02\x53\x48\x52\x00\x00\x88\xb5sundial-vmmc";
    uint8_t *exact = malloc(length);
    bool taken;

    memcpy(frame + 26, packet, sizeof(*packet));
    if (message != NULL)
        memcpy(frame + 58, message, sizeof(*message));
    memcpy(exact, frame, length);
    taken = vmmc_received(exact, length);
    free(exact);
    return taken;
}

static void say(const struct vmmc_message *message)
{
    const struct vmmc_packet packet = {.version = 1,
                                       .kind = PACKET_CONTROL,
                                       .from = OTHER,
                                       .to = NODE,
                                       .length = sizeof(*message)};

    CHECK(deliver(&packet, message, FRAME));
}

static void name_it(struct vmmc_message *message, unsigned number)
{
    memset(message->name, 0, sizeof(message->name));
    snprintf((char *)message->name, VMMC_NAME, "export.%u", number);
}

/* ---- this node ---- */
static long export(unsigned number, unsigned flags)
{
    struct vmmc_export_setup setup = {.address = (void *)0x10000,
                                      .pages = 2,
                                      .flags = flags,
                                      .key = KEY,
                                      .allow = UINT64_MAX,
                                      .notified = &words.notified,
                                      .imported = &words.imported,
                                      .wanted = &words.wanted};
    const uint64_t arguments[6] = {(uint64_t)&setup};

    snprintf(setup.name, VMMC_NAME, "export.%u", number);
    return vmmc_call(SSS_VMMC_EXPORT, arguments);
}

static struct vmmc_import_setup asking;
static uint32_t request; /* the last */

/* The import has been asked for, and not been answered yet. */
static void ask(void)
{
    uint64_t arguments[6] = {(uint64_t)&asking};

    asking = (struct vmmc_import_setup){
        .node = OTHER, .key = KEY, .name = "theirs", .timeout_ns = 1000, .gone = &words.gone};
    CHECK(vmmc_call(SSS_VMMC_IMPORT, arguments) == TASK_AGAIN);
    CHECK(sent.type == MESSAGE_IMPORT && thread.state == THREAD_ASLEEP);
    request = sent.request;
}

static long result_of_asking(void)
{
    const uint64_t arguments[6] = {(uint64_t)&asking};

    CHECK(thread.state == THREAD_RUNNABLE);
    thread.state = THREAD_RUNNING;
    return thread.context->again(arguments);
}

static long import(uint32_t export_id, uint32_t generation)
{
    struct vmmc_message answer = {
        .type = MESSAGE_ANSWER, .export_id = export_id, .generation = generation, .pages = 2};

    ask();
    answer.request = request;
    say(&answer);
    return result_of_asking();
}

static uint64_t random_state = 1;

static uint64_t below(uint64_t most)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % most;
}

/* ---- junk: of what it says nothing is so ---- */
enum { STRANGE = 1 << 20 /* no generation, request or id is as large */ };

static void say_junk(void)
{
    struct vmmc_message message = {.type = (uint32_t)below(7),
                                   .request = STRANGE + (uint32_t)below(1000),
                                   .key = KEY + 1 + below(5),
                                   .status = (uint32_t)below(8) - 1,
                                   .export_id = (uint32_t)below(300) * (uint32_t)below(2),
                                   .generation = STRANGE + (uint32_t)below(100),
                                   .pages = (uint16_t)below(300),
                                   .use = (uint16_t)below(70000)};
    struct vmmc_packet packet = {.version = (uint8_t)below(3),
                                 .kind = (uint8_t)below(7),
                                 .flags = (uint8_t)below(4),
                                 .from = (uint16_t)below(70),
                                 .export_id = message.export_id,
                                 .generation = message.generation,
                                 .length = below(2) ? sizeof(message) : (uint32_t)below(100)};

    if (packet.kind == PACKET_FIFO)
        packet.kind = PACKET_NACK;
    memset(message.name, (int)below(256), sizeof(message.name)); /* no NUL at its end, too */
    if (below(2))
        name_it(&message, (unsigned)below(2 * EXPORTS));
    sent.type = 0;
    deliver(&packet, &message, (size_t)(below(2) ? FRAME : below(FRAME)));
    CHECK(sent.type == 0 || (sent.type == MESSAGE_ANSWER && sent.status != 0) ||
          (sent.type == MESSAGE_UNIMPORT && sent.generation == message.generation));
}

static void junk(unsigned count)
{
    long writes;
    uint64_t changes = word_changes;

    for (unsigned i = 0; i < EXPORTS; i++)
        CHECK(export(i, 0) == (long)i);
    for (unsigned i = 0; i < IMPORTS; i++)
        CHECK(import(i, 10 + i) == (long)i);
    ask();
    writes = table_writes;
    while (count-- != 0)
        say_junk();
    CHECK(thread.state == THREAD_ASLEEP);
    CHECK(table_writes == writes && word_changes == changes && words.gone == 0);
    ended(&task);
}

/* ---- wanted: who exports learns that what is taken is asked for ---- */
static uint32_t status_of_asking(uint64_t key)
{
    struct vmmc_message message = {.type = MESSAGE_IMPORT, .key = key};

    name_it(&message, 0);
    say(&message);
    CHECK(sent.type == MESSAGE_ANSWER);
    return sent.status;
}

static void wanted(void)
{
    words.wanted = 0;
    CHECK(export(0, VMMC_SINGLE) == 0);
    CHECK(status_of_asking(KEY) == 0 && words.wanted == 0);
    CHECK(status_of_asking(KEY) == VMMC_FULL && words.wanted == 1);
    CHECK(status_of_asking(KEY + 1) == VMMC_NO_KEY && words.wanted == 1);
    CHECK(export(0, VMMC_SINGLE) == 1);
    CHECK(status_of_asking(KEY) == 0 && words.wanted == 1);
    ended(&task);
    CHECK(status_of_asking(KEY) == VMMC_GONE && words.wanted == 1);
}

/* ---- a full line: what can wait does ---- */
static void say_fill(bool full)
{
    const struct vmmc_packet packet = {.version = 1,
                                       .kind = PACKET_FIFO,
                                       .flags = full ? PACKET_FULL : 0,
                                       .from = NODE,
                                       .to = NODE};

    CHECK(deliver(&packet, NULL, FRAME));
}

static void full_line(void)
{
    enum { MANY = 50, PORTION = 20 };
    struct vmmc_message message = {.type = MESSAGE_IMPORT, .key = KEY};
    uint64_t arguments[6] = {(uint64_t)&asking};
    unsigned told;

    for (unsigned i = 0; i < MANY; i++) {
        CHECK(import(i, 10 + i) == (long)i && export(i, 0) == (long)i);
        name_it(&message, i);
        say(&message);
    }
    /* Its end is told in portions, each as large as the line takes. */
    told = sent_count;
    line_takes = 0;
    say_fill(true);
    ended(&task);
    let_time_pass();
    CHECK(sent_count == told && pages_in_use == MANY && timers[0] == NULL);
    for (unsigned left = 2 * MANY, portion; left != 0; left -= portion) {
        portion = left < PORTION ? left : PORTION;
        line_takes = PORTION;
        say_fill(false);
        told += portion;
        CHECK(sent_count == told);
    }
    CHECK(pages_in_use == 0 && sent.type == MESSAGE_UNIMPORT);
    say_fill(false);
    CHECK(sent_count == told);
    /* A call waits from when the adapter knows until the kernel does, and again. */
    thread.state = THREAD_RUNNING;
    line_takes = 0;
    CHECK(vmmc_call(SSS_VMMC_IMPORT, arguments) == TASK_AGAIN && thread.state == THREAD_ASLEEP);
    say_fill(true);
    say_fill(false);
    CHECK(result_of_asking() == TASK_AGAIN && thread.state == THREAD_ASLEEP);
    say_fill(true);
    line_takes = UINT32_MAX;
    CHECK(thread.state == THREAD_ASLEEP && sent_count == told);
    say_fill(false);
    CHECK(result_of_asking() == TASK_AGAIN && thread.state == THREAD_ASLEEP);
    CHECK(sent_count == told + 1 && sent.type == MESSAGE_IMPORT);
    ended(&task);
    thread.state = THREAD_RUNNING;
    /* A place whose end is not told is no other's; as a crash has it, nobody is told. */
    CHECK(export(0, 0) == 0);
    name_it(&message, 0);
    say(&message);
    line_takes = 0;
    CHECK(vmmc_call(SSS_VMMC_UNEXPORT, (const uint64_t[6]){0}) == 0 && export(1, 0) == 1);
    line_takes = UINT32_MAX;
    told = sent_count;
    vmmc_restart();
    say_fill(false);
    CHECK(sent_count == told && export(0, 0) == 0);
    ended(&task);
}

/* ---- sense: small numbers, so that much of it fits; who has a single export is known ---- */
static unsigned holders[VMMC_EXPORTS], granted;
static struct vmmc_message last_granted;

static void answered(void)
{
    if (sent.type == MESSAGE_ANSWER && sent.status == 0) {
        CHECK(++holders[sent.export_id] == 1);
        last_granted = sent;
        granted++;
    }
}

static void say_sense(void)
{
    struct vmmc_message message = {.type = 1 + (uint32_t)below(4),
                                   .request = request - (uint32_t)below(2),
                                   .key = KEY + below(8) / 7,
                                   .status = (uint32_t)below(10) / 8,
                                   .export_id = (uint32_t)below(EXPORTS),
                                   .generation = 1 + (uint32_t)below(40),
                                   .pages = 2};
    uint32_t imported = words.imported;

    name_it(&message, (unsigned)below(EXPORTS));
    if (message.type == MESSAGE_UNIMPORT && below(2)) {
        message.export_id = last_granted.export_id;
        message.generation = last_granted.generation;
    }
    sent.type = 0;
    say(&message);
    answered();
    if (message.type == MESSAGE_UNIMPORT && words.imported != imported)
        CHECK(holders[message.export_id]-- == 1);
}

static void do_something(void)
{
    uint64_t arguments[6] = {below(EXPORTS)};
    static const unsigned calls[] = {SSS_VMMC_UNIMPORT, SSS_VMMC_UNEXPORT, SSS_VMMC_SOURCE,
                                     SSS_VMMC_BIND};
    unsigned call = calls[below(4)];

    pending = below(2);
    if (call == SSS_VMMC_SOURCE) {
        arguments[1] = 0x10000;
        arguments[2] = 1 + below(3);
    }
    if (call == SSS_VMMC_BIND) {
        arguments[2] = arguments[0];
        arguments[0] = 0;
        arguments[1] = 1 + below(2);
        arguments[4] = below(4);
    }
    if (vmmc_call(call, arguments) == 0 && call == SSS_VMMC_UNEXPORT)
        holders[arguments[0]] = 0;
}

static void sense(unsigned count)
{
    while (count-- != 0) {
        if (below(20) == 0)
            export((unsigned)below(EXPORTS), VMMC_SINGLE);
        if (below(20) == 0)
            do_something();
        if (below(20) == 0 && thread.state == THREAD_RUNNING)
            ask();
        say_sense();
        if (thread.state == THREAD_RUNNABLE) {
            result_of_asking();
        } else if (thread.state == THREAD_ASLEEP && below(4) == 0) {
            vmmc_call(SSS_VMMC_UNIMPORT, (const uint64_t[6]){*call_progress()}); /* not open yet */
        }
        if (below(4) == 0)
            let_time_pass();
        if (below(200) == 0) {
            memset(holders, 0, sizeof(holders));
            if (below(2))
                ended(&task);
            else
                vmmc_restart();
            thread.state = THREAD_RUNNING;
        }
    }
    ended(&task);
}

/* Imports whose transfers are not over stay until they are. */
static void nothing_is_left(void)
{
    pending = 0;
    let_time_pass();
    CHECK(pages_in_use == 0);
    CHECK(pinned == 0);
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;

    thread.task = &task;
    thread.context = &thread.own;
    runqueue.current = &thread;
    vmmc_init();
    vmmc_begin();
    junk(count);
    nothing_is_left();
    wanted();
    nothing_is_left();
    thread.state = THREAD_RUNNING;
    full_line();
    nothing_is_left();
    sense(count);
    nothing_is_left();
    printf("backplane: %u messages twice, %u answers, %u imports granted\n", count, sent_count,
           granted);
    CHECK(granted > count / 100);
    return 0;
}
