/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel/initrd.c on the host, for tests/test_initrd.py: reads the archive argv[1], or with --cuts
 * each of its beginnings, and prints what the kernel says and each file with its length and bytes.
 */
#include "kernel/initrd.c"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *archive;
static size_t archive_bytes;

const void *boot_initrd(size_t *length)
{
    *length = archive_bytes;
    return archive;
}

void kprintf(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

void panic(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    printf("PANIC: ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    exit(0);
}

/* Of a copy without a byte to spare: the sanitizer notices a step too far. */
static void read_copy(const char *bytes, size_t length)
{
    char *copy = malloc(length);
    const char *name;

    if (copy == NULL)
        exit(2);
    memcpy(copy, bytes, length);
    archive = copy;
    archive_bytes = length;
    file_count = 0;
    initrd_init();
    for (unsigned i = 0; (name = initrd_at(i)) != NULL; i++) {
        size_t size;
        const unsigned char *data = initrd_find(name, &size);

        printf("file %s %zu ", name, size);
        for (size_t k = 0; k < size; k++)
            printf("%02x", data[k]);
        printf("\n");
    }
    free(copy);
}

int main(int argc, char **argv)
{
    static char bytes[1 << 20];
    FILE *file = argc < 2 ? NULL : fopen(argv[1], "rb");
    size_t length;

    if (file == NULL) {
        fprintf(stderr, "initrd_main ARCHIVE [--cuts]\n");
        return 2;
    }
    length = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    if (argc > 2)
        for (size_t cut = 0; cut < length; cut++) {
            printf("cut %zu\n", cut);
            read_copy(bytes, cut);
        }
    else
        read_copy(bytes, length);
    return 0;
}
