/* SPDX-License-Identifier: Apache-2.0 */
#include "apps.h"

#include <stdio.h>
#include <string.h>

enum { NO_SUCH_APPLICATION = 127 };

static const struct {
    const char *name;
    app_main *main;
} apps[] = {
    {"runner", runner_main},
    {"echo-client", echo_client_main},
    {"echo-server", echo_server_main},
    {"rpcbind", rpcbind_main},
    {"raw-client", raw_client_main},
    {"raw-server", raw_server_main},
    {"iperf3-client", iperf3_client_main},
    {"iperf3-server", iperf3_server_main},
};

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "";

    for (size_t i = 0; i < sizeof(apps) / sizeof(*apps); i++)
        if (strcmp(name, apps[i].name) == 0)
            return apps[i].main(argc, argv);
    fprintf(stderr, "%s: no such application\n", name);
    return NO_SUCH_APPLICATION;
}
