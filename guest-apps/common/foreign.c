/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "samples.h"

enum { PROBE_NS = 1000 * 1000 };

/* Ends with the service's process, or it would wait for what will never be. */
static void say_ready_when_serving(pid_t service, bool (*is_serving)(void))
{
    const struct timespec pause = {.tv_nsec = PROBE_NS};

    while (!is_serving()) {
        if (kill(service, 0) != 0)
            return;
        nanosleep(&pause, NULL);
    }
    puts("ready");
    fflush(stdout);
}

void foreign_become(char *const argv[], bool (*is_serving)(void))
{
    pid_t service = getpid();
    /* Twice removed, the prober belongs to process 1, which reaps it; the service reaps none. */
    pid_t between = fork();
    int nowhere;

    if (between == 0) {
        if (fork() == 0)
            say_ready_when_serving(service, is_serving);
        _exit(0);
    }
    if (between > 0)
        waitpid(between, NULL, 0);
    /* Its standard output is not for us, who wait for "ready" there, nor for the console. */
    nowhere = open("/dev/null", O_WRONLY);
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        samples_fail("cannot open /dev/null: %s", strerror(errno));
    close(nowhere);
    execvp(argv[0], argv);
    samples_fail("cannot start %s: %s", argv[0], strerror(errno));
}
