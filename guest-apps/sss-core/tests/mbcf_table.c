/* SPDX-License-Identifier: Apache-2.0 */

/* Prints MBCF's bytes and numbers as the compiler knows them, for wiregen.py --against. */
#include <stdio.h>

#include "state.h"

#define SHOW(name, value) printf("%s %lld\n", name, (long long)(value))

/* Offset and size, found by writing the field. */
#define SHOW_FIELD(name, bits)                                                                     \
    do {                                                                                           \
        uint8_t bytes[MBW_HEADER + MBW_PAYLOAD] = {0};                                             \
        unsigned first = 0, size = 0;                                                              \
        mbw_set_##name(bytes, (uint##bits##_t) ~(uint##bits##_t)0);                                \
        while (bytes[first] == 0)                                                                  \
            first++;                                                                               \
        while (bytes[first + size] != 0)                                                           \
            size++;                                                                                \
        printf("field_%s %u %u\n", #name, first, size);                                            \
    } while (0)

int main(void)
{
    unsigned transport = 0;

#define MBW_NUMBER(name, value)               SHOW(#name, MBW_##name);
#define MBW_CONTROL(name, code)               SHOW(#name, MBW_##name);
#define MBW_REQUEST(name, code)               SHOW(#name, MBW_##name);
#define MBW_NOTICE(name, code)                SHOW(#name, MBW_##name);
#define MBW_FLAG(name, bit)                   SHOW(#name, MBW_##name);
#define MBW_FIELD(name, offset, bits)         SHOW_FIELD(name, bits);
#define MBW_PAYLOAD_FIELD(name, offset, bits) SHOW_FIELD(name, bits);
#include "wire.def"
#define MBCF_COUNT(name, value) SHOW(#name, name);
#define MBCF_TIME_NS(name, ns)  SHOW(#name, name);
#include "limits.def"
#define MB_STATUS(name, number, text) printf("STATUS_%s %d %s\n", #name, MB_##name, text);
#include "sss/mbcf_status.def"
#define TRANSPORT(type, name, ...) printf("TRANSPORT_%s %u %s\n", #type, transport++, name);
#include "rpc/transports.def"
    return 0;
}
