// SPDX-License-Identifier: Apache-2.0
//! ATM: adapters, a switch, LAN emulation.

mod lane;
