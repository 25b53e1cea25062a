// SPDX-License-Identifier: Apache-2.0
//! Clients and servers together. An SDU takes 10 us, a server 50 us, a call 2 ms, unless a test says
//! otherwise; all times are sums of these.

mod calls;
mod channels;
mod membership;
mod property;
mod proxies;
mod rig;
