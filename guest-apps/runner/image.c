/* SPDX-License-Identifier: Apache-2.0 */
#include "image.h"

enum { LEAST_MTU = 68, MOST_MTU = 65535 };

const struct job_image linux_image = {
    .least_mtu = LEAST_MTU,
    .most_mtu = MOST_MTU,
    .absent_mtu = 0, /* as it is */
    .has_offloads = true,
    .has_bridge = true,
    .has_routes = true,
    .has_files = true,
    .most_services = SERVICES_LIMIT,
};
