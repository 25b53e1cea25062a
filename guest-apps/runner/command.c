/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "syscalls.h"

enum {
    SIGNALLED = 128, /* exit statuses above this mean a signal, as in the shell */
    CANNOT_START = 127,
    END_OF_FILE = 4,        /* the key, on a terminal */
    PIPE_BYTES = 64 * 1024, /* what a pipe or a terminal holds at most */
};

static const int64_t PATIENCE_NS = 2000000000; /* between hanging up and killing */

static void close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

static bool make_nonblocking(int end)
{
    return fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) == 0;
}

/* In the child. `ends`: its standard streams. */
static _Noreturn void become_command(char *const argv[], const int ends[3],
                                     const struct terminal *terminal)
{
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    sigset_t none;

    if (score >= 0 && write(score, "0", 1) != 1)
        _exit(CANNOT_START);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    for (int i = 0; i < 3; i++)
        dup2(ends[i], i);
    close_descriptors_from(STDERR_FILENO + 1);
    if (terminal != NULL) {
        ioctl(STDIN_FILENO, TIOCSCTTY, 0);
        setenv("TERM", terminal->type, 1);
    }
    execvp(argv[0], argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(CANNOT_START);
}

/* `far`: the ends that the command gets. */
static bool open_pipes(struct command *command, int far[3])
{
    int ends[2];

    for (int i = 0; i < 3; i++) {
        if (pipe2(ends, O_CLOEXEC) != 0)
            return false;
        far[i] = ends[i == 0 ? 0 : 1];
        *(i == 0 ? &command->in : &command->out[i - 1]) = ends[i == 0 ? 1 : 0];
        if (!make_nonblocking(ends[i == 0 ? 1 : 0]))
            return false;
    }
    return true;
}

static bool open_terminal(struct command *command, const struct terminal *terminal, int far[3])
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (master < 0)
        return false;
    command->in = master;
    command->out[0] = dup(master);
    if (unlockpt(master) != 0 || ioctl(master, TIOCSWINSZ, &terminal->window) != 0 ||
        !make_nonblocking(master))
        return false;
    far[0] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    far[1] = far[0];
    far[2] = far[0];
    return command->out[0] >= 0 && far[0] >= 0;
}

const char *command_start(struct command *command, char *const argv[],
                          const struct terminal *terminal)
{
    int far[3] = {-1, -1, -1};
    const char *error = NULL;
    bool opened;

    command->in = command->out[0] = command->out[1] = command->ended = -1;
    command->rest[0] = command->rest[1] = SIZE_MAX;
    command->terminal = terminal != NULL;
    command->input = malloc(COMMAND_INPUT_BYTES);
    opened = terminal != NULL ? open_terminal(command, terminal, far) : open_pipes(command, far);
    if (!opened || command->input == NULL)
        error = terminal != NULL ? "cannot make a terminal" : "cannot make a pipe";
    else if ((command->pid = fork()) == 0)
        become_command(argv, far, terminal);
    else if (command->pid < 0 || (command->ended = open_process(command->pid)) < 0)
        error = "cannot start a process";
    close_end(&far[0]);
    if (terminal == NULL) {
        close_end(&far[1]);
        close_end(&far[2]);
    }
    if (error != NULL)
        command_release(command);
    return error;
}

bool command_put_input(struct command *command, const uint8_t *bytes, size_t length)
{
    if (length > COMMAND_INPUT_BYTES - command->input_length)
        return false;
    memcpy(command->input + command->input_length, bytes, length);
    command->input_length += length;
    command_write_input(command);
    return true;
}

static void took(struct command *command, size_t length)
{
    command->input_length -= length;
    command->input_taken += length;
    memmove(command->input, command->input + length, command->input_length);
}

static void end_input(struct command *command)
{
    static const char key = END_OF_FILE;

    if (command->terminal) {
        if (write(command->in, &key, 1) < 0 && errno == EAGAIN)
            return;
        command->input_ends = false;
    } else {
        close_end(&command->in);
    }
}

void command_write_input(struct command *command)
{
    while (command->input_length > 0) {
        ssize_t written = command->in < 0
                              ? (ssize_t)command->input_length /* it reads no more: gone */
                              : write(command->in, command->input, command->input_length);

        if (written < 0 && errno == EAGAIN)
            return;
        if (written < 0)
            close_end(&command->in);
        else
            took(command, (size_t)written);
    }
    if (command->input_ends && command->in >= 0)
        end_input(command);
}

size_t command_read_output(struct command *command, int stream, void *bytes, size_t room)
{
    size_t *rest = &command->rest[stream];
    ssize_t got = 0;

    if (command->out[stream] >= 0 && *rest > 0)
        got = read(command->out[stream], bytes, room < *rest ? room : *rest);
    if (got > 0) {
        *rest -= (size_t)got;
        return (size_t)got;
    }
    if (got == 0 || errno != EAGAIN || command->ended < 0)
        close_end(&command->out[stream]);
    return 0;
}

void command_signal(struct command *command, int number)
{
    pid_t group = command->pid;
    pid_t foreground;

    if (command->ended < 0)
        return;
    if (command->terminal && ioctl(command->in, TIOCGPGRP, &foreground) == 0 && foreground > 0)
        group = foreground;
    /* Before its setsid there is no such group. */
    if (kill(-group, number) != 0)
        kill(command->pid, number);
}

void command_set_window(struct command *command, const struct winsize *window)
{
    if (command->terminal)
        ioctl(command->in, TIOCSWINSZ, window);
}

void command_hang_up(struct command *command, int64_t now_ns)
{
    if (command->hung_up)
        return;
    command_signal(command, SIGHUP);
    command->hung_up = true;
    command->kill_ns = now_ns + PATIENCE_NS;
    command->input_length = 0;
    close_end(&command->in);
    close_end(&command->out[0]);
    close_end(&command->out[1]);
}

bool command_has_ended(struct command *command)
{
    siginfo_t info = {0};

    if (command->ended < 0)
        return true;
    if (waitid(P_PIDFD, (id_t)command->ended, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return false;
    command->status = info.si_code == CLD_EXITED ? info.si_status : SIGNALLED + info.si_status;
    close_end(&command->ended);
    /* Processes that it leaves behind may hold its streams, and go on writing. */
    command->rest[0] = command->rest[1] = PIPE_BYTES;
    return true;
}

void command_release(struct command *command)
{
    close_end(&command->in);
    close_end(&command->out[0]);
    close_end(&command->out[1]);
    close_end(&command->ended);
    free(command->input);
    *command = (struct command){.used = false};
}
