/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/types.h>

typedef unsigned short sa_family_t;
typedef unsigned int socklen_t;

#define AF_INET 2

struct sockaddr {
    sa_family_t sa_family;
    char sa_data[14];
};
