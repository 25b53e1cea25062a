/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* One line of the port sundial.exec, as the host writes it (exec.h). */

enum request_kind {
    REQUEST_INVALID,
    REQUEST_START,
    REQUEST_INPUT,
    REQUEST_END_OF_INPUT,
    REQUEST_SIGNAL,
    REQUEST_WINDOW,
    REQUEST_TAKEN,
    REQUEST_HANG_UP,
};

struct request {
    enum request_kind kind;
    bool numbered; /* whether `id` was given */
    json_int_t id;
    const char *error; /* of an invalid one */
    char **argv;       /* REQUEST_START: ended by NULL */
    bool wants_terminal;
    const char *terminal; /* its type, for TERM */
    struct winsize window;
    uint8_t *input;
    size_t length; /* of `input`; REQUEST_TAKEN: bytes of output that the host has passed on */
    int signal;
    json_t *document; /* holds the texts */
};

/* Reads a line of `length` bytes; whatever it is, `request` must be released. */
void request_read(struct request *request, const char *line, size_t length);

void request_release(struct request *request);
