/* SPDX-License-Identifier: Apache-2.0 */
#include "cpio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER = 110,
    MAGIC = 6,
    FIELD = 8, /* hexadecimal digits of each field behind the magic number */
    MODE_FIELD = 1,
    SIZE_FIELD = 6,
    NAME_FIELD = 11,
    ALIGNMENT = 4,
};

struct entry {
    mode_t mode;
    const char *name; /* ended by a zero byte, inside the archive */
    const uint8_t *data;
    size_t size;
};

static size_t aligned(size_t offset)
{
    return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool read_field(const uint8_t *header, size_t index, size_t *value)
{
    static const char known[] = "0123456789abcdef";

    *value = 0;
    for (size_t i = 0; i < FIELD; i++) {
        int character = header[MAGIC + index * FIELD + i] | 0x20;
        const char *digit = memchr(known, character, sizeof(known) - 1);

        if (digit == NULL)
            return false;
        *value = *value << 4 | (size_t)(digit - known);
    }
    return true;
}

/*
 * Reads the entry at `*offset` and moves on to the next; false if it is not inside the archive.
 */
static bool read_entry(const uint8_t *archive, size_t length, size_t *offset, struct entry *entry)
{
    const uint8_t *header = archive + *offset;
    size_t mode;
    size_t name_size;
    size_t data_at;

    if (length < HEADER || *offset > length - HEADER || memcmp(header, "070701", MAGIC) != 0 ||
        !read_field(header, MODE_FIELD, &mode) || !read_field(header, SIZE_FIELD, &entry->size) ||
        !read_field(header, NAME_FIELD, &name_size))
        return false;
    if (name_size < 2 || name_size > length - *offset - HEADER ||
        header[HEADER + name_size - 1] != '\0')
        return false;
    data_at = aligned(*offset + HEADER + name_size);
    if (data_at > length || entry->size > length - data_at)
        return false;
    entry->mode = (mode_t)mode;
    entry->name = (const char *)header + HEADER;
    entry->data = archive + data_at;
    *offset = aligned(data_at + entry->size);
    return true;
}

static int write_file(const struct entry *entry, int folder)
{
    int file = openat(folder, entry->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      entry->mode & 07777);
    size_t done = 0;

    if (file < 0)
        return errno == EEXIST ? 0 : -1;
    while (done < entry->size) {
        ssize_t written = write(file, entry->data + done, entry->size - done);

        if (written <= 0)
            break;
        done += (size_t)written;
    }
    return close(file) == 0 && done == entry->size ? 0 : -1;
}

static int make_link(const struct entry *entry, int folder)
{
    char target[PATH_MAX];

    if (entry->size >= sizeof(target))
        return -1;
    memcpy(target, entry->data, entry->size);
    target[entry->size] = '\0';
    return symlinkat(target, folder, entry->name) == 0 || errno == EEXIST ? 0 : -1;
}

static int make_entry(const struct entry *entry, int folder)
{
    if (S_ISDIR(entry->mode))
        return mkdirat(folder, entry->name, entry->mode & 07777) == 0 || errno == EEXIST ? 0 : -1;
    if (S_ISLNK(entry->mode))
        return make_link(entry, folder);
    return S_ISREG(entry->mode) ? write_file(entry, folder) : -1;
}

/* Those of the pages of archive[from, to) that are whole; returns where the rest begins. */
static size_t give_back(uint8_t *archive, size_t from, size_t to)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = -((uintptr_t)archive + from) % page;
    size_t whole = to - from < first ? 0 : (to - from - first) / page * page;

    if (whole == 0 || madvise(archive + from + first, whole, MADV_DONTNEED) != 0)
        return from;
    return from + first + whole;
}

int cpio_unpack(uint8_t *archive, size_t length, int folder)
{
    struct entry entry;
    size_t offset = 0;
    size_t kept = 0;

    while (read_entry(archive, length, &offset, &entry)) {
        if (strcmp(entry.name, "TRAILER!!!") == 0)
            return 0;
        if (make_entry(&entry, folder) != 0)
            return -1;
        kept = give_back(archive, kept, offset < length ? offset : length);
    }
    return -1;
}
