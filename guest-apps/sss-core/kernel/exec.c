/* SPDX-License-Identifier: Apache-2.0 */
#include "exec.h"

#include "kformat.h"
#include "lib/json.h"
#include "monitor.h"
#include "virtio_console.h"

enum {
    REQUEST_BYTES = 4096,
    COMMAND_BYTES = 1024,
    OUTPUT_BYTES = 65536,
    ID_BYTES = 64,
};

static struct console_port *port;
static char request[REQUEST_BYTES];
static size_t request_length;
static bool request_too_long;

static char output[OUTPUT_BYTES];
static size_t output_length;
static size_t output_dropped;
static char encoded[(OUTPUT_BYTES + 2) / 3 * 4];

static void print(void *context, const char *text)
{
    (void)context;
    for (; *text != '\0'; text++) {
        if (output_length < OUTPUT_BYTES)
            output[output_length++] = *text;
        else
            output_dropped++;
    }
}

/* Base64 of the output (RFC 4648) -> its length. */
static size_t encode_output(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t done = 0;

    for (size_t i = 0; i < output_length; i += 3) {
        size_t left = output_length - i;
        uint32_t group = (uint32_t)(uint8_t)output[i] << 16;

        if (left > 1)
            group |= (uint32_t)(uint8_t)output[i + 1] << 8;
        if (left > 2)
            group |= (uint8_t)output[i + 2];
        encoded[done++] = digits[group >> 18];
        encoded[done++] = digits[group >> 12 & 63];
        encoded[done++] = left > 1 ? digits[group >> 6 & 63] : '=';
        encoded[done++] = left > 2 ? digits[group & 63] : '=';
    }
    return done;
}

/* The words of argv with a space between -> NULL, or what is wrong. */
static const char *join(const struct json_value *argv, char command[COMMAND_BYTES])
{
    struct json_walk walk;
    struct json_value word;
    size_t length = 0;

    json_walk_start(&walk, argv);
    while (json_walk_next(&walk, NULL, &word)) {
        if (length > 0)
            command[length++] = ' ';
        if (json_kind(&word) != JSON_IS_STRING)
            return "argv: must hold strings";
        if (!json_text(&word, command + length, COMMAND_BYTES - 1 - length))
            return "argv: longer than 1023 bytes";
        length += __builtin_strlen(command + length);
    }
    command[length] = '\0';
    return length == 0 ? "argv: must not be empty" : NULL;
}

static const char *read_command(const struct json_value *root, char command[COMMAND_BYTES])
{
    struct json_value value;

    if (json_field(root, "argv", &value) && json_kind(&value) == JSON_IS_ARRAY)
        return join(&value, command);
    if (json_field(root, "shell", &value) && json_kind(&value) == JSON_IS_STRING)
        return json_text(&value, command, COMMAND_BYTES) ? NULL : "shell: longer than 1023 bytes";
    return "must have \"argv\" or \"shell\"";
}

static void answer_error(const char *id, const char *error)
{
    char line[256];
    char escaped[128];
    int length;

    if (!json_escape(error, __builtin_strlen(error), escaped, sizeof(escaped)))
        escaped[0] = '\0';
    length = ksnprintf(line, sizeof(line), "{\"id\":%s,\"error\":\"%s\"}\n", id, escaped);
    virtio_console_write(port, line, (size_t)length);
}

static void answer_output(const char *id, int status)
{
    char line[256];
    int length = ksnprintf(line, sizeof(line), "{\"id\":%s,\"status\":%d,\"stdout\":\"", id,
                           status);

    virtio_console_write(port, line, (size_t)length);
    virtio_console_write(port, encoded, encode_output());
    length = ksnprintf(line, sizeof(line), "\",\"stderr\":\"\",\"dropped\":%zu}\n", output_dropped);
    virtio_console_write(port, line, (size_t)length);
}

static void serve(void)
{
    static char command[COMMAND_BYTES];
    struct json_value root;
    struct json_value id;
    char id_text[ID_BYTES] = "null";
    const char *wrong = json_check(request, request_length, &root);

    if (wrong == NULL && json_field(&root, "id", &id) && id.length < ID_BYTES) {
        __builtin_memcpy(id_text, id.text, id.length);
        id_text[id.length] = '\0';
    }
    if (wrong == NULL)
        wrong = read_command(&root, command);
    if (wrong != NULL) {
        answer_error(id_text, wrong);
        return;
    }
    output_length = 0;
    output_dropped = 0;
    answer_output(id_text, monitor_line(command, print, NULL));
}

static void received(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n') {
            if (request_too_long)
                answer_error("null", "a line longer than 4096 bytes");
            else
                serve();
            request_length = 0;
            request_too_long = false;
        } else if (request_length < REQUEST_BYTES) {
            request[request_length++] = text[i];
        } else {
            request_too_long = true;
        }
    }
}

void exec_init(void)
{
    port = virtio_console_port("sundial.exec");
    if (port != NULL)
        virtio_console_listen(port, received);
}
