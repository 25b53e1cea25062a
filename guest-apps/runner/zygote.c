/* SPDX-License-Identifier: Apache-2.0 */
#include "zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"
#include "spares.h"

static const char LAUNCHER[] = "python-program";
static const char ZYGOTE[] = "/usr/lib/sundial/python-zygote";

static pid_t zygote;
static int channel = -1;

static pid_t start(int theirs)
{
    char number[16];
    pid_t pid;

    snprintf(number, sizeof(number), "%d", theirs);
    pid = vfork();
    if (pid != 0)
        return pid;
    process_become_ordinary();
    fcntl(theirs, F_SETFD, 0);
    execl(ZYGOTE, ZYGOTE, number, (char *)NULL);
    _exit(EXIT_FAILURE);
}

/* A whole message of the zygote's; false where it has ended. */
static bool hear(void *message, size_t length)
{
    ssize_t got;

    do
        got = recv(channel, message, length, 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)length;
}

void zygote_start(void)
{
    int ends[2];
    char ready;

    if (!zygote_can_become(ZYGOTE) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    channel = ends[0];
    zygote = start(ends[1]);
    close(ends[1]);
    if (zygote > 0 && hear(&ready, sizeof(ready)))
        return;
    fprintf(stderr, "runner: the zygote of Python did not start\n");
    zygote_end();
}

bool zygote_can_become(const char *path)
{
    char target[sizeof(LAUNCHER)];

    return readlink(path, target, sizeof(target)) == sizeof(LAUNCHER) - 1 &&
           memcmp(target, LAUNCHER, sizeof(LAUNCHER) - 1) == 0;
}

/* `output`: a descriptor to pass, or -1. */
static bool tell(const char *order, size_t length, int output)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } passed = {0};
    struct iovec text = {.iov_base = (void *)(uintptr_t)order, .iov_len = length};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
    struct cmsghdr *header;

    if (output >= 0) {
        message.msg_control = passed.bytes;
        message.msg_controllen = sizeof(passed.bytes);
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(output));
        memcpy(CMSG_DATA(header), &output, sizeof(output));
    }
    return sendmsg(channel, &message, MSG_NOSIGNAL) == (ssize_t)length;
}

pid_t zygote_fork(const char *path, const char *options, int *output)
{
    int ends[2] = {-1, -1};
    const char *order;
    size_t length;
    uint32_t pid;
    bool forked;

    if (zygote <= 0 || !zygote_can_become(path))
        return -1;
    order = spares_order(path, options, &length);
    if (order == NULL)
        return -1;
    if (output != NULL && pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    forked = tell(order, length, ends[1]) && hear(&pid, sizeof(pid));
    if (output != NULL)
        close(ends[1]);
    if (forked) {
        if (output != NULL)
            *output = ends[0];
        return (pid_t)pid;
    }
    if (output != NULL)
        close(ends[0]);
    zygote_end();
    return -1;
}

void zygote_end(void)
{
    if (channel >= 0)
        close(channel);
    channel = -1;
    if (zygote > 0) {
        kill(zygote, SIGKILL);
        waitpid(zygote, NULL, 0);
    }
    zygote = 0;
}
