/* SPDX-License-Identifier: Apache-2.0 */
/* When a service is ready. Nothing here sends a frame: sockets are looked up in the kernel's
 * tables. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

enum { LINE = 256, TCP_LISTEN = 10 };

/*
 * Listening sockets are the first in the kernel's table. The rest is not read, so that many closed
 * connections cost nothing: this process may have a real-time priority.
 */
static bool has_socket(const char *table, unsigned port, unsigned state)
{
    char line[LINE];
    char buffer[LINE];
    bool found = false;
    bool more = true;
    FILE *sockets = fopen(table, "re");

    if (sockets != NULL)
        setvbuf(sockets, buffer, _IOFBF, sizeof(buffer));
    while (sockets != NULL && !found && more && fgets(line, sizeof(line), sockets) != NULL) {
        unsigned local = 0;
        unsigned seen = 0;

        if (sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &seen) != 2)
            continue;
        more = state == 0 || seen == state;
        found = local == port && more;
    }
    if (sockets != NULL)
        fclose(sockets);
    return found;
}

static bool has_either(const char *table, const char *table6, unsigned port, unsigned state)
{
    return has_socket(table, port, state) || has_socket(table6, port, state);
}

bool program_is_ready(struct program *program)
{
    const json_t *ready = json_object_get(program->options, "ready");
    unsigned tcp = (unsigned)command_number(ready, "tcp", 0);
    unsigned udp = (unsigned)command_number(ready, "udp", 0);
    const char *path = json_string_value(json_object_get(ready, "path"));

    if (tcp != 0)
        return has_either("/proc/net/tcp", "/proc/net/tcp6", tcp, TCP_LISTEN);
    if (udp != 0)
        return has_either("/proc/net/udp", "/proc/net/udp6", udp, 0);
    if (path != NULL)
        return access(path, F_OK) == 0;
    if (json_object_get(ready, "line") != NULL || json_object_get(ready, "command") != NULL)
        return program->line_seen;
    return true;
}
