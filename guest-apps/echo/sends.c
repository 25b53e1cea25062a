/* SPDX-License-Identifier: Apache-2.0 */
#include "sends.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RECORD_MARK_BYTES = 4 };

static _Thread_local struct {
    unsigned datagrams;
    bool stream;
    bool wants_xid;
    bool has_xid;
    uint32_t xid;
} now;

void sends_begin(bool stream)
{
    now.datagrams = 0;
    now.stream = stream;
    now.wants_xid = true;
    now.has_xid = false;
}

unsigned sends_count(void)
{
    return now.datagrams;
}

bool sends_xid(uint32_t *xid)
{
    now.wants_xid = false;
    *xid = now.xid;
    return now.has_xid;
}

static void look(const void *bytes, size_t length, size_t offset)
{
    uint32_t word;

    if (!now.wants_xid || length < offset + sizeof(word))
        return;
    memcpy(&word, (const char *)bytes + offset, sizeof(word));
    now.xid = ntohl(word);
    now.has_xid = true;
    now.wants_xid = false;
}

ssize_t sendto(int socket, const void *bytes, size_t length, int flags, const struct sockaddr *to,
               socklen_t to_length)
{
    now.datagrams++;
    look(bytes, length, 0);
    return syscall(SYS_sendto, socket, bytes, length, flags, to, to_length);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    now.datagrams++;
    if (message->msg_iovlen > 0)
        look(message->msg_iov[0].iov_base, message->msg_iov[0].iov_len, 0);
    return syscall(SYS_sendmsg, socket, message, flags);
}

/* How the library sends on a stream. */
ssize_t write(int file, const void *bytes, size_t length)
{
    if (now.stream)
        look(bytes, length, RECORD_MARK_BYTES);
    return syscall(SYS_write, file, bytes, length);
}
