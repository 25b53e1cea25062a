/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <stdarg.h>

#include "format.h"
#include "lib/json.h"
#include "sss/mbcf.h"

enum { VERSION = 1, KEY_DIGITS = 16, MOST_DATAGRAM = 65507 };

struct decoder {
    char *error; /* the first failure is kept: later ones are its consequences */
    bool failed;
    bool (*task_exists)(const char *name);
};

static void __attribute__((format(printf, 2, 3)))
fail(struct decoder *decoder, const char *format, ...)
{
    va_list arguments;

    if (decoder->failed)
        return;
    decoder->failed = true;
    va_start(arguments, format);
    kvsnprintf(decoder->error, JOB_ERROR, format, arguments);
    va_end(arguments);
}

/* ---- fields of one kind; absent and null are the same ---- */
static bool field(const struct json_value *object, const char *name, struct json_value *value)
{
    return json_field(object, name, value) && json_kind(value) != JSON_NULL;
}

static uint64_t number_field(struct decoder *decoder, const struct json_value *object,
                             const char *name, uint64_t most, uint64_t absent)
{
    struct json_value value;
    uint64_t number = absent;

    if (field(object, name, &value) && (!json_uint(&value, &number) || number > most))
        fail(decoder, "%s: must be an integer from 0 to %lu", name, (unsigned long)most);
    return number;
}

static bool flag_field(struct decoder *decoder, const struct json_value *object, const char *name)
{
    struct json_value value;
    bool flag = false;

    if (field(object, name, &value) && !json_bool(&value, &flag))
        fail(decoder, "%s: must be true or false", name);
    return flag;
}

/* -> whether it is there */
static bool text_field(struct decoder *decoder, const struct json_value *object, const char *name,
                       char *text, size_t size)
{
    struct json_value value;

    text[0] = '\0';
    if (!field(object, name, &value))
        return false;
    if (!json_string(&value, text, size))
        fail(decoder, "%s: must be a string of less than %zu characters", name, size);
    return true;
}

static bool list_field(struct decoder *decoder, const struct json_value *object, const char *name,
                       struct json_walk *walk)
{
    struct json_value value;

    if (!field(object, name, &value))
        return false;
    if (json_kind(&value) != JSON_ARRAY)
        fail(decoder, "%s: must be an array", name);
    json_walk_start(walk, &value);
    return json_kind(&value) == JSON_ARRAY;
}

/* Every field of `object` must be one of `known` (ended by NULL). */
static void refuse_unknown(struct decoder *decoder, const char *where,
                           const struct json_value *object, const char *const *known)
{
    struct json_walk walk;
    struct json_value name, value;

    if (json_kind(object) != JSON_OBJECT) {
        fail(decoder, "%s: must be an object", where);
        return;
    }
    json_walk_start(&walk, object);
    while (json_walk_next(&walk, &name, &value)) {
        unsigned i = 0;

        while (known[i] != NULL && !json_is(&name, known[i]))
            i++;
        if (known[i] == NULL)
            fail(decoder, "%s: unknown field %.*s", where, name.length < 64 ? (int)name.length : 64,
                 name.text);
    }
}

/* ---- addresses ---- */
static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool parse_mac(const char *text, uint8_t mac[6])
{
    for (unsigned i = 0; i < 6; i++, text += 3) {
        int high = hex_digit(text[0]);
        int low = high < 0 ? -1 : hex_digit(text[1]);

        if (low < 0 || text[2] != (i < 5 ? ':' : '\0'))
            return false;
        mac[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* A decimal number of 1 to 3 digits, at most `most`; `text` moves behind it. */
static bool parse_small(const char **text, unsigned most, unsigned *number)
{
    const char *start = *text;

    *number = 0;
    while (**text >= '0' && **text <= '9' && *text - start < 3)
        *number = *number * 10 + (unsigned)(*(*text)++ - '0');
    return *text > start && *number <= most;
}

static bool parse_address(const char **text, uint32_t *address)
{
    *address = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned part;

        if (!parse_small(text, 255, &part) || (i < 3 && *(*text)++ != '.'))
            return false;
        *address = *address << 8 | part;
    }
    return true;
}

static bool parse_network(const char *text, uint32_t *address, uint32_t *netmask)
{
    unsigned bits;

    if (!parse_address(&text, address) || *text++ != '/' || !parse_small(&text, 32, &bits) ||
        bits == 0 || *text != '\0')
        return false;
    *netmask = 0xffffffffu << (32 - bits);
    return *address != 0;
}

static void mac_field(struct decoder *decoder, const char *where, const struct json_value *object,
                      uint8_t mac[6])
{
    char text[32];

    if (!text_field(decoder, object, "mac", text, sizeof(text)) || !parse_mac(text, mac))
        fail(decoder, "%s: mac \"%s\" must be like 02:53:44:00:00:01", where, text);
    else if ((mac[0] & 1) != 0)
        fail(decoder, "%s: mac \"%s\" is a group's address", where, text);
}

/* ---- interfaces ---- */
static void decode_neighbour(struct decoder *decoder, const struct json_value *object,
                             struct job_neighbour *neighbour)
{
    static const char *const known[] = {"address", "mac", NULL};
    char address[32];
    const char *at = address;

    refuse_unknown(decoder, "neighbours", object, known);
    text_field(decoder, object, "address", address, sizeof(address));
    if (!parse_address(&at, &neighbour->address) || *at != '\0')
        fail(decoder, "neighbours: address \"%s\" must be like 10.0.0.2", address);
    mac_field(decoder, "neighbours", object, neighbour->mac);
}

static void decode_neighbours(struct decoder *decoder, const struct json_value *object,
                              struct job_interface *interface)
{
    struct json_walk walk;
    struct json_value neighbour;

    if (!list_field(decoder, object, "neighbours", &walk))
        return;
    while (!decoder->failed && json_walk_next(&walk, NULL, &neighbour)) {
        if (interface->neighbour_count == JOB_NEIGHBOURS)
            fail(decoder, "neighbours: at most %d", JOB_NEIGHBOURS);
        else
            decode_neighbour(decoder, &neighbour,
                             &interface->neighbours[interface->neighbour_count++]);
    }
}

static void decode_device(struct decoder *decoder, const struct json_value *object, struct job *job,
                          struct job_interface *interface)
{
    char device[32] = "";

    text_field(decoder, object, "device", device, sizeof(device));
    interface->adapter = (unsigned)(device[3] - '0');
    if (device[0] != 'e' || device[1] != 't' || device[2] != 'h' ||
        interface->adapter >= JOB_INTERFACES || device[4] != '\0')
        fail(decoder, "interfaces: device \"%s\" must be eth0 to eth%d", device,
             JOB_INTERFACES - 1);
    for (const struct job_interface *other = job->interfaces; other < interface; other++)
        if (other->adapter == interface->adapter)
            fail(decoder, "interfaces: \"%s\" twice", device);
}

static void decode_interface(struct decoder *decoder, const struct json_value *object,
                             struct job *job, struct job_interface *interface)
{
    static const char *const known[] = {"device",   "mac",        "address", "mtu",
                                        "offloads", "neighbours", NULL};
    struct json_value value;
    char address[32];

    refuse_unknown(decoder, "interfaces", object, known);
    decode_device(decoder, object, job, interface);
    interface->has_mac = field(object, "mac", &value);
    if (interface->has_mac)
        mac_field(decoder, "interfaces", object, interface->mac);
    if (text_field(decoder, object, "address", address, sizeof(address)) &&
        !parse_network(address, &interface->address, &interface->netmask))
        fail(decoder, "interfaces: address \"%s\" must be like 10.0.0.1/24", address);
    interface->mtu = (uint16_t)number_field(decoder, object, "mtu", UINT16_MAX, JOB_MOST_MTU);
    if (interface->mtu < JOB_LEAST_MTU || interface->mtu > JOB_MOST_MTU)
        fail(decoder, "interfaces: mtu %u must be from %d to %d", interface->mtu, JOB_LEAST_MTU,
             JOB_MOST_MTU);
    if (flag_field(decoder, object, "offloads"))
        fail(decoder, "interfaces: offloads: this image has none");
    decode_neighbours(decoder, object, interface);
}

static void decode_interfaces(struct decoder *decoder, const struct json_value *root,
                              struct job *job)
{
    struct json_walk walk;
    struct json_value interface;

    if (!list_field(decoder, root, "interfaces", &walk))
        return;
    while (!decoder->failed && json_walk_next(&walk, NULL, &interface)) {
        if (job->interface_count == JOB_INTERFACES)
            fail(decoder, "interfaces: at most %d", JOB_INTERFACES);
        else
            decode_interface(decoder, &interface, job, &job->interfaces[job->interface_count++]);
    }
}

/* ---- nodes ---- */
static uint16_t node_field(struct decoder *decoder, const struct json_value *object,
                           uint64_t absent)
{
    uint64_t node = number_field(decoder, object, "node", SSS_NODES, absent);

    if (node == 0)
        fail(decoder, "node: must be an integer from 1 to %d", SSS_NODES);
    return (uint16_t)node;
}

static void decode_node(struct decoder *decoder, const struct json_value *object,
                        const struct job *job, struct job_node *node)
{
    static const char *const known[] = {"node", "machine", "mac", NULL};

    refuse_unknown(decoder, "nodes", object, known);
    node->node = node_field(decoder, object, 0);
    text_field(decoder, object, "machine", node->machine, sizeof(node->machine));
    mac_field(decoder, "nodes", object, node->mac);
    if (node->node == job->node)
        fail(decoder, "nodes: node %u is this machine", node->node);
    for (const struct job_node *other = job->nodes; other < node; other++)
        if (other->node == node->node)
            fail(decoder, "nodes: node %u twice", node->node);
}

static void decode_nodes(struct decoder *decoder, const struct json_value *root, struct job *job)
{
    struct json_walk walk;
    struct json_value node;

    job->node = node_field(decoder, root, 1);
    job->epoch = (uint32_t)number_field(decoder, root, "epoch", UINT32_MAX, 1);
    if (job->epoch == 0)
        fail(decoder, "epoch: must not be 0");
    if (!list_field(decoder, root, "nodes", &walk))
        return;
    while (!decoder->failed && json_walk_next(&walk, NULL, &node)) {
        if (job->node_count == SSS_NODES)
            fail(decoder, "nodes: at most %d", SSS_NODES);
        else
            decode_node(decoder, &node, job, &job->nodes[job->node_count++]);
    }
}

/* ---- options of tasks: what the kernel's pools limit, whatever the task ---- */
static bool is_mbcf(const char *app, const struct json_value *options)
{
    struct json_value transport;

    if (app[0] == 'm' && app[1] == 'b' && app[2] == 'c' && app[3] == 'f')
        return true;
    return field(options, "transport", &transport) && transport.length > 5 &&
           transport.text[1] == 'm' && transport.text[2] == 'b' && transport.text[3] == 'c' &&
           transport.text[4] == 'f';
}

static void check_sizes(struct decoder *decoder, const char *app, const struct json_value *options)
{
    uint64_t most = is_mbcf(app, options) ? MB_SEGMENT : MOST_DATAGRAM;
    struct json_walk walk;
    struct json_value size, transport;
    uint64_t bytes;

    if (field(options, "transport", &transport) && json_is(&transport, "tcp"))
        most = MB_SEGMENT;
    if (!list_field(decoder, options, "sizes", &walk))
        return;
    while (!decoder->failed && json_walk_next(&walk, NULL, &size))
        if (!json_uint(&size, &bytes) || bytes > most)
            fail(decoder, "%s: sizes: %.*s must be an integer from 0 to %lu", app,
                 size.length < 24 ? (int)size.length : 24, size.text, (unsigned long)most);
}

static void check_key(struct decoder *decoder, const char *app, const struct json_value *options)
{
    struct json_value key;
    size_t digits = 0;

    if (!field(options, "key", &key))
        return;
    while (digits + 2 < key.length && hex_digit(key.text[digits + 1]) >= 0)
        digits++;
    if (json_kind(&key) != JSON_STRING || digits + 2 != key.length || digits != KEY_DIGITS)
        fail(decoder, "%s: key: must be a string of %d hexadecimal digits", app, KEY_DIGITS);
}

static void check_options(struct decoder *decoder, const char *app,
                          const struct json_value *options)
{
    static const struct {
        const char *name;
        uint64_t most;
    } pools[] = {
        {"threads", SSS_THREADS / 2}, /* each may have a helper; others need some, too */
        {"tasks", SSS_TASKS - 2},     /* init and the task itself */
        {"connections", MB_CONNECTIONS},
        {"depth", MB_OPERATIONS / 2}, /* a call is a request and its acknowledgement */
    };

    for (unsigned i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        struct json_value value;
        uint64_t number;

        if (field(options, pools[i].name, &value) &&
            (!json_uint(&value, &number) || number > pools[i].most))
            fail(decoder, "%s: %s: must be an integer from 0 to %lu", app, pools[i].name,
                 (unsigned long)pools[i].most);
    }
    check_sizes(decoder, app, options);
    check_key(decoder, app, options);
}

/* Steps that init does itself. */
static bool is_builtin(const char *app)
{
    static const char *const names[] = {"sleep", "kill", "restart"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (__builtin_strcmp(app, names[i]) == 0)
            return true;
    return false;
}

static void check_builtin(struct decoder *decoder, const char *app,
                          const struct json_value *options)
{
    struct json_value value = {0};
    uint64_t ns;

    if (__builtin_strcmp(app, "sleep") == 0 &&
        (!field(options, "ns", &value) || !json_uint(&value, &ns)))
        fail(decoder, "sleep: ns: must be an integer");
    if (__builtin_strcmp(app, "kill") == 0 &&
        (!field(options, "task", &value) || json_kind(&value) != JSON_STRING))
        fail(decoder, "kill: task: must be the name of a service");
}

static void decode_task(struct decoder *decoder, const char *where, const struct json_value *object,
                        bool step)
{
    static const char *const of_step[] = {"app", "options", NULL};
    static const char *const of_service[] = {"app", "options", "restart", NULL};
    struct json_value options = {0}, restart;
    char app[SSS_NAME];

    refuse_unknown(decoder, where, object, step ? of_step : of_service);
    if (!text_field(decoder, object, "app", app, sizeof(app)) || decoder->failed) {
        fail(decoder, "%s: app: must be the name of a task", where);
        return;
    }
    if (!(step && is_builtin(app)) && !decoder->task_exists(app))
        fail(decoder, "%s: app \"%s\": this image has no such task", where, app);
    if (field(object, "restart", &restart) && json_kind(&restart) != JSON_BOOL)
        fail(decoder, "%s: %s: restart must be true or false", where, app);
    if (step)
        check_builtin(decoder, app, field(object, "options", &options) ? &options : object);
    if (!field(object, "options", &options))
        return;
    if (json_kind(&options) != JSON_OBJECT)
        fail(decoder, "%s: %s: options must be an object", where, app);
    else if (options.length >= SSS_OPTIONS)
        fail(decoder, "%s: %s: options of %zu bytes: at most %d", where, app, options.length,
             SSS_OPTIONS - 1);
    else
        check_options(decoder, app, &options);
}

static unsigned decode_tasks(struct decoder *decoder, const struct json_value *root,
                             const char *where, bool step)
{
    struct json_walk walk;
    struct json_value task;
    unsigned count = 0;

    if (!list_field(decoder, root, where, &walk))
        return 0;
    while (!decoder->failed && json_walk_next(&walk, NULL, &task)) {
        decode_task(decoder, where, &task, step);
        count++;
    }
    return count;
}

/* ---- the whole ---- */
/* The name goes into records as it is. */
static void check_machine(struct decoder *decoder, const char *machine)
{
    for (; *machine != '\0'; machine++)
        if (*machine <= ' ' || *machine == '"' || *machine == '\\' || *machine == 127)
            fail(decoder, "machine: must be a name of letters, digits and hyphens");
}

static void refuse_foreign(struct decoder *decoder, const struct json_value *root)
{
    struct json_value value;

    if (field(root, "bridge", &value))
        fail(decoder, "bridge: this image forwards no frames");
    if (field(root, "files", &value) &&
        (json_kind(&value) != JSON_OBJECT || json_count(&value) != 0))
        fail(decoder, "files: this image has no file system");
}

static void decode_job(struct decoder *decoder, const struct json_value *root, struct job *job)
{
    static const char *const known[] = {
        "version",    "wait",   "interactive", "machine",  "seed",     "clock",
        "interfaces", "bridge", "files",       "services", "start_ns", "steps",
        "zero_ns",    "node",   "epoch",       "nodes",    NULL};
    char clock[16];

    refuse_unknown(decoder, "job", root, known);
    if (number_field(decoder, root, "version", UINT64_MAX, 0) != VERSION)
        fail(decoder, "version: must be %d", VERSION);
    job->wait = flag_field(decoder, root, "wait");
    job->interactive = flag_field(decoder, root, "interactive");
    text_field(decoder, root, "machine", job->machine, sizeof(job->machine));
    check_machine(decoder, job->machine);
    job->seed = number_field(decoder, root, "seed", INT64_MAX, 0);
    if (!text_field(decoder, root, "clock", clock, sizeof(clock)))
        __builtin_memcpy(clock, "monotonic", sizeof("monotonic"));
    job->tsc = __builtin_strcmp(clock, "tsc") == 0;
    if (!job->tsc && __builtin_strcmp(clock, "monotonic") != 0)
        fail(decoder, "clock: must be \"tsc\" or \"monotonic\"");
    job->zero_ns = number_field(decoder, root, "zero_ns", INT64_MAX, 0);
    job->start_ns = number_field(decoder, root, "start_ns", INT64_MAX, 0);
    refuse_foreign(decoder, root);
    decode_interfaces(decoder, root, job);
    decode_nodes(decoder, root, job);
    job->service_count = decode_tasks(decoder, root, "services", false);
    if (job->service_count > SSS_TASKS - 2) /* init, and a step */
        fail(decoder, "services: %u of them: at most %d", job->service_count, SSS_TASKS - 2);
    job->step_count = decode_tasks(decoder, root, "steps", true);
}

bool job_parse(const char *text, size_t length, bool (*task_exists)(const char *name),
               struct job *job, char error[JOB_ERROR])
{
    struct decoder decoder = {.error = error, .task_exists = task_exists};
    struct json_value root;
    const char *wrong = json_check(text, length, &root);

    __builtin_memset(job, 0, sizeof(*job));
    if (wrong != NULL)
        fail(&decoder, "the job is not JSON: byte %zu: %s", (size_t)(root.text - text), wrong);
    else
        decode_job(&decoder, &root, job);
    return !decoder.failed;
}
