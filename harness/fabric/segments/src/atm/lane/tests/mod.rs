// SPDX-License-Identifier: Apache-2.0
//! Clients and servers together. An SDU takes 10 us, a server 50 us, a call 2 ms, unless a test says
//! otherwise; all times are sums of these.

mod calls;
mod channels;
mod membership;
mod property;
mod proxies;
mod rig;

use std::sync::Arc;

use super::ClientSettings;

/// Of the client at the first of two ports.
pub(super) fn client_settings() -> ClientSettings {
    rig::client_settings(0, &[false; 2], &Arc::new(rig::settings()))
}
