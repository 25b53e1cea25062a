/* SPDX-License-Identifier: Apache-2.0 */
#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base64.h"
#include "ports.h"

enum {
    REQUEST_LIMIT = 1 << 20,
    OUTPUT_LIMIT = 1 << 20, /* of each stream: an answer takes ten times as much of a small guest */
    READ_SIZE = 64 * 1024,
    IDLE_US = 50 * 1000,
    SIGNALLED = 128,
    CANNOT_START = 127,
};

struct capture {
    int fd;
    char *bytes;
    size_t length;
    json_int_t dropped; /* bytes beyond the limit */
};

static void capture_more(struct capture *capture)
{
    static char buffer[READ_SIZE];
    ssize_t got = read(capture->fd, buffer, sizeof(buffer));
    size_t room = OUTPUT_LIMIT - capture->length;
    size_t kept;
    char *grown;

    if (got < 0 && errno == EINTR)
        return;
    if (got <= 0) {
        close(capture->fd);
        capture->fd = -1;
        return;
    }
    kept = (size_t)got < room ? (size_t)got : room;
    grown = realloc(capture->bytes, capture->length + kept);
    if (grown == NULL) {
        kept = 0;
    } else {
        memcpy(grown + capture->length, buffer, kept);
        capture->bytes = grown;
    }
    capture->length += kept;
    capture->dropped += got - (ssize_t)kept;
}

static void capture_both(struct capture captures[2])
{
    while (captures[0].fd >= 0 || captures[1].fd >= 0) {
        struct pollfd watched[2] = {{.fd = captures[0].fd, .events = POLLIN},
                                    {.fd = captures[1].fd, .events = POLLIN}};

        if (poll(watched, 2, -1) < 0 && errno != EINTR)
            return;
        for (size_t i = 0; i < 2; i++)
            if (watched[i].revents != 0)
                capture_more(&captures[i]);
    }
}

static _Noreturn void become_command(char *const argv[], int out, int err)
{
    int null = open("/dev/null", O_RDONLY);

    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    closefrom(STDERR_FILENO + 1);
    execvp(argv[0], argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(CANNOT_START);
}

static json_t *failure(const char *message)
{
    return json_pack("{ss}", "error", message);
}

static json_t *run(char *const argv[])
{
    struct capture captures[2] = {{.fd = -1}, {.fd = -1}};
    int out[2];
    int err[2];
    int wait_status = 0;
    char *texts[2];
    json_t *answer;
    pid_t pid;

    if (pipe(out) != 0 || pipe(err) != 0)
        return failure("cannot make a pipe");
    pid = fork();
    if (pid == 0)
        become_command(argv, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    captures[0].fd = out[0];
    captures[1].fd = err[0];
    capture_both(captures);
    if (pid < 0 || waitpid(pid, &wait_status, 0) < 0)
        answer = failure("cannot start a process");
    else
        answer = json_pack("{si}", "status",
                           WIFSIGNALED(wait_status) ? SIGNALLED + WTERMSIG(wait_status)
                                                    : WEXITSTATUS(wait_status));
    for (size_t i = 0; i < 2; i++) {
        texts[i] = base64_encode(captures[i].bytes, captures[i].length);
        json_object_set_new(answer, i == 0 ? "stdout" : "stderr", json_string(texts[i]));
        free(texts[i]);
        free(captures[i].bytes);
    }
    json_object_set_new(answer, "dropped", json_integer(captures[0].dropped + captures[1].dropped));
    return answer;
}

static json_t *run_shell(const char *command)
{
    /* A login shell: /etc/profile puts the real ip and tc before busybox's. */
    char *argv[] = {(char *)"/bin/sh", (char *)"-lc", NULL, NULL};
    char *text = strdup(command);
    json_t *answer;

    argv[2] = text;
    answer = run(argv);
    free(text);
    return answer;
}

static json_t *run_list(const json_t *list)
{
    size_t count = json_array_size(list);
    char **argv = calloc(count + 1, sizeof(*argv));
    json_t *answer = NULL;

    for (size_t i = 0; argv != NULL && i < count; i++) {
        const char *word = json_string_value(json_array_get(list, i));

        if (word == NULL)
            answer = failure("argv: must hold strings");
        else
            argv[i] = strdup(word);
    }
    if (argv == NULL || count == 0)
        answer = failure("argv: must not be empty");
    if (answer == NULL)
        answer = run(argv);
    for (size_t i = 0; argv != NULL && i < count; i++)
        free(argv[i]);
    free(argv);
    return answer;
}

/* The line of `answer` (taken) to `command`. */
static char *finish(json_t *answer, const json_t *command)
{
    json_t *id = json_object_get(command, "id");
    char *text;

    if (id != NULL)
        json_object_set(answer, "id", id);
    else
        json_object_set_new(answer, "id", json_null());
    text = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    return text;
}

char *exec_answer(const char *request)
{
    json_error_t error;
    json_t *command = json_loads(request, 0, &error);
    const json_t *argv = json_object_get(command, "argv");
    const json_t *shell = json_object_get(command, "shell");
    json_t *answer;
    char *text;

    if (command == NULL)
        answer = failure(error.text);
    else if (json_is_array(argv))
        answer = run_list(argv);
    else if (json_is_string(shell))
        answer = run_shell(json_string_value(shell));
    else
        answer = failure("must have \"argv\" or \"shell\"");
    text = finish(answer, command);
    json_decref(command);
    return text;
}

static bool write_line(int port, const char *text)
{
    size_t length = strlen(text);
    size_t done = 0;

    while (done <= length) {
        bool last = done == length;
        ssize_t written = last ? write(port, "\n", 1) : write(port, text + done, length - done);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        done += last ? 1 : (size_t)written;
    }
    return true;
}

/* An answer to whoever asked, where a process that was to give it has died. */
static void write_refusal(int port, const char *request)
{
    json_error_t error;
    json_t *command = json_loads(request, 0, &error);
    char *text = finish(failure("out of memory, or killed before it could answer"), command);

    write_line(port, ""); /* ends what may have been written of an answer */
    if (text != NULL)
        write_line(port, text);
    free(text);
    json_decref(command);
}

/* In a process of its own: what kills it, such as a lack of memory, must not leave the port dead.
 */
static void serve_request(int port, const char *request)
{
    int wait_status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        const char *answer = exec_answer(request);

        _exit(answer != NULL && write_line(port, answer) ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &wait_status, 0) < 0 || wait_status != 0)
        write_refusal(port, request);
}

void exec_serve(void)
{
    static char request[REQUEST_LIMIT];
    size_t length = 0;
    int port = ports_open("sundial.exec", O_RDWR | O_CLOEXEC);

    while (port >= 0) {
        ssize_t got = read(port, request + length, sizeof(request) - length - 1);
        char *end;

        if (got <= 0) { /* no host is connected */
            usleep(IDLE_US);
            continue;
        }
        length += (size_t)got;
        request[length] = '\0';
        while ((end = strchr(request, '\n')) != NULL) {
            *end = '\0';
            serve_request(port, request);
            length -= (size_t)(end + 1 - request);
            memmove(request, end + 1, length + 1);
        }
        if (length == sizeof(request) - 1)
            length = 0; /* a line longer than any command */
    }
}
