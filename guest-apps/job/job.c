/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <string.h>

enum { VERSION = 1 };

/* What every part needs: the image, the job as far as it is decoded, the first failure. */
struct work {
    struct decoder decoder;
    const struct job_image *image;
    struct job *job;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- interfaces ---- */
static void decode_mac(struct decoder *decoder, const char *where, const struct json_value *value,
                       uint8_t mac[JOB_MAC])
{
    char text[32];

    if (!field_text(decoder, "mac", value, text, sizeof(text)) || !job_parse_mac(text, mac))
        decoder_fail(decoder, "%s: mac \"%s\" must be like 02:53:44:00:00:01", where, text);
    else if ((mac[0] & 1) != 0)
        decoder_fail(decoder, "%s: mac \"%s\" is a group's address", where, text);
}

/* -> N of ethN */
static unsigned decode_device(struct decoder *decoder, const char *where,
                              const struct json_value *value, char device[JOB_DEVICE])
{
    unsigned number;

    field_text(decoder, "device", value, device, JOB_DEVICE);
    number = (unsigned)(device[3] - '0');
    if (strncmp(device, "eth", 3) == 0 && number < JOB_INTERFACES && device[4] == '\0')
        return number;
    decoder_fail(decoder, "%s: device \"%s\" must be eth0 to eth%d", where, device,
                 JOB_INTERFACES - 1);
    return 0;
}

static void decode_neighbour(struct decoder *decoder, const struct json_value *object,
                             struct job_neighbour *neighbour)
{
    struct json_value address = {0}, mac = {0};
    const struct field fields[] = {{"address", &address}, {"mac", &mac}};
    char text[32];

    fields_take(decoder, "neighbours", object, fields, COUNT(fields));
    field_text(decoder, "address", &address, text, sizeof(text));
    if (!job_parse_address(text, &neighbour->address))
        decoder_fail(decoder, "neighbours: address \"%s\" must be like 10.0.0.2", text);
    decode_mac(decoder, "neighbours", &mac, neighbour->mac);
}

static void decode_neighbours(struct decoder *decoder, const struct json_value *list,
                              struct job_interface *interface)
{
    struct json_walk walk;
    struct json_value neighbour;

    if (!field_list(decoder, "neighbours", list, &walk))
        return;
    while (!decoder->failed && json_walk_next(&walk, NULL, &neighbour)) {
        if (interface->neighbour_count == JOB_NEIGHBOURS)
            decoder_fail(decoder, "neighbours: at most %d", JOB_NEIGHBOURS);
        else
            decode_neighbour(decoder, &neighbour,
                             &interface->neighbours[interface->neighbour_count++]);
    }
}

static void decode_mtu(struct work *work, const struct json_value *value,
                       struct job_interface *interface)
{
    const struct job_image *image = work->image;
    uint64_t mtu = field_number(&work->decoder, "mtu", value, UINT16_MAX, image->absent_mtu);

    if (json_kind(value) != JSON_IS_NOTHING && (mtu < image->least_mtu || mtu > image->most_mtu))
        decoder_fail(&work->decoder, "interfaces: mtu %lu must be from %u to %u",
                     (unsigned long)mtu, image->least_mtu, image->most_mtu);
    interface->mtu = (uint16_t)mtu;
}

static void decode_interface(struct work *work, const struct json_value *object,
                             struct job_interface *interface)
{
    struct decoder *decoder = &work->decoder;
    struct json_value device = {0}, mac = {0}, address = {0}, mtu = {0};
    struct json_value offloads = {0}, neighbours = {0};
    const struct field fields[] = {{"device", &device},     {"mac", &mac},
                                   {"address", &address},   {"mtu", &mtu},
                                   {"offloads", &offloads}, {"neighbours", &neighbours}};
    char text[32];

    fields_take(decoder, "interfaces", object, fields, COUNT(fields));
    interface->adapter = decode_device(decoder, "interfaces", &device, interface->device);
    for (const struct job_interface *other = work->job->interfaces; other < interface; other++)
        if (other->adapter == interface->adapter)
            decoder_fail(decoder, "interfaces: \"%s\" twice", interface->device);
    interface->has_mac = json_kind(&mac) != JSON_IS_NOTHING;
    if (interface->has_mac)
        decode_mac(decoder, "interfaces", &mac, interface->mac);
    if (field_text(decoder, "address", &address, text, sizeof(text)) &&
        !job_parse_network(text, &interface->address, &interface->netmask))
        decoder_fail(decoder, "interfaces: address \"%s\" must be like 10.0.0.1/24", text);
    decode_mtu(work, &mtu, interface);
    interface->offloads = field_flag(decoder, "offloads", &offloads);
    if (interface->offloads && !work->image->has_offloads)
        decoder_fail(decoder, "interfaces: offloads: this image has none");
    decode_neighbours(decoder, &neighbours, interface);
}

static void decode_interfaces(struct work *work, const struct json_value *list)
{
    struct job *job = work->job;
    struct json_walk walk;
    struct json_value interface;

    if (!field_list(&work->decoder, "interfaces", list, &walk))
        return;
    while (!work->decoder.failed && json_walk_next(&walk, NULL, &interface)) {
        if (job->interface_count == JOB_INTERFACES)
            decoder_fail(&work->decoder, "interfaces: at most %d", JOB_INTERFACES);
        else
            decode_interface(work, &interface, &job->interfaces[job->interface_count++]);
    }
}

static void decode_bridge(struct work *work, const struct json_value *bridge)
{
    struct decoder *decoder = &work->decoder;
    struct job *job = work->job;
    struct json_value ports = {0}, netem = {0}, name;
    const struct field fields[] = {{"ports", &ports}, {"netem", &netem}};
    struct json_walk walk;

    if (json_kind(bridge) == JSON_IS_NOTHING)
        return;
    if (!work->image->has_bridge) {
        decoder_fail(decoder, "bridge: this image forwards no frames");
        return;
    }
    fields_take(decoder, "bridge", bridge, fields, COUNT(fields));
    if (!field_list(decoder, "bridge: ports", &ports, &walk))
        return;
    while (!decoder->failed && json_walk_next(&walk, NULL, &name)) {
        struct job_bridge_port *port = &job->bridge_ports[job->bridge_port_count];
        struct json_value arguments = {0};

        if (job->bridge_port_count++ == JOB_INTERFACES) {
            decoder_fail(decoder, "bridge: at most %d ports", JOB_INTERFACES);
            return;
        }
        decode_device(decoder, "bridge", &name, port->device);
        field_find(&netem, port->device, &arguments);
        field_text(decoder, "netem", &arguments, port->netem, sizeof(port->netem));
    }
}

static void decode_route(struct decoder *decoder, const struct json_value *object,
                         struct job_route *route)
{
    struct json_value to = {0}, via = {0};
    const struct field fields[] = {{"to", &to}, {"via", &via}};
    char text[32];

    fields_take(decoder, "routes", object, fields, COUNT(fields));
    field_text(decoder, "to", &to, text, sizeof(text));
    if (!job_parse_network(text, &route->network, &route->netmask) ||
        (route->network & ~route->netmask) != 0)
        decoder_fail(decoder, "routes: to \"%s\" must be like 10.1.0.0/24", text);
    field_text(decoder, "via", &via, text, sizeof(text));
    if (!job_parse_address(text, &route->via))
        decoder_fail(decoder, "routes: via \"%s\" must be like 10.0.0.2", text);
}

static void decode_routes(struct work *work, const struct json_value *list,
                          const struct json_value *forward)
{
    struct decoder *decoder = &work->decoder;
    struct job *job = work->job;
    struct json_walk walk;
    struct json_value route;

    job->forward = field_flag(decoder, "forward", forward);
    if (field_list(decoder, "routes", list, &walk))
        while (!decoder->failed && json_walk_next(&walk, NULL, &route)) {
            if (job->route_count == JOB_ROUTES)
                decoder_fail(decoder, "routes: at most %d", JOB_ROUTES);
            else
                decode_route(decoder, &route, &job->routes[job->route_count++]);
        }
    if (!work->image->has_routes && (job->forward || job->route_count != 0))
        decoder_fail(decoder, "routes, forward: this image has none");
}

/* ---- memory-based communication ---- */
static uint16_t decode_node_id(struct decoder *decoder, const struct json_value *value,
                               uint64_t absent)
{
    uint64_t node = field_number(decoder, "node", value, JOB_NODES, absent);

    if (node == 0)
        decoder_fail(decoder, "node: must be an integer from 1 to %d", JOB_NODES);
    return (uint16_t)node;
}

static void decode_node(struct work *work, const struct json_value *object, struct job_node *node)
{
    struct decoder *decoder = &work->decoder;
    struct json_value number = {0}, machine = {0}, mac = {0};
    const struct field fields[] = {{"node", &number}, {"machine", &machine}, {"mac", &mac}};

    fields_take(decoder, "nodes", object, fields, COUNT(fields));
    node->node = decode_node_id(decoder, &number, 0);
    field_text(decoder, "machine", &machine, node->machine, sizeof(node->machine));
    decode_mac(decoder, "nodes", &mac, node->mac);
    if (node->node == work->job->node)
        decoder_fail(decoder, "nodes: node %u is this machine", node->node);
    for (const struct job_node *other = work->job->nodes; other < node; other++)
        if (other->node == node->node)
            decoder_fail(decoder, "nodes: node %u twice", node->node);
}

static void decode_nodes(struct work *work, const struct json_value *own,
                         const struct json_value *epoch, const struct json_value *list)
{
    struct decoder *decoder = &work->decoder;
    struct job *job = work->job;
    struct json_walk walk;
    struct json_value node;

    if (!work->image->is_node) {
        if (json_kind(own) != JSON_IS_NOTHING || json_kind(epoch) != JSON_IS_NOTHING ||
            json_kind(list) != JSON_IS_NOTHING)
            decoder_fail(decoder, "node, epoch, nodes: this image takes them with each process");
        return;
    }
    job->node = decode_node_id(decoder, own, 1);
    job->epoch = (uint32_t)field_number(decoder, "epoch", epoch, UINT32_MAX, 1);
    if (job->epoch == 0)
        decoder_fail(decoder, "epoch: must not be 0");
    if (!field_list(decoder, "nodes", list, &walk))
        return;
    while (!decoder->failed && json_walk_next(&walk, NULL, &node)) {
        if (job->node_count == JOB_NODES)
            decoder_fail(decoder, "nodes: at most %d", JOB_NODES);
        else
            decode_node(work, &node, &job->nodes[job->node_count++]);
    }
}

/* ---- services, steps, files ---- */
static void decode_task(struct decoder *decoder, const char *where, const struct json_value *object,
                        bool may_restart, struct job_task *task)
{
    struct json_value app = {0}, restart = {0};
    const struct field fields[] = {
        {"app", &app}, {"options", &task->options}, {"restart", &restart}};

    *task = (struct job_task){0};
    fields_take(decoder, where, object, fields, COUNT(fields) - (may_restart ? 0 : 1));
    field_text(decoder, "app", &app, task->app, sizeof(task->app));
    if (task->app[0] == '\0' || task->app[0] == '.' || strchr(task->app, '/') != NULL)
        decoder_fail(decoder, "%s: app: must be the name of an application", where);
    task->restart = field_flag(decoder, "restart", &restart);
    if (json_kind(&task->options) != JSON_IS_NOTHING && json_kind(&task->options) != JSON_IS_OBJECT)
        decoder_fail(decoder, "%s: %s: options must be an object", where, task->app);
}

static unsigned decode_tasks(struct work *work, const char *where, const struct json_value *list,
                             bool step)
{
    struct decoder *decoder = &work->decoder;
    struct json_walk walk;
    struct json_value object;
    unsigned count = 0;

    if (!field_list(decoder, where, list, &walk))
        return 0;
    for (; !decoder->failed && json_walk_next(&walk, NULL, &object); count++) {
        struct job_task task;

        decode_task(decoder, where, &object, !step && work->image->has_restarts, &task);
        if (!decoder->failed && work->image->check_task != NULL)
            work->image->check_task(decoder, where, &task, step);
    }
    return count;
}

bool job_next_task(struct json_walk *walk, struct job_task *task)
{
    char error[JOB_ERROR];
    struct decoder decoder = {.error = error}; /* nothing fails a second time */
    struct json_value object;

    if (!json_walk_next(walk, NULL, &object))
        return false;
    decode_task(&decoder, "", &object, true, task);
    return true;
}

static void check_files(struct work *work)
{
    struct decoder *decoder = &work->decoder;
    const struct json_value *files = &work->job->files;
    struct json_walk walk;
    struct json_value name, content;
    char path[JOB_PATH];

    if (json_kind(files) != JSON_IS_NOTHING && json_kind(files) != JSON_IS_OBJECT)
        decoder_fail(decoder, "files: must be an object");
    else if (!work->image->has_files && json_count(files) != 0)
        decoder_fail(decoder, "files: this image has no file system");
    json_walk_start(&walk, files);
    while (!decoder->failed && json_walk_next(&walk, &name, &content))
        if (!json_text(&name, path, sizeof(path)) || path[0] != '/' ||
            json_kind(&content) != JSON_IS_STRING)
            decoder_fail(decoder, "files: %.*s must be an absolute path with a string",
                         name.length < JOB_NAME ? (int)name.length : JOB_NAME, name.text);
}

/* ---- the whole ---- */
/* The name goes into records as it is. */
static void check_machine(struct decoder *decoder, const char *machine)
{
    for (; *machine != '\0'; machine++)
        if (*machine <= ' ' || *machine == '"' || *machine == '\\' || *machine == 127)
            decoder_fail(decoder, "machine: must be a name of letters, digits and hyphens");
}

static bool decode_clock(struct decoder *decoder, const struct json_value *value)
{
    char clock[16];
    bool given = field_text(decoder, "clock", value, clock, sizeof(clock));

    if (given && strcmp(clock, "tsc") != 0 && strcmp(clock, "monotonic") != 0)
        decoder_fail(decoder, "clock: must be \"tsc\" or \"monotonic\"");
    return given && strcmp(clock, "tsc") == 0;
}

static void decode_job(struct work *work, const struct json_value *root)
{
    struct decoder *decoder = &work->decoder;
    struct job *job = work->job;
    struct json_value version = {0}, wait = {0}, interactive = {0}, machine = {0}, seed = {0};
    struct json_value clock = {0}, interfaces = {0}, bridge = {0}, zero_ns = {0}, start_ns = {0};
    struct json_value node = {0}, epoch = {0}, nodes = {0}, routes = {0}, forward = {0};
    const struct field fields[] = {
        {"version", &version},
        {"wait", &wait},
        {"interactive", &interactive},
        {"machine", &machine},
        {"seed", &seed},
        {"clock", &clock},
        {"interfaces", &interfaces},
        {"bridge", &bridge},
        {"routes", &routes},
        {"forward", &forward},
        {"files", &job->files},
        {"services", &job->services},
        {"start_ns", &start_ns},
        {"steps", &job->steps},
        {"zero_ns", &zero_ns},
        {"node", &node},
        {"epoch", &epoch},
        {"nodes", &nodes},
    };

    fields_take(decoder, "job", root, fields, COUNT(fields));
    if (field_number(decoder, "version", &version, UINT64_MAX, 0) != VERSION)
        decoder_fail(decoder, "version: must be %d", VERSION);
    job->wait = field_flag(decoder, "wait", &wait);
    job->interactive = field_flag(decoder, "interactive", &interactive);
    field_text(decoder, "machine", &machine, job->machine, sizeof(job->machine));
    check_machine(decoder, job->machine);
    job->seed = field_number(decoder, "seed", &seed, INT64_MAX, 0);
    job->tsc = decode_clock(decoder, &clock);
    job->zero_ns = field_number(decoder, "zero_ns", &zero_ns, INT64_MAX, 0);
    job->start_ns = field_number(decoder, "start_ns", &start_ns, INT64_MAX, 0);
    decode_interfaces(work, &interfaces);
    decode_bridge(work, &bridge);
    decode_routes(work, &routes, &forward);
    decode_nodes(work, &node, &epoch, &nodes);
    check_files(work);
    job->service_count = decode_tasks(work, "services", &job->services, false);
    if (job->service_count > work->image->most_services)
        decoder_fail(decoder, "services: %u of them: at most %u", job->service_count,
                     work->image->most_services);
    job->step_count = decode_tasks(work, "steps", &job->steps, true);
}

bool job_decode(const char *text, size_t length, const struct job_image *image, struct job *job,
                char error[JOB_ERROR])
{
    struct work work = {.decoder = {.error = error}, .image = image, .job = job};
    struct json_value root;
    const char *wrong = json_check(text, length, &root);

    memset(job, 0, sizeof(*job));
    if (wrong != NULL)
        decoder_fail(&work.decoder, "the job is not JSON: byte %zu: %s", (size_t)(root.text - text),
                     wrong);
    else
        decode_job(&work, &root);
    return !work.decoder.failed;
}
