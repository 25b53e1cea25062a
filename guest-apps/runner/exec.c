/* SPDX-License-Identifier: Apache-2.0 */
#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base64.h"
#include "command.h"
#include "ports.h"
#include "request.h"

enum {
    COMMANDS_LIMIT = 32,
    LINE_LIMIT = 1 << 20,
    OUTGOING_BYTES = 256 * 1024,
    CHUNK_BYTES = 30 * 1024, /* of output in a line: 40 KiB of base64 */
    WORDS_BYTES = 256,       /* a line without output is shorter */
    DISCONNECTED_MS = 50,
    LOOK_MS = 200, /* while one is being hung up */
};

static struct command commands[COMMANDS_LIMIT];
static char incoming[LINE_LIMIT];
static size_t incoming_length;
static bool skipping; /* the rest of a line that is too long */
static char outgoing[OUTGOING_BYTES];
static size_t outgoing_length;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool has_room(size_t length)
{
    return sizeof(outgoing) - outgoing_length >= length;
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    outgoing_length += (size_t)vsnprintf(outgoing + outgoing_length,
                                         sizeof(outgoing) - outgoing_length, format, values);
    va_end(values);
}

static struct command *find(int64_t id)
{
    for (size_t i = 0; i < COMMANDS_LIMIT; i++)
        if (commands[i].used && !commands[i].hung_up && commands[i].id == id)
            return &commands[i];
    return NULL;
}

static struct command *find_free(void)
{
    for (size_t i = 0; i < COMMANDS_LIMIT; i++)
        if (!commands[i].used)
            return &commands[i];
    return NULL;
}

/* A refused request ends the command that it was for. */
static void refuse(const struct request *request, const char *error)
{
    struct command *command = request->numbered ? find(request->id) : NULL;

    if (command != NULL)
        command_hang_up(command, now_ns());
    if (request->numbered)
        say("{\"id\":%" PRId64 ",\"error\":\"%s\"}\n", (int64_t)request->id, error);
    else
        say("{\"id\":null,\"error\":\"%s\"}\n", error);
}

static void start(const struct request *request)
{
    struct terminal terminal = {.type = request->terminal, .window = request->window};
    struct command *command = find_free();
    const char *error;

    if (find(request->id) != NULL) {
        refuse(request, "id: is that of a command that runs");
        return;
    }
    if (command == NULL) {
        refuse(request, "32 commands run already");
        return;
    }
    error = command_start(command, request->argv, request->wants_terminal ? &terminal : NULL);
    if (error != NULL) {
        refuse(request, error);
        return;
    }
    command->used = true;
    command->id = request->id;
    command->credit = EXEC_OUTPUT_BYTES;
}

/* For a command that runs. What comes for one that has ended meanwhile is not a fault. */
static void pass_on(struct command *command, const struct request *request)
{
    switch (request->kind) {
    case REQUEST_INPUT:
        if (!command_put_input(command, request->input, request->length))
            refuse(request, "input: more than the command has taken");
        break;
    case REQUEST_END_OF_INPUT:
        command->input_ends = true;
        command_write_input(command);
        break;
    case REQUEST_SIGNAL:
        command_signal(command, request->signal);
        break;
    case REQUEST_WINDOW:
        command_set_window(command, &request->window);
        break;
    case REQUEST_TAKEN:
        command->credit += request->length;
        if (command->credit > EXEC_OUTPUT_BYTES)
            command->credit = EXEC_OUTPUT_BYTES;
        break;
    case REQUEST_HANG_UP:
        command_hang_up(command, now_ns());
        break;
    case REQUEST_INVALID:
    case REQUEST_START:
        break;
    }
}

static void handle_line(const char *line, size_t length)
{
    struct request request;
    struct command *command;

    request_read(&request, line, length);
    if (request.kind == REQUEST_INVALID)
        refuse(&request, request.error);
    else if (request.kind == REQUEST_START)
        start(&request);
    else if ((command = find(request.id)) != NULL)
        pass_on(command, &request);
    request_release(&request);
}

/* The whole lines that have come, as long as there is room for answers. */
static void handle_lines(void)
{
    size_t begin = 0;
    const char *end;

    while (has_room(WORDS_BYTES) &&
           (end = memchr(incoming + begin, '\n', incoming_length - begin)) != NULL) {
        if (!skipping)
            handle_line(incoming + begin, (size_t)(end - incoming) - begin);
        skipping = false;
        begin = (size_t)(end - incoming) + 1;
    }
    incoming_length -= begin;
    memmove(incoming, incoming + begin, incoming_length);
    if (incoming_length < sizeof(incoming) || memchr(incoming, '\n', incoming_length) != NULL)
        return;
    if (!skipping)
        say("{\"id\":null,\"error\":\"a line longer than %d bytes\"}\n", LINE_LIMIT);
    skipping = true;
    incoming_length = 0;
}

static void send_output(struct command *command, int stream)
{
    static const char *const names[] = {"stdout", "stderr"};
    static uint8_t bytes[CHUNK_BYTES];

    while (command->out[stream] >= 0 && command->credit > 0 &&
           has_room(BASE64_LENGTH(CHUNK_BYTES) + WORDS_BYTES)) {
        size_t room = command->credit < CHUNK_BYTES ? command->credit : CHUNK_BYTES;
        size_t got = command_read_output(command, stream, bytes, room);

        if (got == 0)
            return;
        command->credit -= got;
        say("{\"id\":%" PRId64 ",\"%s\":\"", command->id, names[stream]);
        outgoing_length += base64_encode(bytes, got, outgoing + outgoing_length);
        say("\"}\n");
    }
}

static void tend(struct command *command)
{
    bool ended = command_has_ended(command);

    if (command->hung_up) {
        if (!ended && now_ns() >= command->kill_ns)
            command_signal(command, SIGKILL);
        if (ended)
            command_release(command);
        return;
    }
    command_write_input(command);
    send_output(command, 0);
    send_output(command, 1);
    if (!has_room(2 * WORDS_BYTES))
        return;
    if (command->input_taken > 0) {
        say("{\"id\":%" PRId64 ",\"taken\":%zu}\n", command->id, command->input_taken);
        command->input_taken = 0;
    }
    if (ended && command->out[0] < 0 && command->out[1] < 0) {
        say("{\"id\":%" PRId64 ",\"status\":%d}\n", command->id, command->status);
        command_release(command);
    }
}

static void watch(struct pollfd *watched, nfds_t *count, int end, short events)
{
    if (end >= 0 && events != 0)
        watched[(*count)++] = (struct pollfd){.fd = end, .events = events};
}

/* Waits until something can be done. */
static void wait_for_events(int port)
{
    struct pollfd watched[1 + COMMANDS_LIMIT * 4];
    bool room = has_room(BASE64_LENGTH(CHUNK_BYTES) + WORDS_BYTES);
    nfds_t count = 0;
    int timeout_ms = -1;
    short port_events = 0;

    if (incoming_length < sizeof(incoming) && has_room(WORDS_BYTES))
        port_events |= POLLIN;
    if (outgoing_length > 0)
        port_events |= POLLOUT;
    watch(watched, &count, port, port_events);
    for (size_t i = 0; i < COMMANDS_LIMIT; i++) {
        struct command *command = &commands[i];
        bool heard = command->used && room && command->credit > 0;

        if (!command->used)
            continue;
        if (command->hung_up)
            timeout_ms = LOOK_MS;
        watch(watched, &count, command->ended, POLLIN);
        watch(watched, &count, command->in, command->input_length > 0 ? POLLOUT : 0);
        watch(watched, &count, command->out[0], heard ? POLLIN : 0);
        watch(watched, &count, command->out[1], heard ? POLLIN : 0);
    }
    poll(watched, count, timeout_ms);
}

/* Reads what has come; false when the host has disconnected. */
static bool receive(int port)
{
    ssize_t got;

    if (incoming_length == sizeof(incoming))
        return true;
    got = read(port, incoming + incoming_length, sizeof(incoming) - incoming_length);
    if (got > 0)
        incoming_length += (size_t)got;
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void transmit(int port)
{
    ssize_t written = outgoing_length > 0 ? write(port, outgoing, outgoing_length) : 0;

    if (written <= 0)
        return;
    outgoing_length -= (size_t)written;
    memmove(outgoing, outgoing + written, outgoing_length);
}

static void tend_all(void)
{
    for (size_t i = 0; i < COMMANDS_LIMIT; i++)
        if (commands[i].used)
            tend(&commands[i]);
}

void exec_serve_host(int port)
{
    while (receive(port)) {
        handle_lines();
        tend_all();
        transmit(port);
        wait_for_events(port);
    }
    for (size_t i = 0; i < COMMANDS_LIMIT; i++)
        if (commands[i].used)
            command_hang_up(&commands[i], now_ns());
    tend_all();
    incoming_length = 0;
    outgoing_length = 0;
    skipping = false;
}

void exec_serve(void)
{
    int port = ports_open("sundial.exec", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    /* Should a command use up all memory, it is the one to go. */
    if (score >= 0 && write(score, "-1000", 5) != 5)
        perror("runner: oom_score_adj");
    if (score >= 0)
        close(score);
    mkdir("/dev/pts", 0755);
    if (mount("devpts", "/dev/pts", "devpts", 0, "mode=620,ptmxmode=666") != 0)
        perror("runner: /dev/pts");
    signal(SIGPIPE, SIG_IGN);
    while (port >= 0) {
        exec_serve_host(port);
        poll(NULL, 0, DISCONNECTED_MS);
    }
}
