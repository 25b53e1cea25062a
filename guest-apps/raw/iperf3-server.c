/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iperf3's server as a service of a job: becomes iperf3 after leaving a process behind that says
 * "ready" once the port is listened on. It looks into /proc, since a connection would be taken for
 * a test.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "samples.h"

enum { DEFAULT_PORT = 5201, PORT_LIMIT = 65535, PROBE_NS = 1000 * 1000, LINE = 256, TEXTS = 16 };

static bool is_listening(unsigned port)
{
    char line[LINE];
    bool found = false;
    FILE *sockets = fopen("/proc/net/tcp", "re");

    while (sockets != NULL && !found && fgets(line, sizeof(line), sockets) != NULL) {
        unsigned local = 0;
        unsigned state = 0;

        /* sl local_address:port remote_address:port state (10: TCP_LISTEN) */
        if (sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &state) == 2)
            found = local == port && state == 0x0a;
    }
    if (sockets != NULL)
        fclose(sockets);
    return found;
}

static void say_ready_when_listening(pid_t service, unsigned port)
{
    const struct timespec pause = {.tv_nsec = PROBE_NS};

    while (!is_listening(port)) {
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
    unsigned port = (unsigned)options_integer(options, "port", DEFAULT_PORT, 1, PORT_LIMIT);
    pid_t service = getpid();
    char text[TEXTS];
    pid_t between;

    options_check_all_taken(options);
    options_close(options);
    /* Twice removed, the prober belongs to process 1, who reaps it; iperf3 reaps nobody. */
    between = fork();
    if (between == 0) {
        if (fork() == 0)
            say_ready_when_listening(service, port);
        _exit(0);
    }
    if (between > 0)
        waitpid(between, NULL, 0);
    snprintf(text, sizeof(text), "%u", port);
    /* The client reports the tests; what the server says of them is not for the console. */
    if (freopen("/dev/null", "w", stdout) == NULL)
        samples_fail("cannot open /dev/null: %s", strerror(errno));
    execlp("iperf3", "iperf3", "-4", "-s", "-p", text, (char *)NULL);
    samples_fail("cannot start iperf3: %s", strerror(errno));
}
