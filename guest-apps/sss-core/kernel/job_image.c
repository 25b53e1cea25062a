/* SPDX-License-Identifier: Apache-2.0 */
#include "job_image.h"

#include <string.h>

#include "sss/abi.h"
#include "sss/mbcf.h"

enum {
    KEY_DIGITS = 16,
    DATAGRAM_MOST = 65507,
    MTU_LEAST = 576, /* every host must accept datagrams of this size (RFC 791) */
    MTU_MOST = 1500,
};

_Static_assert((int)JOB_NODES == (int)SSS_NODES, "as many nodes as the kernel knows");
_Static_assert((int)JOB_NAME == (int)SSS_NAME, "names as long as the kernel's");

static bool (*is_task)(const char *name);

/* ---- options of tasks: what the kernel's pools limit, whatever the task ---- */
static bool is_over_datagrams(const char *app, const struct json_value *options)
{
    struct json_value transport;

    if (field_find(options, "transport", &transport))
        return json_is(&transport, "udp");
    return strncmp(app, "mbcf", 4) != 0 && strncmp(app, "vmmc", 4) != 0;
}

static void check_sizes(struct decoder *decoder, const char *app, const struct json_value *options)
{
    uint64_t most = is_over_datagrams(app, options) ? DATAGRAM_MOST : MB_SEGMENT;
    struct json_walk walk;
    struct json_value sizes = {0}, size, transport;
    uint64_t bytes;

    if (field_find(options, "transport", &transport) && json_is(&transport, "tcp"))
        return; /* a stream takes as much as its task has */
    if (!field_find(options, "sizes", &sizes) || !field_list(decoder, "sizes", &sizes, &walk))
        return;
    while (!decoder->failed && json_walk_next(&walk, NULL, &size))
        if (!json_uint(&size, &bytes) || bytes > most)
            decoder_fail(decoder, "%s: sizes: %.*s must be an integer from 0 to %lu", app,
                         size.length < 24 ? (int)size.length : 24, size.text, (unsigned long)most);
}

static bool is_hex(char digit)
{
    return (digit >= '0' && digit <= '9') || ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f');
}

static void check_key(struct decoder *decoder, const char *app, const struct json_value *options)
{
    struct json_value key;
    size_t digits = 0;

    if (!field_find(options, "key", &key))
        return;
    while (digits + 2 < key.length && is_hex(key.text[digits + 1]))
        digits++;
    if (json_kind(&key) != JSON_IS_STRING || digits + 2 != key.length || digits != KEY_DIGITS)
        decoder_fail(decoder, "%s: key: must be a string of %d hexadecimal digits", app,
                     KEY_DIGITS);
}

static void check_pools(struct decoder *decoder, const char *app, const struct json_value *options)
{
    static const struct {
        const char *name;
        uint64_t most;
    } pools[] = {
        {"threads", SSS_THREADS / 2}, /* each may have a helper, and other tasks need some, too */
        {"tasks", SSS_TASKS - 2},     /* init and the task itself */
        {"connections", MB_CONNECTIONS},
        {"depth", MB_OPERATIONS / 2}, /* a call takes two: the request and its acknowledgement */
    };

    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        struct json_value value;
        uint64_t number;

        if (field_find(options, pools[i].name, &value) &&
            (!json_uint(&value, &number) || number > pools[i].most))
            decoder_fail(decoder, "%s: %s: must be an integer from 0 to %lu", app, pools[i].name,
                         (unsigned long)pools[i].most);
    }
}

/* ---- steps that init does itself ---- */
static bool is_builtin(const char *app)
{
    return strcmp(app, "sleep") == 0 || strcmp(app, "kill") == 0 || strcmp(app, "restart") == 0;
}

static void check_builtin(struct decoder *decoder, const struct job_task *task)
{
    struct json_value value;
    uint64_t ns;

    if (strcmp(task->app, "sleep") == 0 &&
        (!field_find(&task->options, "ns", &value) || !json_uint(&value, &ns)))
        decoder_fail(decoder, "sleep: ns: must be an integer");
    if (strcmp(task->app, "kill") == 0 &&
        (!field_find(&task->options, "task", &value) || json_kind(&value) != JSON_IS_STRING))
        decoder_fail(decoder, "kill: task: must be the name of a service");
}

static void check_task(struct decoder *decoder, const char *where, const struct job_task *task,
                       bool step)
{
    const struct json_value *options = &task->options;

    if (step && is_builtin(task->app))
        check_builtin(decoder, task);
    else if (!is_task(task->app))
        decoder_fail(decoder, "%s: app \"%s\": this image has no such task", where, task->app);
    if (options->length >= SSS_OPTIONS)
        decoder_fail(decoder, "%s: %s: options of %zu bytes: at most %d", where, task->app,
                     options->length, SSS_OPTIONS - 1);
    check_pools(decoder, task->app, options);
    check_sizes(decoder, task->app, options);
    check_key(decoder, task->app, options);
}

bool job_parse(const char *text, size_t length, bool (*task_exists)(const char *name),
               struct job *job, char error[JOB_ERROR])
{
    static const struct job_image image = {
        .least_mtu = MTU_LEAST,
        .most_mtu = MTU_MOST,
        .absent_mtu = MTU_MOST,
        .is_node = true,
        .has_restarts = true,
        .most_services = SSS_TASKS - 2, /* init, and a step */
        .check_task = check_task,
    };

    is_task = task_exists;
    return job_decode(text, length, &image, job, error);
}
