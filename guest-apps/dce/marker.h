/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions whose entries and exits are stamped from outside, at their addresses: each is called
 * and returned from once a step, so none may be inlined, cloned or left by a jump (dce.mk compiles
 * this folder with -fno-optimize-sibling-calls). Clang, which only the tests use, has no clones.
 */
#ifdef __clang__
#define DCE_MARKER __attribute__((noinline))
#else
#define DCE_MARKER __attribute__((noinline, noclone))
#endif
