// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: tshark that has initialised itself, and forks for each capture that it is asked
// to dissect.
//
// What takes tshark a quarter of a second is the registration of its three thousand protocols,
// which is the same each time. It is stopped behind it, before it reads its options: a child has
// the options, the standard streams and all else of a tshark that was just started.
//
// A request is one message on the socket: arguments, each ended by a zero byte, and four file
// descriptors (standard input, output, error, and where the child tells its process id and, when it
// exits, its status). The server ends with the socket. It was started with as many arguments as a
// request may have: argc is main's own, the strings are not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STREAMS        4
#define LONGEST        65536
#define WITHOUT_EFFECT "-n"

static int argument_count;
static char **arguments;
static int32_t status_stream;
static char request[LONGEST];

__attribute__((constructor)) static void remember(int argc, char **argv)
{
    argument_count = argc;
    arguments = argv;
    // tshark's own children, if it had any, are no servers.
    unsetenv("LD_PRELOAD");
}

static void tell(int32_t value)
{
    if (write(status_stream, &value, sizeof value) != sizeof value)
        _exit(1);
}

static void tell_status(int status, void *unused)
{
    (void)unused;
    tell(status);
}

static _Noreturn void fail(const char *what)
{
    perror(what);
    _exit(1);
}

// The bytes of a request, 0 when there will be none.
static size_t receive(int server, int streams[STREAMS])
{
    struct iovec data = {request, sizeof request};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * STREAMS)];
    } control;
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(server, &message, 0);
    if (got <= 0)
        return 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL || header->cmsg_len != CMSG_LEN(sizeof(int) * STREAMS) ||
        message.msg_flags & MSG_TRUNC)
        fail("a request without its streams");
    memcpy(streams, CMSG_DATA(header), sizeof(int) * STREAMS);
    return (size_t)got;
}

static void take_arguments(size_t length)
{
    int place = 1;
    for (char *each = request; each < request + length; each += strlen(each) + 1) {
        if (place == argument_count)
            fail("more arguments than the server has");
        arguments[place++] = each;
    }
    while (place < argument_count)
        arguments[place++] = WITHOUT_EFFECT;
}

static void become(int server, const int streams[STREAMS], size_t length)
{
    close(server);
    signal(SIGCHLD, SIG_DFL);
    for (int number = 0; number < STREAMS - 1; number++) {
        if (dup2(streams[number], number) < 0)
            fail("dup2");
        close(streams[number]);
    }
    status_stream = streams[STREAMS - 1];
    take_arguments(length);
    tell(getpid());
    on_exit(tell_status, NULL);
}

// Returns in children only.
static void serve(int server)
{
    int streams[STREAMS];
    size_t length;
    signal(SIGCHLD, SIG_IGN);
    while ((length = receive(server, streams)) > 0) {
        request[length < LONGEST ? length : LONGEST - 1] = 0;
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            become(server, streams, length);
            return;
        }
        for (int number = 0; number < STREAMS; number++)
            close(streams[number]);
    }
    _exit(0);
}

// For each capture, and each of its sections, tshark reads some 100,000 names of vendors, ports and
// enterprises, of which
// `-n` shows none. What is not shown need not be there.
FILE *fopen(const char *path, const char *mode)
{
    static const char *const names[] = {"/manuf", "/services", "/enterprises.tsv"};
    FILE *(*open)(const char *, const char *) = (FILE * (*)(const char *, const char *))
        dlsym(RTLD_NEXT, "fopen");
    if (open == NULL)
        fail("fopen");
    for (size_t place = 0; place < sizeof names / sizeof *names; place++) {
        size_t length = strlen(path), last = strlen(names[place]);
        if (length >= last && strcmp(path + length - last, names[place]) == 0) {
            errno = ENOENT;
            return NULL;
        }
    }
    return open(path, mode);
}

// tshark's last call before its options. It returns what prefs it has read.
void *epan_load_settings(void);

void *epan_load_settings(void)
{
    void *(*load)(void) = (void *(*)(void))dlsym(RTLD_NEXT, "epan_load_settings");
    if (load == NULL)
        fail("epan_load_settings");
    void *settings = load();
    const char *server = getenv("WARM_TSHARK_SOCKET");
    if (server != NULL)
        serve(atoi(server));
    return settings;
}

// What a child frees before it exits is shared with the server, and would be copied first.
void epan_cleanup(void);

void epan_cleanup(void)
{
}
