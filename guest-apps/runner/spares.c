/* SPDX-License-Identifier: Apache-2.0 */
#include "spares.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"
#include "spare.h"

enum { SPARES = 4 }; /* quickstart's client has as many steps, no server more services */

static const char PROGRAM[] = "/usr/lib/sundial/apps";

static struct spare {
    pid_t pid; /* 0: none, or taken */
    int order; /* writing end */
    int output;
} spares[SPARES];

static void keep_open(int file)
{
    fcntl(file, F_SETFD, 0);
}

static pid_t start(int source, int output)
{
    char numbers[2][16];
    pid_t pid;

    snprintf(numbers[0], sizeof(numbers[0]), "%d", source);
    snprintf(numbers[1], sizeof(numbers[1]), "%d", output);
    pid = vfork();
    if (pid != 0)
        return pid;
    process_become_ordinary();
    keep_open(source);
    keep_open(output);
    execl(PROGRAM, "spare", numbers[0], numbers[1], (char *)NULL);
    _exit(EXIT_FAILURE);
}

void spares_start(void)
{
    for (struct spare *spare = spares; spare < spares + SPARES; spare++) {
        int orders[2];
        int outputs[2];

        if (pipe2(orders, O_CLOEXEC) != 0 || pipe2(outputs, O_CLOEXEC) != 0)
            return; /* then there are less */
        *spare = (struct spare){start(orders[0], outputs[1]), orders[1], outputs[0]};
        close(orders[0]);
        close(outputs[1]);
    }
}

bool spares_can_become(const char *path)
{
    char target[sizeof(PROGRAM)];
    ssize_t length = readlink(path, target, sizeof(target));
    const char *name = strrchr(PROGRAM, '/') + 1;

    return length == (ssize_t)strlen(name) && memcmp(target, name, (size_t)length) == 0;
}

/* Appends `word` with its NUL; false where there is no room. */
static bool put(char *text, size_t *length, const char *word)
{
    size_t bytes = strlen(word) + 1;

    if (bytes > SPARE_BYTES - *length)
        return false;
    memcpy(text + *length, word, bytes);
    *length += bytes;
    return true;
}

static bool write_exactly(int file, const void *bytes, size_t length)
{
    for (size_t put = 0; put < length;) {
        ssize_t part = write(file, (const char *)bytes + put, length - put);

        if (part <= 0)
            return false;
        put += (size_t)part;
    }
    return true;
}

const char *spares_order(const char *app, const char *options, size_t *length)
{
    static char text[SPARE_BYTES];
    bool fits;

    *length = 0;
    fits = put(text, length, app) && put(text, length, options);
    for (char **variable = environ; fits && *variable != NULL; variable++)
        fits = put(text, length, *variable);
    return fits ? text : NULL;
}

static bool tell(int file, bool speaks, const char *app, const char *options)
{
    size_t length;
    const char *text = spares_order(app, options, &length);

    if (text == NULL)
        return false;
    const struct spare_order order = {.bytes = (uint32_t)length, .speaks = speaks};
    return write_exactly(file, &order, sizeof(order)) && write_exactly(file, text, length);
}

pid_t spares_become(const char *path, const char *app, const char *options, int *output)
{
    struct spare *spare = spares;
    pid_t pid;

    while (spare < spares + SPARES && spare->pid <= 0)
        spare++;
    if (spare == spares + SPARES || !spares_can_become(path) ||
        !tell(spare->order, output != NULL, app, options))
        return -1;
    close(spare->order);
    if (output != NULL)
        *output = spare->output;
    else
        close(spare->output);
    pid = spare->pid;
    spare->pid = 0;
    return pid;
}

void spares_end(void)
{
    for (struct spare *spare = spares; spare < spares + SPARES; spare++) {
        if (spare->pid <= 0)
            continue;
        close(spare->order);
        close(spare->output);
        kill(spare->pid, SIGKILL);
        waitpid(spare->pid, NULL, 0);
        spare->pid = 0;
    }
}
