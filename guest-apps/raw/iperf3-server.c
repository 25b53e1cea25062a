/* SPDX-License-Identifier: Apache-2.0 */
/* iperf3's server as a service of a job. Its client reports the tests. */
#include <stdio.h>

#include "apps.h"
#include "foreign.h"
#include "options.h"

enum { DEFAULT_PORT = 5201, PORT_LIMIT = 65535, TEXTS = 16, LINE = 256, TCP_LISTEN = 10 };

static unsigned port;

/* Looked up in /proc, since a connection would be taken for a test. */
static bool is_serving(void)
{
    char line[LINE];
    bool listening = false;
    FILE *sockets = fopen("/proc/net/tcp", "re");

    while (sockets != NULL && !listening && fgets(line, sizeof(line), sockets) != NULL) {
        unsigned local = 0;
        unsigned state = 0;

        /* sl local_address:port remote_address:port state */
        if (sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &state) == 2)
            listening = local == port && state == TCP_LISTEN;
    }
    if (sockets != NULL)
        fclose(sockets);
    return listening;
}

int iperf3_server_main(int argc, char **argv)
{
    char text[TEXTS];
    char *command[] = {(char *)"iperf3", (char *)"-4", (char *)"-s", (char *)"-p", text, NULL};
    struct options *options = options_open(argc, argv);

    port = (unsigned)options_integer(options, "port", DEFAULT_PORT, 1, PORT_LIMIT);
    options_check_all_taken(options);
    options_close(options);
    snprintf(text, sizeof(text), "%u", port);
    foreign_become(command, is_serving);
}
