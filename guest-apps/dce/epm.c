/* SPDX-License-Identifier: Apache-2.0 */
#include "epm.h"

enum {
    FLOORS = 5,
    PROTOCOL_UUID = 0x0d,
    PROTOCOL_CL = 0x0a,
    PROTOCOL_UDP = 0x08,
    PROTOCOL_IP = 0x09,
    UUID_FLOOR = 19, /* the protocol, a UUID, and the major version */
    NDR_MAJOR = 2,
    HANDLE = 20,  /* ept_lookup_handle_t: a context handle */
    REFERENT = 3, /* any number but 0, and one more for each tower */
};

const struct dce_uuid dce_epm_interface = {{0xe1, 0xaf, 0x83, 0x08, 0x5d, 0x1f, 0x11, 0xc9, 0x91,
                                            0xa4, 0x08, 0x00, 0x2b, 0x14, 0xa0, 0xfa}};
static const struct dce_uuid ndr_syntax = {{0x8a, 0x88, 0x5d, 0x04, 0x1c, 0xeb, 0x11, 0xc9, 0x9f,
                                            0xe8, 0x08, 0x00, 0x2b, 0x10, 0x48, 0x60}};

/* ---- towers: always little endian, but port and address ---- */

static uint8_t *put_number(uint8_t *at, unsigned value)
{
    dce_put16(at, (uint16_t)value, false);
    return at + 2;
}

static uint8_t *put_uuid_floor(uint8_t *at, const struct dce_uuid *uuid, uint32_t version)
{
    at = put_number(at, UUID_FLOOR);
    *at++ = PROTOCOL_UUID;
    dce_put_uuid(at, uuid, false);
    at = put_number(at + 16, version & 0xffff);
    at = put_number(at, 2);
    return put_number(at, version >> 16);
}

static uint8_t *put_protocol_floor(uint8_t *at, uint8_t protocol, const uint8_t *value,
                                   unsigned length)
{
    at = put_number(at, 1);
    *at++ = protocol;
    at = put_number(at, length);
    memcpy(at, value, length);
    return at + length;
}

void dce_tower_encode(const struct dce_tower *tower, uint8_t *octets)
{
    static const uint8_t minor[2] = {0, 0};
    uint8_t port[2], address[4];
    uint8_t *at = put_number(octets, FLOORS);

    dce_put16(port, tower->port, true);
    dce_put32(address, tower->address, true);
    at = put_uuid_floor(at, &tower->interface, tower->version);
    at = put_uuid_floor(at, &ndr_syntax, NDR_MAJOR);
    at = put_protocol_floor(at, PROTOCOL_CL, minor, sizeof(minor));
    at = put_protocol_floor(at, PROTOCOL_UDP, port, sizeof(port));
    put_protocol_floor(at, PROTOCOL_IP, address, sizeof(address));
}

/* One side of a floor, of exactly `expected` bytes. */
static const uint8_t *get_side(struct dce_ndr *ndr, size_t expected)
{
    /* Numbers in towers are not aligned. */
    const uint8_t *at = dce_ndr_get_bytes(ndr, 2);

    if (at == NULL || dce_get16(at, false) != expected)
        ndr->failed = true;
    return dce_ndr_get_bytes(ndr, expected);
}

static bool get_uuid_floor(struct dce_ndr *ndr, struct dce_uuid *uuid, uint32_t *version)
{
    const uint8_t *left = get_side(ndr, UUID_FLOOR), *right = get_side(ndr, 2);

    if (left == NULL || right == NULL || left[0] != PROTOCOL_UUID)
        return false;
    dce_get_uuid(left + 1, uuid, false);
    *version = (uint32_t)dce_get16(right, false) << 16 | dce_get16(left + 17, false);
    return true;
}

static const uint8_t *get_protocol_floor(struct dce_ndr *ndr, uint8_t protocol, size_t length)
{
    const uint8_t *left = get_side(ndr, 1), *right = get_side(ndr, length);

    return left == NULL || left[0] != protocol ? NULL : right;
}

bool dce_tower_decode(const uint8_t *octets, size_t length, struct dce_tower *tower)
{
    struct dce_ndr ndr = dce_ndr_reader(octets, length, false);
    const uint8_t *floors = dce_ndr_get_bytes(&ndr, 2), *port, *address;
    struct dce_uuid syntax;
    uint32_t syntax_version;

    if (floors == NULL || dce_get16(floors, false) != FLOORS ||
        !get_uuid_floor(&ndr, &tower->interface, &tower->version) ||
        !get_uuid_floor(&ndr, &syntax, &syntax_version) || !dce_uuid_equal(&syntax, &ndr_syntax) ||
        syntax_version != NDR_MAJOR || get_protocol_floor(&ndr, PROTOCOL_CL, 2) == NULL)
        return false;
    port = get_protocol_floor(&ndr, PROTOCOL_UDP, 2);
    address = port == NULL ? NULL : get_protocol_floor(&ndr, PROTOCOL_IP, 4);
    if (address == NULL)
        return false;
    tower->port = dce_get16(port, true);
    tower->address = dce_get32(address, true);
    return true;
}

/* ---- ept_map ---- */

/* twr_t: its size as the bound of its conformant array, in front of the structure, and within. */
static void put_tower(struct dce_ndr *ndr, const struct dce_tower *tower)
{
    uint8_t octets[DCE_TOWER];

    dce_tower_encode(tower, octets);
    dce_ndr_put32(ndr, DCE_TOWER);
    dce_ndr_put_array(ndr, octets, DCE_TOWER);
}

static bool get_tower(struct dce_ndr *ndr, struct dce_tower *tower)
{
    size_t bound = dce_ndr_get32(ndr), count;
    const uint8_t *octets = dce_ndr_get_array(ndr, DCE_TOWER_MOST, &count);

    if (bound != count)
        ndr->failed = true;
    return !ndr->failed && dce_tower_decode(octets, count, tower);
}

size_t dce_epm_put_map(const struct dce_tower *tower, uint8_t *body, bool big_endian)
{
    static const uint8_t no_handle[HANDLE] = {0};
    struct dce_ndr ndr = dce_ndr_writer(body, DCE_EPM_BODY, big_endian);

    dce_ndr_put_full(&ndr, 0); /* any object */
    dce_ndr_put_full(&ndr, REFERENT);
    put_tower(&ndr, tower);
    dce_ndr_put32(&ndr, 0); /* the handle begins with a number: it is aligned */
    dce_ndr_put_bytes(&ndr, no_handle + 4, HANDLE - 4);
    dce_ndr_put32(&ndr, DCE_EPM_TOWERS);
    return ndr.at;
}

bool dce_epm_get_map(const uint8_t *body, size_t length, bool big_endian, uint16_t *port,
                     uint32_t *status)
{
    struct dce_ndr ndr = dce_ndr_reader(body, length, big_endian);
    struct dce_referents seen = {.count = 0};
    uint32_t count, bound, offset, actual;
    unsigned pointers = 0, index;

    dce_ndr_get_bytes(&ndr, HANDLE);
    count = dce_ndr_get32(&ndr);
    bound = dce_ndr_get32(&ndr);
    offset = dce_ndr_get32(&ndr);
    actual = dce_ndr_get32(&ndr);
    if (ndr.failed || count != actual || offset != 0 || actual > bound || actual > DCE_REFERENTS)
        return false;
    for (uint32_t i = 0; i < actual; i++)
        pointers += dce_ndr_get_full(&ndr, &seen, &index) == DCE_FULL_NEW;
    *port = 0;
    for (unsigned i = 0; i < pointers; i++) {
        struct dce_tower tower;

        if (get_tower(&ndr, &tower) && *port == 0)
            *port = tower.port;
    }
    *status = dce_ndr_get32(&ndr);
    return !ndr.failed;
}

static bool serves(const struct dce_tower *registered, const struct dce_tower *asked)
{
    return dce_uuid_equal(&registered->interface, &asked->interface) &&
           (registered->version & 0xffff) == (asked->version & 0xffff) &&
           registered->version >> 16 >= asked->version >> 16;
}

static bool get_arguments(struct dce_ndr *ndr, struct dce_tower *asked, bool *is_tower,
                          uint32_t *most)
{
    struct dce_referents seen = {.count = 0};
    struct dce_uuid object;
    unsigned index;

    if (dce_ndr_get_full(ndr, &seen, &index) != DCE_FULL_NULL)
        dce_ndr_get_uuid(ndr, &object); /* all objects are served alike */
    *is_tower = dce_ndr_get_full(ndr, &seen, &index) == DCE_FULL_NEW && get_tower(ndr, asked);
    dce_ndr_align(ndr, 4);
    dce_ndr_get_bytes(ndr, HANDLE); /* each map returns all there is, so it never goes on */
    *most = dce_ndr_get32(ndr);
    return !ndr->failed;
}

size_t dce_epm_serve(const struct dce_tower *registered, size_t count, const uint8_t *body,
                     size_t length, bool big_endian, uint8_t *results, bool big_endian_out)
{
    static const uint8_t no_handle[HANDLE] = {0};
    struct dce_ndr in = dce_ndr_reader(body, length, big_endian);
    struct dce_ndr out = dce_ndr_writer(results, DCE_EPM_BODY, big_endian_out);
    struct dce_tower asked, found[DCE_EPM_TOWERS];
    uint32_t most, number = 0;
    bool is_tower;

    if (!get_arguments(&in, &asked, &is_tower, &most))
        return 0;
    for (size_t i = 0; is_tower && i < count && number < most && number < DCE_EPM_TOWERS; i++) {
        if (!serves(&registered[i], &asked))
            continue;
        found[number] = registered[i];
        found[number++].address = asked.address; /* the one this host was asked at */
    }
    dce_ndr_put_bytes(&out, no_handle, HANDLE);
    dce_ndr_put32(&out, number);
    dce_ndr_put32(&out, most);
    dce_ndr_put32(&out, 0);
    dce_ndr_put32(&out, number);
    for (uint32_t i = 0; i < number; i++)
        dce_ndr_put_full(&out, REFERENT + i);
    for (uint32_t i = 0; i < number; i++)
        put_tower(&out, &found[i]);
    dce_ndr_put32(&out, number != 0 ? DCE_OK : DCE_EPM_NOT_REGISTERED);
    return out.at;
}
