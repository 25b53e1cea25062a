/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint.h"

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 1 << 20,
    /* The request by which a program joins a vde_switch (vde_switch/port.h of VDE 2). */
    VDE_MAGIC = 0xfeedface,
    VDE_VERSION = 3,
    VDE_NEW_PORT = 0,
    FAILED = 4,
};

struct vde_request {
    uint32_t magic;
    uint32_t version;
    uint32_t type;
    struct sockaddr_un own;
    char description[16];
} __attribute__((packed));

static void fill(struct sockaddr_un *address, const char *path)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(address->sun_path))
        errx(FAILED, "%s: too long for a socket", path);
    strcpy(address->sun_path, path);
}

static void bind_own(struct endpoint *endpoint, const char *path)
{
    struct sockaddr_un own;
    int bytes = BUFFER_BYTES;

    fill(&own, path);
    strcpy(endpoint->path, path);
    endpoint->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (endpoint->socket < 0 || bind(endpoint->socket, (struct sockaddr *)&own, sizeof(own)) != 0)
        err(FAILED, "%s", path);
    setsockopt(endpoint->socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    setsockopt(endpoint->socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static void connect_far(struct endpoint *endpoint, const struct sockaddr_un *far)
{
    if (connect(endpoint->socket, (const struct sockaddr *)far, sizeof(*far)) != 0)
        err(FAILED, "%s", far->sun_path);
}

/* Asks the switch for a port and connects to the socket that it names. */
static void join_vde(struct endpoint *endpoint, const char *folder)
{
    struct vde_request request = {
        .magic = VDE_MAGIC, .version = VDE_VERSION, .type = VDE_NEW_PORT, .description = "frames"};
    struct sockaddr_un own, far;
    char path[256];

    snprintf(path, sizeof(path), "%s/ctl", folder);
    fill(&far, path);
    endpoint->control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (endpoint->control < 0 ||
        connect(endpoint->control, (struct sockaddr *)&far, sizeof(far)) != 0)
        err(FAILED, "%s", path);
    fill(&own, endpoint->path);
    request.own = own;
    if (send(endpoint->control, &request, sizeof(request), 0) != (ssize_t)sizeof(request))
        err(FAILED, "%s", path);
    if (recv(endpoint->control, &far, sizeof(far), 0) <= 0)
        errx(FAILED, "%s: the switch gives no port", path);
    connect_far(endpoint, &far);
}

void endpoint_open(struct endpoint *endpoint, const char *spec)
{
    char *copy = strdup(spec);
    char *rest = copy;
    const char *kind = strsep(&rest, ":");
    const char *first = strsep(&rest, ":");
    const char *second = strsep(&rest, ":");

    if (second == NULL || rest != NULL)
        errx(2, "%s: must be dgram:OWN:FAR or vde:FOLDER:OWN", spec);
    endpoint->control = -1;
    if (strcmp(kind, "dgram") == 0) {
        struct sockaddr_un far;

        bind_own(endpoint, first);
        fill(&far, second);
        connect_far(endpoint, &far);
    } else if (strcmp(kind, "vde") == 0) {
        bind_own(endpoint, second);
        join_vde(endpoint, first);
    } else {
        errx(2, "%s: must be dgram:OWN:FAR or vde:FOLDER:OWN", spec);
    }
    free(copy);
}

void endpoint_close(struct endpoint *endpoint)
{
    close(endpoint->socket);
    if (endpoint->control >= 0)
        close(endpoint->control);
    unlink(endpoint->path);
}
