/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What rpcgen -M includes and does not use. */
