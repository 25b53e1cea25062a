/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The job: what the harness tells a machine to be and to do (harness/schemas/README.md,
 * "job.json"). All of it is checked at once, before anything is done. Nothing is allocated:
 * services, steps and files stay pieces of the text, which must live as long as the job.
 * Freestanding, for guests with and without a C library.
 */
#include "fields.h"

enum {
    JOB_BYTES = 65536, /* of the file in fw_cfg */
    JOB_INTERFACES = 8,
    JOB_NEIGHBOURS = 120, /* of an interface: 15 other machines with 8 each */
    JOB_NODES = 64,       /* node ids are 1 to 64 */
    JOB_ROUTES = 64,
    JOB_MACHINE = 64, /* these four: bytes of a text with its NUL */
    JOB_NAME = 32,
    JOB_DEVICE = 8,
    JOB_NETEM = 512,
    JOB_PATH = 256,
    JOB_MAC = 6,
};

struct job_neighbour {
    uint32_t address; /* host byte order */
    uint8_t mac[JOB_MAC];
};

struct job_interface {
    char device[JOB_DEVICE];
    unsigned adapter; /* N of ethN */
    bool has_mac;
    uint8_t mac[JOB_MAC];
    uint32_t address, netmask; /* host byte order; address 0: none */
    uint16_t mtu;
    bool offloads;
    unsigned neighbour_count;
    struct job_neighbour neighbours[JOB_NEIGHBOURS];
};

struct job_bridge_port {
    char device[JOB_DEVICE];
    char netem[JOB_NETEM]; /* arguments of tc-netem; empty: no queueing discipline */
};

/* The way to a network that no interface is on. All in host byte order. */
struct job_route {
    uint32_t network, netmask;
    uint32_t via;
};

/* Another node of memory-based communication. */
struct job_node {
    uint16_t node;
    uint8_t mac[JOB_MAC];
    char machine[JOB_MACHINE];
};

/* A service or a step. */
struct job_task {
    char app[JOB_NAME];
    struct json_value options; /* an object, or nothing */
    bool restart;              /* of a service: start it again whenever it ends */
};

struct job {
    bool wait, interactive, tsc;
    bool forward; /* IP packets of others, between the interfaces */
    char machine[JOB_MACHINE];
    uint64_t seed, zero_ns, start_ns;
    uint16_t node;
    uint32_t epoch;
    unsigned interface_count, bridge_port_count, route_count;
    unsigned node_count, service_count, step_count;
    struct job_interface interfaces[JOB_INTERFACES];
    struct job_bridge_port bridge_ports[JOB_INTERFACES];
    struct job_route routes[JOB_ROUTES];
    struct job_node nodes[JOB_NODES];
    struct json_value services, steps, files;
};

/* What one image takes. What it does not have is refused in a job. */
struct job_image {
    uint16_t least_mtu, most_mtu;
    uint16_t absent_mtu; /* of an interface without one */
    bool has_offloads;
    bool has_bridge;
    bool has_routes;
    bool has_files;
    bool is_node;      /* of memory-based communication, as a machine */
    bool has_restarts; /* of services */
    unsigned most_services;
    /* Further demands on a service or step; NULL: none. */
    void (*check_task)(struct decoder *decoder, const char *where, const struct job_task *task,
                       bool step);
};

/* Decodes a whole job. False: `error` says in one line what is wrong. */
bool job_decode(const char *text, size_t length, const struct job_image *image, struct job *job,
                char error[JOB_ERROR]);

/* The services or steps of a decoded job, in order: json_walk_start, then this until false. */
bool job_next_task(struct json_walk *walk, struct job_task *task);

/* "02:53:44:00:00:01", "10.0.0.1" and "10.0.0.1/24"; false for any other text. */
bool job_parse_mac(const char *text, uint8_t mac[JOB_MAC]);
bool job_parse_address(const char *text, uint32_t *address);
bool job_parse_network(const char *text, uint32_t *address, uint32_t *netmask);
