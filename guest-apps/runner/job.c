/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_MTU = 68, MOST_MTU = 65535, ADDRESS_BITS = 32 };

/* Where the decoder is: the first failure is kept, later ones are its consequences. */
struct decoder {
    char *error;
    bool failed;
};

static void __attribute__((format(printf, 2, 3)))
fail(struct decoder *decoder, const char *format, ...)
{
    va_list arguments;

    if (decoder->failed)
        return;
    decoder->failed = true;
    va_start(arguments, format);
    vsnprintf(decoder->error, JOB_ERROR_LIMIT, format, arguments);
    va_end(arguments);
}

static void *take_memory(struct decoder *decoder, size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    if (memory == NULL)
        fail(decoder, "out of memory");
    return memory;
}

/* Every field of `object` must be one of `known` (ended by NULL). */
static void refuse_unknown(struct decoder *decoder, const char *where, json_t *object,
                           const char *const *known)
{
    const char *key;
    json_t *value;

    json_object_foreach (object, key, value) {
        size_t i = 0;

        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL)
            fail(decoder, "%s%s: unknown field", where, key);
    }
}

static bool is_absent(const json_t *value)
{
    return value == NULL || json_is_null(value);
}

static const char *text_field(struct decoder *decoder, const json_t *object, const char *name,
                              const char *absent)
{
    const json_t *value = json_object_get(object, name);

    if (is_absent(value) && absent != NULL)
        return absent;
    if (!json_is_string(value)) {
        fail(decoder, "%s: must be a string", name);
        return "";
    }
    return json_string_value(value);
}

static uint64_t number_field(struct decoder *decoder, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (is_absent(value))
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        fail(decoder, "%s: must be an integer from 0 to 2^63 - 1", name);
        return 0;
    }
    return (uint64_t)json_integer_value(value);
}

static bool flag_field(struct decoder *decoder, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (is_absent(value))
        return false;
    if (!json_is_boolean(value))
        fail(decoder, "%s: must be true or false", name);
    return json_is_true(value);
}

/* The array `name`, or NULL where there is none. */
static json_t *array_field(struct decoder *decoder, const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    if (is_absent(value))
        return NULL;
    if (!json_is_array(value)) {
        fail(decoder, "%s: must be an array", name);
        return NULL;
    }
    return value;
}

static void device_field(struct decoder *decoder, const char *name, char device[JOB_NAME_LIMIT])
{
    if (*name == '\0' || strlen(name) >= JOB_NAME_LIMIT || strchr(name, '/') != NULL)
        fail(decoder, "device \"%s\": must be an interface's name", name);
    else
        memcpy(device, name, strlen(name) + 1);
}

bool job_parse_mac(const char *text, uint8_t mac[ETH_ALEN])
{
    static const char digits[] = "0123456789abcdef";

    if (strlen(text) != 3 * ETH_ALEN - 1)
        return false;
    for (size_t i = 0; i < ETH_ALEN; i++) {
        const char *high = strchr(digits, text[3 * i] | 0x20);
        const char *low = strchr(digits, text[3 * i + 1] | 0x20);

        if (high == NULL || low == NULL || (i + 1 < ETH_ALEN && text[3 * i + 2] != ':'))
            return false;
        mac[i] = (uint8_t)((high - digits) << 4 | (low - digits));
    }
    return true;
}

bool job_parse_address(const char *text, struct in_addr *address, struct in_addr *netmask)
{
    char host[INET_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    char *end;
    unsigned long bits;

    if (slash == NULL || (size_t)(slash - text) >= sizeof(host))
        return false;
    memcpy(host, text, (size_t)(slash - text));
    host[slash - text] = '\0';
    if (slash[1] < '0' || slash[1] > '9')
        return false;
    bits = strtoul(slash + 1, &end, 10);
    if (*end != '\0' || bits < 1 || bits > ADDRESS_BITS)
        return false;
    netmask->s_addr = htonl(0xffffffffu << (ADDRESS_BITS - bits));
    return inet_pton(AF_INET, host, address) == 1;
}

static void decode_neighbour(struct decoder *decoder, json_t *object, struct neighbour *neighbour)
{
    static const char *const known[] = {"address", "mac", NULL};
    const char *address = text_field(decoder, object, "address", NULL);
    const char *mac = text_field(decoder, object, "mac", NULL);

    refuse_unknown(decoder, "neighbours.", object, known);
    if (!decoder->failed && inet_pton(AF_INET, address, &neighbour->address) != 1)
        fail(decoder, "neighbour address \"%s\": must be like 10.0.0.2", address);
    if (!decoder->failed && !job_parse_mac(mac, neighbour->mac))
        fail(decoder, "neighbour mac \"%s\": must be like 02:53:44:00:00:02", mac);
}

static void decode_neighbours(struct decoder *decoder, const json_t *list,
                              struct interface *interface)
{
    interface->neighbours = take_memory(decoder, json_array_size(list),
                                        sizeof(*interface->neighbours));
    while (!decoder->failed && interface->neighbour_count < json_array_size(list)) {
        size_t index = interface->neighbour_count++;

        decode_neighbour(decoder, json_array_get(list, index), &interface->neighbours[index]);
    }
}

static void decode_interface(struct decoder *decoder, json_t *object, struct interface *interface)
{
    static const char *const known[] = {"device",   "mac",        "address", "mtu",
                                        "offloads", "neighbours", NULL};
    const char *mac = text_field(decoder, object, "mac", "");
    const char *address = text_field(decoder, object, "address", "");
    uint64_t mtu = number_field(decoder, object, "mtu");

    refuse_unknown(decoder, "interfaces.", object, known);
    device_field(decoder, text_field(decoder, object, "device", NULL), interface->device);
    interface->has_mac = *mac != '\0';
    if (interface->has_mac && !job_parse_mac(mac, interface->mac))
        fail(decoder, "mac \"%s\": must be like 02:53:44:00:00:01", mac);
    interface->has_address = *address != '\0';
    if (interface->has_address &&
        !job_parse_address(address, &interface->address, &interface->netmask))
        fail(decoder, "address \"%s\": must be like 10.0.0.1/24", address);
    if (mtu != 0 && (mtu < LEAST_MTU || mtu > MOST_MTU))
        fail(decoder, "mtu: must be from %d to %d", LEAST_MTU, MOST_MTU);
    interface->mtu = (int)mtu;
    interface->offloads = flag_field(decoder, object, "offloads");
    decode_neighbours(decoder, array_field(decoder, object, "neighbours"), interface);
}

static void decode_interfaces(struct decoder *decoder, const json_t *list, struct job *job)
{
    job->interfaces = take_memory(decoder, json_array_size(list), sizeof(*job->interfaces));
    while (!decoder->failed && job->interface_count < json_array_size(list)) {
        size_t index = job->interface_count++;

        decode_interface(decoder, json_array_get(list, index), &job->interfaces[index]);
    }
}

static void decode_bridge(struct decoder *decoder, json_t *bridge, struct job *job)
{
    static const char *const known[] = {"ports", "netem", NULL};
    const json_t *ports;

    if (is_absent(bridge))
        return;
    if (!json_is_object(bridge))
        fail(decoder, "bridge: must be an object");
    refuse_unknown(decoder, "bridge.", bridge, known);
    ports = array_field(decoder, bridge, "ports");
    job->bridge_ports = take_memory(decoder, json_array_size(ports), sizeof(*job->bridge_ports));
    while (!decoder->failed && job->bridge_port_count < json_array_size(ports)) {
        const char *name = json_string_value(json_array_get(ports, job->bridge_port_count));
        struct bridge_port *port = &job->bridge_ports[job->bridge_port_count++];

        device_field(decoder, name == NULL ? "" : name, port->device);
        port->netem = text_field(decoder, json_object_get(bridge, "netem"), port->device, "");
    }
}

static void decode_task(struct decoder *decoder, const char *where, json_t *object,
                        struct task *task)
{
    static const char *const known[] = {"app", "options", NULL};
    const json_t *options = json_object_get(object, "options");

    refuse_unknown(decoder, where, object, known);
    task->app = text_field(decoder, object, "app", NULL);
    if (*task->app == '\0' || *task->app == '.' || strchr(task->app, '/') != NULL)
        fail(decoder, "%sapp: must be the name of an application", where);
    if (!is_absent(options) && !json_is_object(options))
        fail(decoder, "%soptions: must be an object", where);
    task->options = is_absent(options) ? strdup("{}") : json_dumps(options, JSON_COMPACT);
    if (task->options == NULL)
        fail(decoder, "out of memory");
}

static struct task *decode_tasks(struct decoder *decoder, const char *where, const json_t *list,
                                 size_t *count)
{
    struct task *tasks = take_memory(decoder, json_array_size(list), sizeof(*tasks));

    while (!decoder->failed && *count < json_array_size(list)) {
        size_t index = (*count)++;

        decode_task(decoder, where, json_array_get(list, index), &tasks[index]);
    }
    return tasks;
}

static void decode_files(struct decoder *decoder, json_t *files)
{
    const char *path;
    json_t *content;

    if (!is_absent(files) && !json_is_object(files))
        fail(decoder, "files: must be an object");
    json_object_foreach (files, path, content)
        if (*path != '/' || !json_is_string(content))
            fail(decoder, "files: \"%s\" must be an absolute path with a string", path);
}

static void decode_job(struct decoder *decoder, struct job *job)
{
    static const char *const known[] = {
        "version", "wait",  "interactive", "machine",  "seed",  "clock",   "interfaces",
        "bridge",  "files", "services",    "start_ns", "steps", "zero_ns", NULL};
    json_t *root = job->root;

    if (!json_is_object(root)) {
        fail(decoder, "job: must be a JSON object");
        return;
    }
    refuse_unknown(decoder, "", root, known);
    if (number_field(decoder, root, "version") != 1)
        fail(decoder, "version: must be 1");
    job->wait = flag_field(decoder, root, "wait");
    job->interactive = flag_field(decoder, root, "interactive");
    job->machine = text_field(decoder, root, "machine", "");
    job->seed = number_field(decoder, root, "seed");
    job->clock = text_field(decoder, root, "clock", "monotonic");
    if (strcmp(job->clock, "tsc") != 0 && strcmp(job->clock, "monotonic") != 0)
        fail(decoder, "clock: must be \"tsc\" or \"monotonic\"");
    job->zero_ns = number_field(decoder, root, "zero_ns");
    job->start_ns = number_field(decoder, root, "start_ns");
    decode_interfaces(decoder, array_field(decoder, root, "interfaces"), job);
    decode_bridge(decoder, json_object_get(root, "bridge"), job);
    decode_files(decoder, json_object_get(root, "files"));
    job->files = json_object_get(root, "files");
    job->services = decode_tasks(decoder, "services.", array_field(decoder, root, "services"),
                                 &job->service_count);
    job->steps = decode_tasks(decoder, "steps.", array_field(decoder, root, "steps"),
                              &job->step_count);
}

int job_parse(const char *text, size_t length, struct job *job, char error[JOB_ERROR_LIMIT])
{
    struct decoder decoder = {.error = error};
    json_error_t syntax;

    memset(job, 0, sizeof(*job));
    job->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &syntax);
    if (job->root == NULL)
        fail(&decoder, "line %d, column %d: %s", syntax.line, syntax.column, syntax.text);
    else
        decode_job(&decoder, job);
    if (!decoder.failed)
        return 0;
    job_free(job);
    return -1;
}

static void free_tasks(struct task *tasks, size_t count)
{
    for (size_t i = 0; tasks != NULL && i < count; i++)
        free(tasks[i].options);
    free(tasks);
}

void job_free(struct job *job)
{
    for (size_t i = 0; job->interfaces != NULL && i < job->interface_count; i++)
        free(job->interfaces[i].neighbours);
    free(job->interfaces);
    free(job->bridge_ports);
    free_tasks(job->services, job->service_count);
    free_tasks(job->steps, job->step_count);
    json_decref(job->root);
    memset(job, 0, sizeof(*job));
}
