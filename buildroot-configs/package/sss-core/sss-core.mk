################################################################################
#
# sss-core
#
################################################################################

SSS_CORE_VERSION = 1.0
SSS_CORE_SITE = $(BR2_EXTERNAL_SUNDIAL_PATH)/../guest-apps
SSS_CORE_SITE_METHOD = local
SSS_CORE_LICENSE = Apache-2.0
SSS_CORE_LICENSE_FILES = LICENSE
SSS_CORE_DEPENDENCIES = host-rpcsvc-proto lwip
SSS_CORE_INSTALL_IMAGES = YES
SSS_CORE_INSTALL_TARGET = NO
# Objects of a build on the host.
SSS_CORE_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = --exclude build

define SSS_CORE_COPY_LICENSE
	cp $(BR2_EXTERNAL_SUNDIAL_PATH)/../LICENSE $(@D)/
endef
SSS_CORE_POST_RSYNC_HOOKS += SSS_CORE_COPY_LICENSE

# Freestanding: the compiler's own headers, no C library, and no CFLAGS of the target.
define SSS_CORE_BUILD_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D)/sss-core \
		CC="$(TARGET_CC)" \
		LD="$(TARGET_LD)" \
		AR="$(TARGET_CROSS)gcc-ar" \
		NM="$(TARGET_NM)" \
		STRIP="$(TARGET_STRIP)" \
		LWIP=$(STAGING_DIR)/usr/share/lwip \
		CPIO_WRITER=$(BR2_EXTERNAL_SUNDIAL_PATH)/../images/recipe/cpio.py \
		OUT=$(@D)/build \
		all
endef

define SSS_CORE_INSTALL_IMAGES_CMDS
	$(INSTALL) -D -m 0644 $(@D)/build/ssscore $(BINARIES_DIR)/ssscore/kernel
	$(INSTALL) -D -m 0644 $(@D)/build/tasks.cpio $(BINARIES_DIR)/ssscore/initrd
endef

$(eval $(generic-package))
