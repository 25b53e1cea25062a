/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* System calls that musl has no function for. */
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Closes `first` and all above it (Linux 5.9). */
static inline void close_descriptors_from(int first)
{
    syscall(SYS_close_range, (unsigned)first, UINT_MAX, 0U);
}

/* A descriptor that is readable once the process has ended (Linux 5.3). */
static inline int open_process(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0U);
}
