################################################################################
#
# rpcsvc-proto
#
################################################################################

RPCSVC_PROTO_VERSION = 1.4.4
RPCSVC_PROTO_SOURCE = rpcsvc-proto-$(RPCSVC_PROTO_VERSION).tar.xz
RPCSVC_PROTO_SITE = https://github.com/thkukuk/rpcsvc-proto/releases/download/v$(RPCSVC_PROTO_VERSION)
RPCSVC_PROTO_LICENSE = BSD-3-Clause
RPCSVC_PROTO_LICENSE_FILES = COPYING

# Only rpcgen is needed, on the host.
$(eval $(host-autotools-package))
