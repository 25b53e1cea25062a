/* SPDX-License-Identifier: Apache-2.0 */
/* The spare's side of spares.h. */
#include "spare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "apps.h"

static void read_exactly(int file, void *bytes, size_t length)
{
    for (size_t got = 0; got < length;) {
        ssize_t part = read(file, (char *)bytes + got, length - got);

        if (part <= 0)
            _exit(EXIT_FAILURE);
        got += (size_t)part;
    }
}

/* argv: its name, and the numbers of the files of its order and of its own standard output. */
int spare_main(int argc, char **argv)
{
    static char text[SPARE_BYTES];
    struct spare_order order;
    int source = argc == 3 ? atoi(argv[1]) : -1;
    int output = argc == 3 ? atoi(argv[2]) : -1;
    char *options;
    char *arguments[3];

    read_exactly(source, &order, sizeof(order));
    if (order.bytes > sizeof(text))
        return EXIT_FAILURE;
    read_exactly(source, text, order.bytes);
    close(source);
    if (order.speaks)
        dup2(output, STDOUT_FILENO);
    close(output);
    options = text + strlen(text) + 1;
    for (char *variable = options + strlen(options) + 1; variable < text + order.bytes;
         variable += strlen(variable) + 1)
        putenv(variable);
    prctl(PR_SET_NAME, text);
    arguments[0] = text;
    arguments[1] = options;
    arguments[2] = NULL;
    return apps_run(2, arguments);
}
