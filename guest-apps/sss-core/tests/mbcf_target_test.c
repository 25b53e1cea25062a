/* SPDX-License-Identifier: Apache-2.0 */

/* mbcf-server in a Linux process: another thread drives the node while the server does not wait. */
#include <pthread.h>
#include <stdlib.h>

#include "expect.h"
#include "mbcf_target.h"
#include "node.h"
#include "options.h"
#include "sss/mbcf.h"
#include "sss/system.h"

#define main mbcf_server_main
int mbcf_server_main(int argc, char **argv);
#include "../tasks/mbcf-server.c"
#undef main

enum { KEY = 0x5a5a, SIGNALS = 5 };

static struct node *nodes[2];
static uint16_t server_task;

void options_open(int argc, char **argv, const char *program)
{
    (void)argc;
    (void)argv;
    /* cppcheck-suppress missingReturn; of the server's main(), which does not return */
    (void)program;
}

void options_check_all_taken(void)
{
}

void task_fail(const char *format, ...)
{
    (void)format;
    abort();
}

int mb_binder_ask(uint16_t node, uint32_t kind, uint32_t program, uint32_t version, uint32_t type,
                  uint64_t timeout_ns, struct mb_binder_answer *found)
{
    (void)node;
    (void)kind;
    (void)program;
    (void)version;
    (void)type;
    (void)timeout_ns;
    (void)found;
    return MB_BINDER_FOUND;
}

static void ask(enum mbcf_target_question question, void *where)
{
    struct mbcf_target_query query = {MBCF_TARGET_MAGIC, question, (uintptr_t)where};
    struct mb_ack ack = {0};

    EXPECT(mb_taskque_write(2, server_task, KEY, MB_WRITE_ALLOWED, &query, sizeof(query), &ack) >=
           0);
    EXPECT(mb_ack_wait(&ack, NS_PER_S) == MB_OK);
}

/* Sends signals and asks for the counts, while the server has not waited since its OPEN. */
static void *signal_and_ask(void *answer)
{
    int ltn;

    EXPECT(node_task(nodes[0], 0) > 0);
    EXPECT(mb_key(0, KEY, MB_WRITE_ALLOWED) == 0);
    ltn = mb_connect(2, server_task, target.key);
    for (uint64_t i = 0; i < SIGNALS; i++) {
        const uint64_t argument[4] = {i};
        struct mb_ack ack = {0};

        EXPECT(mb_signal_send(ltn, (uintptr_t)take_signals, argument, NULL, 0, &ack) == 0);
        EXPECT(mb_ack_wait(&ack, NS_PER_S) == MB_OK);
    }
    ask(MBCF_TARGET_COUNTS, answer);
    return NULL;
}

static void test_signals_are_counted_before_the_question_behind_them(void)
{
    static struct mbcf_target_counts answer;
    pthread_t client;

    EXPECT(node_open_group(nodes, 2) == 0);
    server_task = (uint16_t)node_task(nodes[1], 0);
    prepare();
    pthread_create(&client, NULL, signal_and_ask, &answer);
    pthread_join(client, NULL);
    EXPECT(counts.signals == 0); /* executed, and not yet handled */
    take_questions();
    while (answer.answered == 0)
        node_poll();
    EXPECT(answer.signals == SIGNALS && answer.signal_wrong == 0);
    node_close(nodes[0]);
    node_close(nodes[1]);
}

int main(void)
{
    static const struct test tests[] = {
        {"counted", test_signals_are_counted_before_the_question_behind_them},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
