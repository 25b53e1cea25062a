/* SPDX-License-Identifier: Apache-2.0 */
#include <rpc/socket.h>
#include <sss/system.h>
#include <stddef.h>

enum { NONE = -1 };

/* A word of its own for each socket of this task; the kernel knows its address. */
static struct place {
    uint32_t counter;
    int socket_plus_one; /* 0: free */
} places[SSS_SOCKETS];

static struct place *place_of(int socket)
{
    for (struct place *place = places; place < places + SSS_SOCKETS; place++)
        if (place->socket_plus_one == socket + 1)
            return place;
    return NULL;
}

static int keep(struct place *place, int socket)
{
    if (socket >= 0)
        place->socket_plus_one = socket + 1;
    return socket;
}

int rpc_socket(int protocol, uint16_t port)
{
    struct place *place = place_of(NONE);
    int socket;
    int error;

    if (place == NULL)
        return -SSS_ENOMEM;
    socket = keep(place, sss_socket(protocol, &place->counter));
    if (socket < 0)
        return socket;
    error = sss_bind(socket, 0, port);
    if (error < 0) {
        rpc_socket_close(socket);
        return error;
    }
    return socket;
}

int rpc_socket_accept(int listener, struct sss_peer *peer)
{
    struct place *place = place_of(NONE);

    if (place == NULL)
        return -SSS_ENOMEM;
    return keep(place, sss_accept(listener, &place->counter, peer));
}

const volatile uint32_t *rpc_socket_counter(int socket)
{
    return &place_of(socket)->counter;
}

uint16_t rpc_socket_port(int socket)
{
    struct sss_socket_state state;

    return sss_socket_state(socket, &state) < 0 ? 0 : state.local.port;
}

void rpc_socket_close(int socket)
{
    struct place *place = place_of(socket);

    sss_socket_close(socket);
    if (place != NULL)
        place->socket_plus_one = 0;
}
