/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of other nodes may say what they like: nothing comes of it that was not asked for,
 * nothing is let in without its key, and nothing is lost when all has ended. The adapter, memory
 * and tasks are those of backplane_world.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backplane_world.h"

enum { OTHER = 2, KEY = 4711, EXPORTS = 6, IMPORTS = 6, FRAME = 58 + 64 };

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
                                       .kind = VMW_CONTROL,
                                       .sender = OTHER,
                                       .receiver = NODE,
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
    CHECK(sent.type == VMW_IMPORT && thread.state == THREAD_ASLEEP);
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
        .type = VMW_ANSWER, .export = export_id, .generation = generation, .pages = 2};

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
                                   .export = (uint32_t)below(300) * (uint32_t)below(2),
                                   .generation = STRANGE + (uint32_t)below(100),
                                   .pages = (uint16_t)below(300),
                                   .use = (uint16_t)below(70000)};
    struct vmmc_packet packet = {.version = (uint8_t)below(3),
                                 .kind = (uint8_t)below(7),
                                 .flags = (uint8_t)below(4),
                                 .sender = (uint16_t)below(70),
                                 .export = message.export,
                                 .generation = message.generation,
                                 .length = below(2) ? sizeof(message) : (uint32_t)below(100)};

    if (packet.kind == VMW_FIFO)
        packet.kind = VMW_NACK;
    memset(message.name, (int)below(256), sizeof(message.name)); /* no NUL at its end, too */
    if (below(2))
        name_it(&message, (unsigned)below(2 * EXPORTS));
    sent.type = 0;
    deliver(&packet, &message, (size_t)(below(2) ? FRAME : below(FRAME)));
    CHECK(sent.type == 0 || (sent.type == VMW_ANSWER && sent.status != 0) ||
          (sent.type == VMW_UNIMPORT && sent.generation == message.generation));
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
    struct vmmc_message message = {.type = VMW_IMPORT, .key = key};

    name_it(&message, 0);
    say(&message);
    CHECK(sent.type == VMW_ANSWER);
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
                                       .kind = VMW_FIFO,
                                       .flags = full ? VMW_FIFO_HIGH : 0,
                                       .sender = NODE,
                                       .receiver = NODE};

    CHECK(deliver(&packet, NULL, FRAME));
}

static void full_line(void)
{
    enum { MANY = 50, PORTION = 20 };
    struct vmmc_message message = {.type = VMW_IMPORT, .key = KEY};
    uint64_t arguments[6] = {(uint64_t)&asking};
    unsigned before;

    for (unsigned i = 0; i < MANY; i++) {
        CHECK(import(i, 10 + i) == (long)i && export(i, 0) == (long)i);
        name_it(&message, i);
        say(&message);
    }
    /* Its end is sent in portions, each as large as the line takes. */
    before = sent_count;
    line_takes = 0;
    say_fill(true);
    ended(&task);
    let_time_pass();
    CHECK(sent_count == before && pages_in_use == MANY && timers[0] == NULL);
    for (unsigned left = 2 * MANY, portion; left != 0; left -= portion) {
        portion = left < PORTION ? left : PORTION;
        line_takes = PORTION;
        say_fill(false);
        before += portion;
        CHECK(sent_count == before);
    }
    CHECK(pages_in_use == 0 && sent.type == VMW_UNIMPORT);
    say_fill(false);
    CHECK(sent_count == before);
    /* A call waits from when the adapter knows until the kernel does, and again. */
    thread.state = THREAD_RUNNING;
    line_takes = 0;
    CHECK(vmmc_call(SSS_VMMC_IMPORT, arguments) == TASK_AGAIN && thread.state == THREAD_ASLEEP);
    say_fill(true);
    say_fill(false);
    CHECK(result_of_asking() == TASK_AGAIN && thread.state == THREAD_ASLEEP);
    say_fill(true);
    line_takes = UINT32_MAX;
    CHECK(thread.state == THREAD_ASLEEP && sent_count == before);
    say_fill(false);
    CHECK(result_of_asking() == TASK_AGAIN && thread.state == THREAD_ASLEEP);
    CHECK(sent_count == before + 1 && sent.type == VMW_IMPORT);
    ended(&task);
    thread.state = THREAD_RUNNING;
    /* A place whose end is not sent stays taken; as in a crash, no node is notified. */
    CHECK(export(0, 0) == 0);
    name_it(&message, 0);
    say(&message);
    line_takes = 0;
    CHECK(vmmc_call(SSS_VMMC_UNEXPORT, (const uint64_t[6]){0}) == 0 && export(1, 0) == 1);
    line_takes = UINT32_MAX;
    before = sent_count;
    vmmc_restart();
    say_fill(false);
    CHECK(sent_count == before && export(0, 0) == 0);
    ended(&task);
}

/* ---- a line that takes more again, without a notification ---- */
static void lost_frames(void)
{
    const struct vmmc_packet other = {
        .version = 1, .kind = VMW_NACK, .sender = OTHER, .receiver = NODE};
    uint64_t arguments[6] = {(uint64_t)&asking};
    unsigned before = sent_count;

    /* A sleeper learns of it with the next notification. */
    line_takes = 0;
    say_fill(true);
    CHECK(vmmc_call(SSS_VMMC_IMPORT, arguments) == TASK_AGAIN && thread.state == THREAD_ASLEEP);
    deliver(&other, NULL, FRAME);
    CHECK(thread.state == THREAD_ASLEEP);
    line_takes = UINT32_MAX;
    deliver(&other, NULL, FRAME);
    CHECK(result_of_asking() == TASK_AGAIN && sent_count == before + 1);
    ended(&task);
    /* A call looks itself; ends that were to be sent come first. */
    thread.state = THREAD_RUNNING;
    CHECK(import(0, 10) == 0);
    before = sent_count;
    line_takes = 0;
    say_fill(true);
    CHECK(vmmc_call(SSS_VMMC_UNIMPORT, (const uint64_t[6]){0}) == 0 && sent_count == before);
    line_takes = UINT32_MAX;
    ask();
    CHECK(sent_count == before + 2);
    ended(&task);
    /* So does a store, which is made again at once; a page that is not bound does not matter. */
    line_takes = 0;
    say_fill(true);
    CHECK(!fault(0x10000));
    bound_page = 0;
    thread.state = THREAD_RUNNING;
    CHECK(fault(0x10000) && thread.state == THREAD_ASLEEP);
    thread_wake_all(&(struct wait_queue){&thread});
    line_takes = UINT32_MAX;
    CHECK(fault(0x10000) && thread.state == THREAD_RUNNABLE);
    CHECK(!fault(0x10000));
    bound_page = -1;
    thread.state = THREAD_RUNNING;
}

/* ---- sense: small numbers, so that much of it fits; who has a single export is known ---- */
static unsigned holders[VMMC_EXPORTS], granted;
static struct vmmc_message last_granted;

static void answered(void)
{
    if (sent.type == VMW_ANSWER && sent.status == 0) {
        CHECK(++holders[sent.export] == 1);
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
                                   .export = (uint32_t)below(EXPORTS),
                                   .generation = 1 + (uint32_t)below(40),
                                   .pages = 2};
    uint32_t imported = words.imported;

    name_it(&message, (unsigned)below(EXPORTS));
    if (message.type == VMW_UNIMPORT && below(2)) {
        message.export = last_granted.export;
        message.generation = last_granted.generation;
    }
    sent.type = 0;
    say(&message);
    answered();
    if (message.type == VMW_UNIMPORT && words.imported != imported)
        CHECK(holders[message.export]-- == 1);
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
    lost_frames();
    nothing_is_left();
    sense(count);
    nothing_is_left();
    printf("backplane: %u messages twice, %u answers, %u imports granted\n", count, sent_count,
           granted);
    CHECK(granted > count / 100);
    return 0;
}
