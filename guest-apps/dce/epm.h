/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ndr.h"

/*
 * The endpoint mapper (C706, appendices I, L and O: protocol towers, ept, version 3.0), of which
 * ept_map is what clients need: the port of an interface.
 */
enum {
    DCE_EPM_PORT = 135,
    DCE_EPM_VERSION = 3,
    DCE_EPM_MAP = 3,
    DCE_TOWER = 75, /* bytes of a tower of ncadg_ip_udp */
    DCE_TOWER_MOST = 256,
    DCE_EPM_BODY = 512, /* more than any argument or result here */
    DCE_EPM_TOWERS = 4, /* that one map returns */
};
#define DCE_EPM_NOT_REGISTERED 0x16c9a0d6u

extern const struct dce_uuid dce_epm_interface;

/* What a tower of ncadg_ip_udp says. */
struct dce_tower {
    struct dce_uuid interface;
    uint32_t version; /* minor << 16 | major */
    uint16_t port;
    uint32_t address;
};
/* Exactly DCE_TOWER bytes, in an order of their own. */
void dce_tower_encode(const struct dce_tower *tower, uint8_t *octets);
/* False: no tower of an interface in NDR over UDP. */
bool dce_tower_decode(const uint8_t *octets, size_t length, struct dce_tower *tower);

/* The arguments of ept_map for what `tower` names; bytes written to DCE_EPM_BODY. */
size_t dce_epm_put_map(const struct dce_tower *tower, uint8_t *body, bool big_endian);
/* Its results: the port of the first tower; false: undecodable. */
bool dce_epm_get_map(const uint8_t *body, size_t length, bool big_endian, uint16_t *port,
                     uint32_t *status);

/*
 * Serves ept_map over what is registered. The results, in the order `big_endian_out`, say how many
 * bytes were written to DCE_EPM_BODY; 0: the arguments cannot be decoded.
 */
size_t dce_epm_serve(const struct dce_tower *registered, size_t count, const uint8_t *body,
                     size_t length, bool big_endian, uint8_t *results, bool big_endian_out);
