/* SPDX-License-Identifier: Apache-2.0 */
#include "sends.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local unsigned count;

unsigned sends_count(void)
{
    return count;
}

ssize_t sendto(int socket, const void *bytes, size_t length, int flags, const struct sockaddr *to,
               socklen_t to_length)
{
    count++;
    return syscall(SYS_sendto, socket, bytes, length, flags, to, to_length);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    count++;
    return syscall(SYS_sendmsg, socket, message, flags);
}
