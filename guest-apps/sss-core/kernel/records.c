/* SPDX-License-Identifier: Apache-2.0 */
#include "records.h"

#include <stdarg.h>
#include <stdbool.h>

#include "console.h"
#include "kformat.h"
#include "lib/json.h"
#include "virtio_console.h"

enum { LINE_BYTES = 1024 };

static struct console_port *port;
static bool lost;

void records_init(void)
{
    port = virtio_console_port("sundial.samples");
    if (port == NULL)
        kprintf("records: no port sundial.samples; records are dropped\n");
}

void records_write(const char *text, size_t length)
{
    if (port == NULL || length == 0 || lost)
        return;
    if (!virtio_console_write(port, text, length)) {
        lost = true;
        kprintf("records: the host takes no more; records are lost from here on\n");
    }
}

void records_flush(void)
{
    if (port != NULL)
        virtio_console_flush(port);
}

void records_line(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = kvsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    if (length < (int)sizeof(line) - 1) {
        line[length] = '\n';
        records_write(line, (size_t)length + 1);
    } else {
        records_error("kernel", "a record is too long");
    }
}

void records_error(const char *app, const char *message)
{
    char escaped[LINE_BYTES / 2];
    size_t length = __builtin_strlen(message);

    if (!json_escape(message, length, escaped, sizeof(escaped)))
        ksnprintf(escaped, sizeof(escaped), "a message of %zu bytes is too long to record", length);
    records_line("{\"type\":\"error\",\"app\":\"%s\",\"message\":\"%s\"}", app, escaped);
    kprintf("%s: %s\n", app, message);
}

void records_task_fault(const char *task, unsigned id, const char *what, uint64_t rip)
{
    records_line("{\"type\":\"error\",\"app\":\"%s\",\"message\":\"task %u ended: %s, rip 0x%lx\"}",
                 task, id, what, rip);
}
