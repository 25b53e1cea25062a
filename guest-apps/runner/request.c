/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"

static void refuse(struct request *request, const char *error)
{
    request->kind = REQUEST_INVALID;
    request->error = error;
}

static bool read_number(const json_t *object, const char *name, json_int_t least, json_int_t most,
                        json_int_t *number)
{
    const json_t *value = json_object_get(object, name);

    *number = json_integer_value(value);
    return json_is_integer(value) && *number >= least && *number <= most;
}

static bool read_window(const json_t *object, struct winsize *window)
{
    json_int_t rows;
    json_int_t columns;

    if (!read_number(object, "rows", 0, UINT16_MAX, &rows) ||
        !read_number(object, "columns", 0, UINT16_MAX, &columns))
        return false;
    window->ws_row = (unsigned short)rows;
    window->ws_col = (unsigned short)columns;
    return true;
}

static void read_start(struct request *request, const json_t *argv)
{
    const json_t *terminal = json_object_get(request->document, "terminal");
    size_t count = json_array_size(argv);

    request->kind = REQUEST_START;
    if (count == 0) {
        refuse(request, "argv: must not be empty");
        return;
    }
    request->argv = calloc(count + 1, sizeof(*request->argv));
    if (request->argv == NULL) {
        refuse(request, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *word = json_array_get(argv, i);

        if (!json_is_string(word)) {
            refuse(request, "argv: must hold strings");
            return;
        }
        request->argv[i] = (char *)(uintptr_t)json_string_value(word);
    }
    request->wants_terminal = terminal != NULL;
    if (terminal == NULL)
        return;
    request->terminal = json_string_value(json_object_get(terminal, "type"));
    if (request->terminal == NULL || !read_window(terminal, &request->window))
        refuse(request, "terminal: must have type, rows and columns");
}

static void read_input(struct request *request, const json_t *input)
{
    size_t length = json_string_length(input);
    ptrdiff_t decoded;

    if (json_is_null(input)) {
        request->kind = REQUEST_END_OF_INPUT;
        return;
    }
    request->kind = REQUEST_INPUT;
    request->input = malloc(length + 1);
    if (request->input == NULL) {
        refuse(request, "out of memory");
        return;
    }
    decoded = json_is_string(input)
                  ? base64_decode(json_string_value(input), length, request->input)
                  : -1;
    if (decoded < 0)
        refuse(request, "input: must be base64, or null for its end");
    else
        request->length = (size_t)decoded;
}

static void read_document(struct request *request)
{
    const json_t *document = request->document;
    const json_t *id = json_object_get(document, "id");
    const json_t *value;
    json_int_t number = 0;

    request->numbered = json_is_integer(id);
    request->id = json_integer_value(id);
    if (!request->numbered) {
        refuse(request, "id: must be a whole number");
    } else if (json_is_array(value = json_object_get(document, "argv"))) {
        read_start(request, value);
    } else if ((value = json_object_get(document, "input")) != NULL) {
        read_input(request, value);
    } else if (read_number(document, "signal", 1, SIGRTMAX, &number)) {
        request->kind = REQUEST_SIGNAL;
        request->signal = (int)number;
    } else if (read_number(document, "taken", 0, INT32_MAX, &number)) {
        request->kind = REQUEST_TAKEN;
        request->length = (size_t)number;
    } else if (read_window(json_object_get(document, "window"), &request->window)) {
        request->kind = REQUEST_WINDOW;
    } else if (json_is_true(json_object_get(document, "hang_up"))) {
        request->kind = REQUEST_HANG_UP;
    } else {
        refuse(request, "must have argv, input, signal, taken, window or hang_up");
    }
}

void request_read(struct request *request, const char *line, size_t length)
{
    json_error_t error;

    *request = (struct request){.kind = REQUEST_INVALID};
    request->document = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    if (request->document == NULL)
        refuse(request, "is not JSON");
    else
        read_document(request);
}

void request_release(struct request *request)
{
    free(request->argv);
    free(request->input);
    json_decref(request->document);
}
