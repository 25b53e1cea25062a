/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The portmapper as a service of a job: becomes rpcbind, after leaving a process behind that says
 * "ready" once rpcbind accepts TCP connections. By the order in /etc/netconfig it serves UDP by
 * then.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "samples.h"

enum { PORTMAPPER_PORT = 111, PROBE_NS = 1000 * 1000 };

static bool accepts_connections(void)
{
    struct sockaddr_in portmapper = {.sin_family = AF_INET, .sin_port = htons(PORTMAPPER_PORT)};
    int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool accepted;

    portmapper.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    accepted = connect(handle, (struct sockaddr *)&portmapper, sizeof(portmapper)) == 0;
    close(handle);
    return accepted;
}

/* Ends with the service's process, or it would wait for a portmapper that will never come. */
static void say_ready_when_serving(pid_t service)
{
    const struct timespec pause = {.tv_nsec = PROBE_NS};

    while (!accepts_connections()) {
        if (kill(service, 0) != 0)
            return;
        nanosleep(&pause, NULL);
    }
    puts("ready");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);
    pid_t service = getpid();
    pid_t between;

    options_check_all_taken(options);
    options_close(options);
    /* Twice removed, the prober belongs to process 1, who reaps it; rpcbind reaps nobody. */
    between = fork();
    if (between == 0) {
        if (fork() == 0)
            say_ready_when_serving(service);
        _exit(0);
    }
    if (between > 0)
        waitpid(between, NULL, 0);
    execlp("rpcbind", "rpcbind", "-f", (char *)NULL);
    samples_fail("cannot start rpcbind: %s", strerror(errno));
}
