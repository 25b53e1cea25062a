/* SPDX-License-Identifier: Apache-2.0 */
#include "elf.h"

#include <stdbool.h>
#include <string.h>

#include "memory.h"
#include "space.h"
#include "sss/abi.h"
#include "user.h"

struct elf_header {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, segments, sections;
    uint32_t flags;
    uint16_t header_bytes, segment_bytes, segment_count, section_bytes, section_count,
        section_names;
};
struct elf_segment {
    uint32_t type, flags;
    uint64_t offset, address, physical, file_bytes, memory_bytes, align;
};
enum {
    ELF_EXECUTABLE = 2,
    ELF_X86_64 = 62,
    SEGMENT_LOAD = 1,
    SEGMENT_EXECUTE = 1,
    SEGMENT_WRITE = 2
};

static const char *check_header(const struct elf_header *header, size_t length)
{
    static const uint8_t ident[7] = {0x7f, 'E', 'L', 'F', 2 /* 64 bits */, 1 /* little endian */,
                                     1};

    if (length < sizeof(*header) || memcmp(header->ident, ident, sizeof(ident)) != 0)
        return "it is not an ELF64 file";
    if (header->type != ELF_EXECUTABLE || header->machine != ELF_X86_64)
        return "it is not a static executable for x86-64";
    if (header->segment_bytes != sizeof(struct elf_segment) || header->segment_count == 0 ||
        header->segments > length ||
        header->segment_count > (length - header->segments) / sizeof(struct elf_segment))
        return "its segments are outside of the file";
    return NULL;
}

static const char *check_segment(const struct elf_segment *segment, size_t length)
{
    if (segment->file_bytes > segment->memory_bytes || segment->offset > length ||
        segment->file_bytes > length - segment->offset)
        return "a segment is outside of the file";
    if (segment->address < SSS_TEXT || segment->address >= SSS_HEAP ||
        segment->memory_bytes > SSS_HEAP - segment->address)
        return "a segment is outside of the program's addresses";
    if ((segment->flags & SEGMENT_WRITE) && (segment->flags & SEGMENT_EXECUTE))
        return "a segment is writable and executable";
    return NULL;
}

/* Through the direct map: the pages may be read-only for the task. */
static void fill(struct task *task, uint64_t address, const char *bytes, uint64_t length)
{
    while (length != 0) {
        uint64_t part = PAGE - address % PAGE;
        int why;
        void *page = task_page(task, address, false, &why);

        if (part > length)
            part = length;
        memcpy(page, bytes, part);
        address += part;
        bytes += part;
        length -= part;
    }
}

static int load_segment(struct task *task, const struct elf_segment *segment, const char *file,
                        const char **why)
{
    uint64_t begin = segment->address & ~(PAGE - 1);
    uint64_t end = (segment->address + segment->memory_bytes + PAGE - 1) & ~(PAGE - 1);
    unsigned protection = SSS_READ;
    int error;

    if (segment->flags & SEGMENT_WRITE)
        protection |= SSS_WRITE;
    if (segment->flags & SEGMENT_EXECUTE)
        protection |= SSS_EXECUTE;
    error = space_map(task, begin, end - begin, protection);
    if (error == -SSS_EEXIST) {
        *why = "two segments share a page";
        return -SSS_EINVAL;
    }
    if (error != 0) {
        *why = "no memory is left for it";
        return error;
    }
    fill(task, segment->address, file + segment->offset, segment->file_bytes);
    return 0;
}

static bool executable_at(const struct elf_segment *segments, unsigned count, uint64_t address)
{
    for (unsigned i = 0; i < count; i++)
        if (segments[i].type == SEGMENT_LOAD && (segments[i].flags & SEGMENT_EXECUTE) &&
            address - segments[i].address < segments[i].memory_bytes)
            return true;
    return false;
}

int elf_load(struct task *task, const void *file, size_t length, uint64_t *entry, const char **why)
{
    struct elf_header header;
    const struct elf_segment *segments;
    int error;

    *why = check_header(file, length);
    if (*why != NULL)
        return -SSS_EINVAL;
    memcpy(&header, file, sizeof(header));
    segments = (const struct elf_segment *)((const char *)file + header.segments);
    for (unsigned i = 0; i < header.segment_count; i++) {
        if (segments[i].type != SEGMENT_LOAD || segments[i].memory_bytes == 0)
            continue;
        *why = check_segment(&segments[i], length);
        if (*why != NULL)
            return -SSS_EINVAL;
        error = load_segment(task, &segments[i], file, why);
        if (error != 0)
            return error;
    }
    if (!executable_at(segments, header.segment_count, header.entry)) {
        *why = "its entry is not in an executable segment";
        return -SSS_EINVAL;
    }
    *entry = header.entry;
    return 0;
}
