/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One station on an emulated wire, as a connected unix datagram socket that carries one frame a
 * datagram: what QEMU's
 * `-netdev dgram` and what VDE speak alike.
 */
struct endpoint {
    int socket;
    int control;    /* VDE: open as long as the port is ours; else -1 */
    char path[108]; /* our own name, removed by endpoint_close */
};

/*
 * `spec`: "dgram:OWN:FAR", two socket paths; or "vde:FOLDER:OWN", the control folder of a
 * vde_switch and a path of ours. Ends the program with a line on stderr when it cannot be opened.
 */
void endpoint_open(struct endpoint *endpoint, const char *spec);

void endpoint_close(struct endpoint *endpoint);
