/* SPDX-License-Identifier: Apache-2.0 */
/* The applications over MBCF speak nothing else on Linux: UDP and TCP have programs of their own
 * there. */
#include "sss/system.h"

int sss_socket(int protocol, uint32_t *counter)
{
    (void)protocol, (void)counter;
    return -SSS_ENOSYS;
}

int sss_bind(int socket, uint32_t address, uint16_t port)
{
    (void)socket, (void)address, (void)port;
    return -SSS_ENOSYS;
}

int sss_send_to(int socket, const void *data, size_t length, uint32_t address, uint16_t port)
{
    (void)socket, (void)data, (void)length, (void)address, (void)port;
    return -SSS_ENOSYS;
}

int sss_receive_from(int socket, void *data, size_t size, struct sss_peer *peer)
{
    (void)socket, (void)data, (void)size, (void)peer;
    return -SSS_ENOSYS;
}

int sss_connect(int socket, uint32_t address, uint16_t port)
{
    (void)socket, (void)address, (void)port;
    return -SSS_ENOSYS;
}

int sss_listen(int socket, int backlog)
{
    (void)socket, (void)backlog;
    return -SSS_ENOSYS;
}

int sss_accept(int socket, uint32_t *counter, struct sss_peer *peer)
{
    (void)socket, (void)counter, (void)peer;
    return -SSS_ENOSYS;
}

int sss_send(int socket, const void *data, size_t length)
{
    (void)socket, (void)data, (void)length;
    return -SSS_ENOSYS;
}

int sss_receive(int socket, void *data, size_t size)
{
    (void)socket, (void)data, (void)size;
    return -SSS_ENOSYS;
}

int sss_socket_close(int socket)
{
    (void)socket;
    return -SSS_ENOSYS;
}

int sss_socket_state(int socket, struct sss_socket_state *state)
{
    (void)socket, (void)state;
    return -SSS_ENOSYS;
}
