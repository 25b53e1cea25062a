/* SPDX-License-Identifier: Apache-2.0 */

/* How often nodes have been started on this machine, in a file: each start is an incarnation. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "node_state.h"

static bool count(int fd, uint32_t *starts)
{
    uint32_t before = 0;
    ssize_t length;

    if (flock(fd, LOCK_EX) != 0)
        return false;
    length = pread(fd, &before, sizeof(before), 0);
    if (length != 0 && length != (ssize_t)sizeof(before)) {
        if (length > 0)
            errno = EINVAL;
        return false;
    }
    *starts = before + 1;
    return pwrite(fd, starts, sizeof(*starts), 0) == (ssize_t)sizeof(*starts);
}

bool node_count_start(const char *path, uint32_t *starts)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), error;
    bool counted;

    if (fd < 0)
        return false;
    counted = count(fd, starts);
    error = errno;
    close(fd);
    errno = error;
    return counted;
}
