/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

/*
 * One command of the port sundial.exec: a session of its own with its three streams, either pipes
 * or one terminal. Nothing here blocks.
 */

enum { COMMAND_INPUT_BYTES = 64 * 1024 };

struct command {
    bool used;
    int64_t id;
    pid_t pid;
    int ended;       /* pidfd: readable when the process has ended; -1: it is reaped */
    int in;          /* where its input goes; -1: closed */
    int out[2];      /* where its output and its error output come from; -1: closed */
    bool terminal;   /* in and out[0] are the same */
    int status;      /* once it has ended */
    bool hung_up;    /* no client listens any more */
    int64_t kill_ns; /* hung up: when it is killed */
    uint8_t *input;  /* COMMAND_INPUT_BYTES that its pipe has not taken yet */
    size_t input_length;
    bool input_ends;    /* after those bytes */
    size_t input_taken; /* bytes that went into the pipe, and that the host does not know of */
    size_t credit;      /* bytes of output that the host takes at present */
    size_t rest[2];     /* how much of each output is still read: much, until it has ended */
};

/* What a terminal is at its start; type: for TERM. */
struct terminal {
    const char *type;
    struct winsize window;
};

/* Starts `argv`; `terminal` NULL: with pipes. NULL, or what failed. */
const char *command_start(struct command *command, char *const argv[],
                          const struct terminal *terminal);

/* Takes input. False: the host has sent more than COMMAND_INPUT_BYTES before they were taken. */
bool command_put_input(struct command *command, const uint8_t *bytes, size_t length);

/* Writes as much of its input as it takes. */
void command_write_input(struct command *command);

/* Reads what it has written to stream 0 or 1: the number of bytes; 0: nothing at present, or ever.
 */
size_t command_read_output(struct command *command, int stream, void *bytes, size_t room);

/* To all of its processes; a terminal's signals go to those in its foreground. */
void command_signal(struct command *command, int number);

void command_set_window(struct command *command, const struct winsize *window);

/* No client listens any more: it gets SIGHUP, and is killed later if it does not end. */
void command_hang_up(struct command *command, int64_t now_ns);

/* Looks whether it has ended. */
bool command_has_ended(struct command *command);

/* Closes what is open of one that has ended. */
void command_release(struct command *command);
