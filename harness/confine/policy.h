// SPDX-License-Identifier: Apache-2.0
// What one machine's QEMU is allowed: the file that confine.c describes.

#ifndef SUNDIAL_CONFINE_POLICY_H
#define SUNDIAL_CONFINE_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#define POLICY_BYTES  16384
#define POLICY_PLACES 64

enum right { RIGHT_READ, RIGHT_PROGRAM, RIGHT_WRITE, RIGHT_DEVICE };

struct place {
    enum right right;
    const char *path;
};

struct policy {
    const char *emulator;
    unsigned user, group;          // 0: stay who one is
    unsigned long long file_bytes; // 0: no limit
    int count;
    struct place places[POLICY_PLACES];
    char text[POLICY_BYTES];
};

// False with a reason in `why` where the file cannot be read or a line of it is not understood:
// nothing is guessed here.
bool policy_read(struct policy *policy, const char *path, char *why, size_t size);

#endif
