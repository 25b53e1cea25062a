// SPDX-License-Identifier: Apache-2.0
#pragma once

// The main functions of the two programs that this one is.
namespace client
{
int run(int argc, char **argv);
}

namespace server
{
int run(int argc, char **argv);
}
