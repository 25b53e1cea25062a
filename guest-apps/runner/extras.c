/* SPDX-License-Identifier: Apache-2.0 */
#include "extras.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpio.h"
#include "lz4.h"

static const char ARCHIVE[] = "/lib/extras.cpio.lz4";

static bool needs(const struct json_value *tasks)
{
    static const char *const names[] = {
#define EXTRA(name) name,
#include "extras_apps.h"
#undef EXTRA
    };
    struct json_walk walk;
    struct job_task task;

    json_walk_start(&walk, tasks);
    while (job_next_task(&walk, &task))
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
            if (strcmp(task.app, names[i]) == 0)
                return true;
    return false;
}

bool extras_are_needed(const struct job *job)
{
    return job->wait || job->interactive || job->bridge_port_count > 0 || needs(&job->services) ||
           needs(&job->steps);
}

static uint8_t *decode(int file, size_t *length)
{
    struct stat status;
    uint8_t *frame;
    uint8_t *archive;

    if (fstat(file, &status) != 0)
        return NULL;
    frame = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (frame == MAP_FAILED)
        return NULL;
    archive = lz4_decode_legacy(frame, (size_t)status.st_size, length);
    munmap(frame, (size_t)status.st_size);
    return archive;
}

int extras_unpack(void)
{
    int file = open(ARCHIVE, O_RDONLY | O_CLOEXEC);
    uint8_t *archive;
    size_t length;
    int root;
    int result = -1;

    if (file < 0)
        return 0; /* unpacked before, and removed below */
    archive = decode(file, &length);
    close(file);
    if (archive == NULL)
        return -1;
    /* Before anything is written: a small machine has no room for the archive in both its forms. */
    unlink(ARCHIVE);
    root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0) {
        result = cpio_unpack(archive, length, root);
        close(root);
    }
    free(archive);
    return result;
}

void extras_let_load(bool load)
{
    static bool loads = true; /* the kernel's default */
    int file = load == loads ? -1 : open("/proc/sys/kernel/modprobe", O_WRONLY | O_CLOEXEC);

    loads = load;
    if (file < 0)
        return;
    dprintf(file, "%s\n", load ? "/sbin/modprobe" : "");
    close(file);
}
