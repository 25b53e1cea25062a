/* SPDX-License-Identifier: Apache-2.0 */
#include "socket.h"

#include "lwip/tcp.h"
#include "lwip/udp.h"
#include "task_table.h"
#include "user.h"
#include "wait.h"

struct socket socket_table[SSS_SOCKETS];

struct socket *socket_new(struct task *owner, int protocol)
{
    for (struct socket *socket = socket_table; socket < socket_table + SSS_SOCKETS; socket++) {
        if (socket->owner != NULL)
            continue;
        *socket = (struct socket){.owner = owner, .protocol = protocol};
        return socket;
    }
    return NULL;
}

void socket_changed(struct socket *socket)
{
    uint32_t *word;
    int why;

    if (socket->counter == 0)
        return;
    word = task_page(socket->owner, socket->counter, true, &why);
    if (word == NULL)
        return; /* the owner unmapped it: there is nothing to notify */
    ++*word;
    task_memory_changed(socket->owner);
}

bool socket_counter_valid(uint64_t address)
{
    uint32_t word;

    return address % sizeof(word) == 0 && address != 0 && user_read(&word, address, sizeof(word)) &&
           user_write(address, &word, sizeof(word));
}

long socket_error(err_t error)
{
    switch (error) {
    case ERR_OK:
        return 0;
    case ERR_MEM:
        return -SSS_ENOMEM;
    case ERR_USE:
        return -SSS_EADDRINUSE;
    case ERR_RTE:
    case ERR_IF:
        return -SSS_EIO;
    case ERR_ISCONN:
    case ERR_VAL:
    case ERR_ARG:
        return -SSS_EINVAL;
    case ERR_RST:
        return -SSS_ECONNRESET;
    case ERR_CLSD:
    case ERR_CONN:
        return -SSS_ENOTCONN;
    case ERR_ABRT:
    case ERR_TIMEOUT:
        return -SSS_ETIMEDOUT;
    default:
        return -SSS_EIO;
    }
}

uint16_t socket_local_task(int protocol, uint16_t port, uint16_t connected_to)
{
    for (const struct socket *socket = socket_table; socket < socket_table + SSS_SOCKETS;
         socket++) {
        if (socket->owner == NULL || socket->protocol != protocol || socket->udp == NULL)
            continue;
        if (protocol == SSS_UDP
                ? socket->udp->local_port == port
                : socket->phase != SSS_LISTENING && socket->tcp->local_port == port &&
                      socket->tcp->remote_port == connected_to)
            return task_id(socket->owner);
    }
    return 0;
}
