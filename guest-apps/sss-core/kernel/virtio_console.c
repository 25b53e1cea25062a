/* SPDX-License-Identifier: Apache-2.0 */
#include "virtio_console.h"

#include "console.h"
#include "interrupt.h"
#include "memory.h"
#include "timer.h"
#include "virtio.h"

#define VIRTIO_CONSOLE_F_MULTIPORT (1ull << 1)

/* Control messages (5.3.6.2). */
struct control {
    uint32_t id;
    uint16_t event;
    uint16_t value;
};
enum { DEVICE_READY = 0, DEVICE_ADD = 1, PORT_READY = 3, PORT_OPEN = 6, PORT_NAME = 7 };
#define NO_PORT 0xffffffffu

enum {
    PORTS = 4,
    NAME_BYTES = 32,
    CONTROL_IN = 2, /* queues (5.3.2) */
    CONTROL_OUT = 3,
    CONTROL_BUFFERS = 16,
    CONTROL_BYTES = 64,
    DATA_BUFFERS = 16, /* of one page each */
    GIVE_UP_NS = 200 * 1000 * 1000,
};

struct console_port {
    uint32_t id;
    char name[NAME_BYTES];
    struct virtq in, out;
    uint8_t *in_buffers, *out_buffers;
    bool stuck;
    void (*received)(const char *text, size_t length);
};

static struct virtio_device device;
static struct virtq control_in, control_out;
static uint8_t *control_buffers; /* those of control_in, then one of control_out */
static struct console_port ports[PORTS];
static unsigned port_count;
static int vector;

/* Whether the device has taken everything that was offered, in a bounded time. */
static bool wait_taken(const struct virtq *queue)
{
    uint64_t end = now_ns() + GIVE_UP_NS;

    while (queue->used->index != queue->offered)
        if (now_ns() > end)
            return false;
    return true;
}

static void describe(struct virtq *queue, unsigned id, const void *buffer, size_t length,
                     uint16_t flags)
{
    queue->descriptors[id] = (struct virtq_descriptor){
        .address = physical(buffer), .length = (uint32_t)length, .flags = flags};
    virtq_offer(queue, (uint16_t)id);
}

static bool send_control(uint32_t id, uint16_t event, uint16_t value)
{
    struct control *message = (void *)(control_buffers + CONTROL_BUFFERS * CONTROL_BYTES);

    if (!wait_taken(&control_out))
        return false;
    *message = (struct control){.id = id, .event = event, .value = value};
    describe(&control_out, 0, message, sizeof(*message), 0);
    virtq_publish(&control_out);
    return wait_taken(&control_out);
}

/* 5.3.2: port 0 has queues 0 and 1, the control messages 2 and 3. */
static unsigned queue_of(uint32_t port)
{
    return port == 0 ? 0 : 2 * (port + 1);
}

static void offer_input(struct console_port *port)
{
    for (unsigned i = 0; i < DATA_BUFFERS && i <= port->in.mask; i++)
        describe(&port->in, i, port->in_buffers + i * PAGE, PAGE, VIRTQ_WRITE);
    virtq_publish(&port->in);
}

static struct console_port *port_of(uint32_t id)
{
    for (unsigned i = 0; i < port_count; i++)
        if (ports[i].id == id)
            return &ports[i];
    return NULL;
}

static void add_port(uint32_t id)
{
    struct console_port *port = &ports[port_count];
    const char *wrong;

    if (port_of(id) != NULL)
        return;
    if (port_count == PORTS) {
        kprintf("console: more than %d ports; port %u is not used\n", PORTS, id);
        return;
    }
    port->in_buffers = pages_alloc(DATA_BUFFERS);
    port->out_buffers = pages_alloc(DATA_BUFFERS);
    if (port->in_buffers == NULL || port->out_buffers == NULL) {
        kprintf("console: no memory for port %u\n", id);
        return;
    }
    wrong = virtio_queue(&device, &port->in, queue_of(id), DATA_BUFFERS, vector);
    if (wrong == NULL)
        wrong = virtio_queue(&device, &port->out, queue_of(id) + 1, DATA_BUFFERS, 0);
    if (wrong != NULL) {
        kprintf("console: port %u %s\n", id, wrong);
        return;
    }
    port->id = id;
    port_count++;
}

static void name_port(struct console_port *port, const char *name, size_t length)
{
    size_t i;

    for (i = 0; i < length && i + 1 < NAME_BYTES; i++)
        port->name[i] = name[i];
    port->name[i] = '\0';
}

static void handle_control(const struct control *message, size_t length)
{
    struct console_port *port = port_of(message->id);

    if (message->event == DEVICE_ADD) {
        add_port(message->id);
        send_control(message->id, PORT_READY, port_of(message->id) != NULL);
    } else if (message->event == PORT_NAME && port != NULL) {
        name_port(port, (const char *)(message + 1), length - sizeof(*message));
        send_control(port->id, PORT_OPEN, 1);
    }
}

static void drain_control(void)
{
    while (virtq_has_used(&control_in)) {
        uint32_t length;
        uint16_t id = virtq_take(&control_in, &length);

        if (length >= sizeof(struct control) && length <= CONTROL_BYTES)
            handle_control((void *)(control_buffers + id * CONTROL_BYTES), length);
        virtq_offer(&control_in, id);
        virtq_publish(&control_in);
    }
}

static void drain_port(struct console_port *port)
{
    while (virtq_has_used(&port->in)) {
        uint32_t length;
        uint16_t id = virtq_take(&port->in, &length);

        port->received((const char *)port->in_buffers + id * PAGE, length < PAGE ? length : PAGE);
        virtq_offer(&port->in, id);
        virtq_publish(&port->in);
    }
}

static void interrupted(void *argument)
{
    (void)argument;
    drain_control();
    for (unsigned i = 0; i < port_count; i++)
        drain_port(&ports[i]);
}

static const char *start(struct pci_function *pci)
{
    uint64_t agreed;
    const char *wrong = virtio_start(&device, pci, VIRTIO_CONSOLE_F_MULTIPORT, &agreed);

    if (wrong == NULL && (agreed & VIRTIO_CONSOLE_F_MULTIPORT) == 0)
        wrong = "has no named ports";
    if (wrong == NULL)
        wrong = virtio_queue(&device, &control_in, CONTROL_IN, CONTROL_BUFFERS, vector);
    if (wrong == NULL)
        wrong = virtio_queue(&device, &control_out, CONTROL_OUT, 1, 0);
    control_buffers = page_alloc();
    if (wrong == NULL && control_buffers == NULL)
        wrong = "gets no memory";
    if (wrong != NULL)
        return wrong;
    for (unsigned i = 0; i <= control_in.mask; i++)
        describe(&control_in, i, control_buffers + i * CONTROL_BYTES, CONTROL_BYTES, VIRTQ_WRITE);
    virtio_go(&device);
    virtq_publish(&control_in);
    return send_control(NO_PORT, DEVICE_READY, 1) ? NULL : "takes no messages";
}

void virtio_console_init(void)
{
    struct pci_function *pci = virtio_find(VIRTIO_CONSOLE, 0);
    const char *wrong;

    if (pci == NULL)
        return;
    vector = interrupt_allocate(interrupted, NULL);
    wrong = start(pci);
    if (wrong != NULL) {
        kprintf("console: device %u:%u.%u %s\n", pci->bus, pci->device, pci->function, wrong);
        port_count = 0;
        return;
    }
    /* QEMU answers a message before the access that sends it returns, so this learns the names. */
    drain_control();
}

static bool same(const char *one, const char *other)
{
    while (*one != '\0' && *one == *other) {
        one++;
        other++;
    }
    return *one == *other;
}

struct console_port *virtio_console_port(const char *name)
{
    for (unsigned i = 0; i < port_count; i++)
        if (same(ports[i].name, name))
            return &ports[i];
    return NULL;
}

void virtio_console_listen(struct console_port *port,
                           void (*received)(const char *text, size_t length))
{
    port->received = received;
    /* Not before: QEMU holds what the host sends until there is a buffer, so nothing is lost that
     * comes early. */
    offer_input(port);
}

void virtio_console_flush(struct console_port *port)
{
    if (!port->stuck && !wait_taken(&port->out))
        port->stuck = true;
}

/* For the next buffer, in turn, that the device has finished with. */
static bool wait_for_buffer(struct console_port *port)
{
    uint64_t end = now_ns() + GIVE_UP_NS;

    while ((uint16_t)(port->out.offered - port->out.used->index) > port->out.mask)
        if (now_ns() > end)
            return false;
    return true;
}

bool virtio_console_write(struct console_port *port, const char *text, size_t length)
{
    while (length > 0 && !port->stuck) {
        unsigned id = port->out.offered & port->out.mask;
        uint8_t *buffer = port->out_buffers + id * PAGE;
        size_t part = length < PAGE ? length : PAGE;

        if (!wait_for_buffer(port)) {
            port->stuck = true;
            break;
        }
        __builtin_memcpy(buffer, text, part);
        describe(&port->out, id, buffer, part, 0);
        virtq_publish(&port->out);
        text += part;
        length -= part;
    }
    return !port->stuck;
}
