/* SPDX-License-Identifier: Apache-2.0 */
/* The DCE RPC server: guest-apps/dce, with the runtime in ../dce. */
#include "programs.h"

int main(int argc, char **argv)
{
    return dce_server_main(argc, argv);
}
