/* SPDX-License-Identifier: Apache-2.0 */
/* cpio, "newc": a header of 110 characters, hexadecimal; name and data padded to 4. */
#include "initrd.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "boot_info.h"

enum { HEADER = 110, FIELD_SIZE = 6 + 6 * 8, FIELD_NAME_SIZE = 6 + 11 * 8 };

struct entry {
    const char *name; /* without folder */
    const void *data;
    size_t length;
};

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

/* The entry at *offset, which is moved past it; false at the end, or if the archive is damaged. */
static bool read_entry(size_t *offset, struct entry *entry)
{
    size_t bytes, name_size, data_at;
    const char *archive = boot_initrd(&bytes);
    const char *header, *slash;

    if (archive == NULL || bytes - *offset < HEADER)
        return false;
    header = archive + *offset;
    if (memcmp(header, "070701", 6) != 0)
        return false;
    if (!read_field(header + FIELD_SIZE, &entry->length) ||
        !read_field(header + FIELD_NAME_SIZE, &name_size))
        return false;
    data_at = (*offset + HEADER + name_size + 3) & ~(size_t)3;
    if (name_size == 0 || data_at > bytes || entry->length > bytes - data_at ||
        header[HEADER + name_size - 1] != '\0')
        return false;
    entry->name = header + HEADER;
    while ((slash = strchr(entry->name, '/')) != NULL)
        entry->name = slash + 1;
    entry->data = archive + data_at;
    *offset = (data_at + entry->length + 3) & ~(size_t)3;
    if (*offset > bytes)
        *offset = bytes;
    return strcmp(entry->name, "TRAILER!!!") != 0;
}

const void *initrd_find(const char *name, size_t *length)
{
    struct entry entry;
    size_t offset = 0;

    while (read_entry(&offset, &entry)) {
        if (strcmp(entry.name, name) == 0) {
            *length = entry.length;
            return entry.data;
        }
    }
    return NULL;
}

const char *initrd_at(unsigned index)
{
    struct entry entry;
    size_t offset = 0;

    while (read_entry(&offset, &entry))
        if (index-- == 0)
            return entry.name;
    return NULL;
}
