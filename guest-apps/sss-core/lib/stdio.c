/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed is gathered to lines, and goes to the console line by line. */
#include <stdio.h>
#include <string.h>

#include "sss/system.h"

struct sss_stream {
    size_t length;
    char line[1024];
};
static struct sss_stream console;
FILE *const stdout = &console, *const stderr = &console;

static void flush(struct sss_stream *stream)
{
    if (stream->length != 0)
        sss_call(SSS_LOG, (uint64_t)stream->line, stream->length, 0, 0, 0, 0);
    stream->length = 0;
}

static void put_character(struct sss_stream *stream, char character)
{
    stream->line[stream->length++] = character;
    if (character == '\n' || stream->length == sizeof stream->line)
        flush(stream);
}

static void put(struct sss_stream *stream, const char *text)
{
    while (*text != '\0')
        put_character(stream, *text++);
}

static int put_format(struct sss_stream *stream, const char *format, va_list arguments)
{
    char text[1024]; /* longer lines lose their end */
    int length = vsnprintf(text, sizeof text, format, arguments);

    put(stream, text);
    return length;
}

int vprintf(const char *format, va_list arguments)
{
    return put_format(stdout, format, arguments);
}

int printf(const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = put_format(stdout, format, arguments);
    va_end(arguments);
    return length;
}

int fprintf(FILE *stream, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = put_format(stream, format, arguments);
    va_end(arguments);
    return length;
}

int puts(const char *text)
{
    put(stdout, text);
    put(stdout, "\n");
    return 0;
}

/* These four are also what the compiler makes of simple formats. */
int putchar(int character)
{
    return fputc(character, stdout);
}

int fputc(int character, FILE *stream)
{
    put_character(stream, (char)character);
    return (unsigned char)character;
}

int fputs(const char *text, FILE *stream)
{
    put(stream, text);
    return 0;
}

size_t fwrite(const void *data, size_t bytes, size_t count, FILE *stream)
{
    const char *text = data;

    for (size_t i = 0; i < bytes * count; i++)
        put_character(stream, text[i]);
    return count;
}

int fflush(FILE *stream)
{
    flush(stream == NULL ? stdout : stream);
    return 0;
}
