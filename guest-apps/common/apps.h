/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All applications are one static program, which does what the name that it is started with says.
 * One file means one copy of the libraries in the guest's memory, and code that one process has run
 * is translated already when QEMU meets it in the next.
 */
typedef int app_main(int argc, char **argv);

app_main runner_main;
app_main echo_client_main, echo_server_main, rpcbind_main;
app_main raw_client_main, raw_server_main, iperf3_client_main, iperf3_server_main;
