/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpio, "newc": a header of 110 characters, hexadecimal; name and data padded to 4. Behind the
 * image's archive there may be another one, of files that belong to the machine alone; what comes
 * later wins.
 */
#include "initrd.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "boot_info.h"
#include "console.h"
#include "panic.h"

enum {
    HEADER = 110,
    FIELD_MODE = 6 + 1 * 8,
    FIELD_SIZE = 6 + 6 * 8,
    FIELD_NAME_SIZE = 6 + 11 * 8,
    FILE_TYPE = 0170000,
    REGULAR = 0100000,
    FILES = 128,
};

static struct file {
    const char *name; /* without folder */
    const void *data;
    size_t length;
} files[FILES];
static unsigned file_count;

static bool read_field(const char *text, size_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < 8; i++) {
        char digit = text[i];
        unsigned number = digit >= '0' && digit <= '9' ? (unsigned)(digit - '0')
                                                       : (unsigned)((digit | 0x20) - 'a') + 10;

        if (number > 15)
            return false;
        *value = *value << 4 | number;
    }
    return true;
}

/* The entry at *offset, which is moved past it; false if it is damaged. */
static bool read_entry(const char *archive, size_t bytes, size_t *offset, struct file *file,
                       size_t *mode)
{
    const char *header = archive + *offset, *slash;
    size_t name_size, data_at;

    if (bytes - *offset < HEADER || memcmp(header, "070701", 6) != 0 ||
        !read_field(header + FIELD_MODE, mode) || !read_field(header + FIELD_SIZE, &file->length) ||
        !read_field(header + FIELD_NAME_SIZE, &name_size))
        return false;
    data_at = (*offset + HEADER + name_size + 3) & ~(size_t)3;
    if (name_size == 0 || data_at > bytes || file->length > bytes - data_at ||
        header[HEADER + name_size - 1] != '\0')
        return false;
    file->name = header + HEADER;
    while ((slash = strchr(file->name, '/')) != NULL)
        file->name = slash + 1;
    file->data = archive + data_at;
    *offset = (data_at + file->length + 3) & ~(size_t)3;
    if (*offset > bytes)
        *offset = bytes;
    return true;
}

static struct file *find(const char *name)
{
    for (unsigned i = 0; i < file_count; i++)
        if (strcmp(files[i].name, name) == 0)
            return &files[i];
    return NULL;
}

static void keep(const struct file *file)
{
    struct file *place = find(file->name);

    if (place == NULL) {
        if (file_count == FILES)
            panic("the initrd has more than %d files", FILES);
        place = &files[file_count++];
    }
    *place = *file;
}

void initrd_init(void)
{
    size_t bytes, mode, offset = 0;
    const char *archive = boot_initrd(&bytes);
    struct file file;

    if (archive == NULL)
        return;
    for (;;) {
        while (offset < bytes && archive[offset] == '\0')
            offset++;
        if (offset == bytes)
            return;
        if (!read_entry(archive, bytes, &offset, &file, &mode)) {
            kprintf("initrd: damaged at byte %zu\n", offset);
            return;
        }
        if ((mode & FILE_TYPE) == REGULAR)
            keep(&file);
    }
}

const void *initrd_find(const char *name, size_t *length)
{
    const struct file *file = find(name);

    if (file == NULL)
        return NULL;
    *length = file->length;
    return file->data;
}

const char *initrd_at(unsigned index)
{
    return index < file_count ? files[index].name : NULL;
}
