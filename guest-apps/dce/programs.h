/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Each is the main function of a program. */
int dce_client_main(int argc, char **argv);
int dce_server_main(int argc, char **argv);
