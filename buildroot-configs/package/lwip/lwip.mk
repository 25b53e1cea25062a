################################################################################
#
# lwip
#
################################################################################

LWIP_VERSION = STABLE-2_1_3_RELEASE
LWIP_SITE = $(call github,lwip-tcpip,lwip,$(LWIP_VERSION))
LWIP_LICENSE = BSD-3-Clause
LWIP_LICENSE_FILES = COPYING
LWIP_CPE_ID_VERSION = 2.1.3
LWIP_INSTALL_STAGING = YES
LWIP_INSTALL_TARGET = NO

# There is nothing to build: its users compile it into themselves.
define LWIP_INSTALL_STAGING_CMDS
	mkdir -p $(STAGING_DIR)/usr/share/lwip
	cp -a $(@D)/src $(STAGING_DIR)/usr/share/lwip/
endef

$(eval $(generic-package))
