/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The portmapper as a service of a job. By the order in /etc/netconfig it serves UDP and TCP once
 * it listens on its local socket. That one is tried, since a machine's first TCP connection makes
 * the kernel draw 256 KiB of random numbers: six million instructions.
 */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "apps.h"
#include "foreign.h"
#include "options.h"

static bool is_serving(void)
{
    static const struct sockaddr_un local = {.sun_family = AF_UNIX,
                                             .sun_path = "/run/rpcbind.sock"};
    int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = connect(handle, (const struct sockaddr *)&local, sizeof(local)) == 0;

    close(handle);
    return connected;
}

int rpcbind_main(int argc, char **argv)
{
    char *command[] = {(char *)"rpcbind", (char *)"-f", NULL};
    struct options *options = options_open(argc, argv);

    options_check_all_taken(options);
    options_close(options);
    foreign_become(command, is_serving);
}
