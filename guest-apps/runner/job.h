/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The job of ARCHITECTURE.md, decoded once; nothing after this looks at JSON but the apps. */

enum { JOB_BYTES = 65536, JOB_NAME_LIMIT = 16, JOB_ERROR_LIMIT = 256 };

struct neighbour {
    struct in_addr address;
    uint8_t mac[ETH_ALEN];
};

struct interface {
    char device[JOB_NAME_LIMIT];
    bool has_mac;
    uint8_t mac[ETH_ALEN];
    bool has_address;
    struct in_addr address;
    struct in_addr netmask;
    int mtu; /* 0: as it is */
    bool offloads;
    struct neighbour *neighbours;
    size_t neighbour_count;
};

struct bridge_port {
    char device[JOB_NAME_LIMIT];
    const char *netem; /* arguments of tc-netem; empty: no queueing discipline */
};

struct task {
    const char *app;
    char *options; /* JSON text */
};

struct job {
    bool wait;
    bool interactive;
    const char *machine;
    uint64_t seed;
    const char *clock;
    uint64_t zero_ns;
    uint64_t start_ns;
    struct interface *interfaces;
    size_t interface_count;
    struct bridge_port *bridge_ports;
    size_t bridge_port_count;
    const json_t *files; /* object: path to content */
    struct task *services;
    size_t service_count;
    struct task *steps;
    size_t step_count;
    json_t *root; /* keeps the texts above alive */
};

/* Decodes `length` bytes. On failure -1, with the field and what is allowed in `error`. */
int job_parse(const char *text, size_t length, struct job *job, char error[JOB_ERROR_LIMIT]);

void job_free(struct job *job);

/* "02:53:44:00:00:01" and "10.0.0.1/24"; false if the text is anything else. */
bool job_parse_mac(const char *text, uint8_t mac[ETH_ALEN]);
bool job_parse_address(const char *text, struct in_addr *address, struct in_addr *netmask);
