/* SPDX-License-Identifier: Apache-2.0 */
/* Lines to the record stream and to the log. */
#include <unistd.h>

#include "node_state.h"

enum { SAMPLES_FD = 3 };

int node_write(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, text, length);

        if (written <= 0)
            return -SSS_EIO;
        text += written;
        length -= (size_t)written;
    }
    return 0;
}

int node_record(const char *text, size_t length)
{
    return node_write(SAMPLES_FD, text, length);
}
