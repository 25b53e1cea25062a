/* SPDX-License-Identifier: Apache-2.0 */
#include "extras.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpio.h"
#include "lz4.h"
#include "zygote.h"

static const char PROGRAMS[] = "/usr/lib/sundial";

enum { PARTS_LIMIT = 100 };

static bool is_extra(const struct job_task *task)
{
    static const char *const names[] = {
#define EXTRA(name) name,
#include "extras_apps.h"
#undef EXTRA
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(task->app, names[i]) == 0)
            return true;
    return false;
}

/* A program of Python, or one whose name is there alone: a link to what is still packed. */
static bool is_over_image(const struct job_task *task)
{
    char path[sizeof(PROGRAMS) + JOB_NAME];

    snprintf(path, sizeof(path), "%s/%s", PROGRAMS, task->app);
    return zygote_can_become(path) || access(path, X_OK) != 0;
}

static bool has(const struct json_value *tasks, bool (*is_it)(const struct job_task *))
{
    struct json_walk walk;
    struct job_task task;

    json_walk_start(&walk, tasks);
    while (job_next_task(&walk, &task))
        if (is_it(&task))
            return true;
    return false;
}

static bool needs(const struct job *job, bool (*is_it)(const struct job_task *))
{
    return job->wait || job->interactive || has(&job->services, is_it) || has(&job->steps, is_it);
}

bool extras_are_needed(const struct job *job)
{
    return job->bridge_port_count > 0 || needs(job, is_extra);
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

static int unpack(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *archive;
    size_t length;
    int root;
    int result = -1;

    if (file < 0)
        return 0; /* unpacked before, and removed below; or the image has none */
    archive = decode(file, &length);
    close(file);
    if (archive == NULL)
        return -1;
    /* Before anything is written: a small machine has no room for the archive in both its forms. */
    unlink(path);
    root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0) {
        result = cpio_unpack(archive, length, root);
        close(root);
    }
    munmap(archive, length);
    return result;
}

/* In parts, each removed before the next: a small machine has no room for all in both forms. */
static int unpack_python(void)
{
    char path[sizeof("/lib/python-00.cpio.lz4")];

    for (unsigned part = 0; part < PARTS_LIMIT; part++) {
        snprintf(path, sizeof(path), "/lib/python-%02u.cpio.lz4", part);
        if (access(path, F_OK) != 0)
            break; /* unpacked before, or the last was */
        if (unpack(path) != 0)
            return -1;
    }
    return 0;
}

int extras_unpack(const struct job *job)
{
    if (extras_are_needed(job) && unpack("/lib/extras.cpio.lz4") != 0)
        return -1;
    return needs(job, is_over_image) ? unpack_python() : 0;
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
