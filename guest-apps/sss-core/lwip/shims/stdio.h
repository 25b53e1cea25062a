/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* lwIP includes it and calls nothing of it. */
