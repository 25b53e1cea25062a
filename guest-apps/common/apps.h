/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All applications are one static program, which does what the name that it is started with says.
 * One file means one copy of the libraries in the guest's memory, and code that one process has run
 * is translated already when QEMU meets it in the next.
 */
typedef int app_main(int argc, char **argv);

/* A line for each application, made of the names in the folders' .mk files. */
#define APPLET(name, main) app_main main;
#include "applets.h"
#undef APPLET

/* Does what argv[0] says; its exit status. */
int apps_run(int argc, char **argv);
