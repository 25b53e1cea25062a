// SPDX-License-Identifier: Apache-2.0
// One program under two names: a library of 7 MB is in memory once, and translated once.
#include <cstring>

#include "guest.h"
#include "programs.h"

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash == nullptr ? argv[0] : slash + 1;

    if (clock_select_from_environment() != 0)
        samples_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
    if (strcmp(name, "grpc-cpp-client") == 0)
        return client::run(argc, argv);
    if (strcmp(name, "grpc-cpp-server") == 0)
        return server::run(argc, argv);
    samples_fail("%s: must be grpc-cpp-client or grpc-cpp-server", name);
}
