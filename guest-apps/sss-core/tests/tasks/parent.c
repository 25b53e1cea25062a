/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that make tasks: their ends, the right to kill, shared memory, and all memory given back.
 */
#include <stdio.h>
#include <string.h>

#include "sss/system.h"

#define SHARED 0x200000000ull /* an enumerator is an int */
enum { SHARES = 200, PAGE = 4096, TASKS = 1000 };

static int wait_for_end(int task, struct sss_task_status *status)
{
    for (;;) {
        uint32_t seen = SSS_INFO->tasks;
        int error = sss_task_status(task, status);

        if (error != 0 || status->state == SSS_GONE)
            return error;
        sss_wait_word(&SSS_INFO->tasks, seen, SSS_FOREVER);
    }
}

static void child_of(const char *options)
{
    struct sss_task_status status;
    int task = sss_task("parent", options, 0);

    if (task < 0 || wait_for_end(task, &status) != 0)
        printf("no child: %d\n", task);
    else
        printf("child %s ended with %d\n", options, status.status);
}

static void test_kill(void)
{
    struct sss_task_status status;
    int task = sss_task("parent", "sleep", 0);
    int dummy = sss_task("a-dummy", NULL, SSS_EMPTY);

    child_of("stranger");
    printf("kill an unknown task %d\n", sss_kill(60000));
    printf("kill %d\n", sss_kill(task));
    wait_for_end(task, &status);
    printf("killed status %d\n", status.status);
    printf("dummy state %d", sss_task_status(dummy, &status));
    printf(" %u, kill %d\n", status.state, sss_kill(dummy));
    printf("no such program %d, bad name %d\n", sss_task("no-such", NULL, 0),
           sss_task("a\"b", NULL, 0));
}

static void test_csm(void)
{
    volatile uint32_t *shared = sss_map((void *)SHARED, 2 * PAGE, SSS_READ | SSS_WRITE);
    int csm = sss_csm_share((void *)SHARED, 2 * PAGE);
    char options[32];
    int task, dummy;

    snprintf(options, sizeof options, "csm %d", csm);
    shared[0] = 1;
    task = sss_task("parent", options, 0);
    while (shared[1] != 7 && sss_wait_word(&shared[1], 0, 1000000000) == 0)
        ;
    printf("csm %u\n", shared[1]);
    shared[2] = 1; /* the child waits for it; only its waiting calls the kernel */
    sss_wait_word(&SSS_INFO->tasks, SSS_INFO->tasks, 1000000000);
    printf("csm child %d gone %u\n", task > 0, shared[3]);
    dummy = sss_task("dummy", NULL, SSS_EMPTY);
    printf("csm into dummy %d", sss_csm_map(dummy, csm, SHARED, SSS_READ | SSS_WRITE));
    printf(", again %d", sss_csm_map(dummy, csm, SHARED, SSS_READ));
    printf(", execute %d\n", sss_csm_map(0, csm, SHARED + 0x10000, SSS_EXECUTE));
    printf("csm unmap %d\n", sss_unmap((void *)SHARED, 2 * PAGE));
    printf("csm without owner %d\n", sss_csm_map(0, csm, SHARED, SSS_READ));
    for (unsigned i = 0; i < SHARES; i++) { /* more than a node has at a time */
        void *memory = sss_map(NULL, PAGE, SSS_READ | SSS_WRITE);

        if (memory == NULL || sss_csm_share(memory, PAGE) < 0 || sss_unmap(memory, PAGE) != 0)
            printf("share %u failed\n", i);
    }
}

static int csm_child(const char *options)
{
    int csm = options[4] - '0';
    volatile uint32_t *shared = (volatile uint32_t *)SHARED;

    if (sss_csm_map(0, csm, SHARED, SSS_READ | SSS_WRITE) != 0)
        return 1;
    shared[1] = shared[0] + 6;
    while (shared[2] == 0)
        if (sss_wait_word(&shared[2], 0, SSS_FOREVER) != 0)
            return 2;
    shared[3] = 9;
    return 0;
}

static void test_memory(void)
{
    struct sss_task_status status;
    uint64_t most = 0;

    for (unsigned i = 0; i < TASKS; i++) {
        int task = sss_task("parent", "nothing", 0);

        if (task < 0) {
            printf("task %u: %d\n", i, task);
            return;
        }
        if (wait_for_end(task, &status) == 0)
            most++;
    }
    printf("created %lu\n", most);
    for (unsigned i = 0; i < 100; i++) {
        void *memory = sss_map(NULL, 64 * PAGE, SSS_READ | SSS_WRITE);

        if (memory == NULL || sss_unmap(memory, 64 * PAGE) != 0)
            printf("map %u failed\n", i);
    }
    printf("too much %d\n", sss_map(NULL, 1ull << 40, SSS_READ) == NULL);
    while (sss_map(NULL, 256 * PAGE, SSS_READ | SSS_WRITE) != NULL)
        ;
    printf("memory is used up\n");
    printf("task without memory %d\n", sss_task("parent", "nothing", 0));
}

int main(int argc, char **argv)
{
    const char *what = argv[1];

    (void)argc;
    if (strcmp(what, "nothing") == 0)
        return 0;
    if (strcmp(what, "five") == 0)
        return 5;
    if (strcmp(what, "stranger") == 0) {
        /* the first task: its creator */
        printf("stranger says %d\n", sss_kill(SSS_INFO->task == 17 ? 18 : 17));
        return 0;
    }
    if (strcmp(what, "fault") == 0)
        *(volatile int *)(SSS_TEXT - 0x10000) = 1;
    if (strcmp(what, "sleep") == 0)
        return sss_wait(NULL, 0, SSS_FOREVER);
    if (strncmp(what, "csm ", 4) == 0)
        return csm_child(what);
    if (strcmp(what, "memory") == 0) {
        test_memory();
        return 0;
    }
    child_of("five");
    child_of("fault");
    test_kill();
    test_csm();
    printf("parent ends\n");
    return 0;
}
