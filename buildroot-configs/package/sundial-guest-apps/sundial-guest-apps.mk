################################################################################
#
# sundial-guest-apps
#
################################################################################

SUNDIAL_GUEST_APPS_VERSION = 1.0
SUNDIAL_GUEST_APPS_SITE = $(BR2_EXTERNAL_SUNDIAL_PATH)/../guest-apps
SUNDIAL_GUEST_APPS_SITE_METHOD = local
SUNDIAL_GUEST_APPS_LICENSE = Apache-2.0
SUNDIAL_GUEST_APPS_LICENSE_FILES = LICENSE
SUNDIAL_GUEST_APPS_DEPENDENCIES = host-rpcsvc-proto jansson libtirpc
# Objects of a build on the host.
SUNDIAL_GUEST_APPS_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = --exclude build

define SUNDIAL_GUEST_APPS_COPY_LICENSE
	cp $(BR2_EXTERNAL_SUNDIAL_PATH)/../LICENSE $(@D)/
endef
SUNDIAL_GUEST_APPS_POST_RSYNC_HOOKS += SUNDIAL_GUEST_APPS_COPY_LICENSE

# Not $(TARGET_CONFIGURE_OPTS): its CFLAGS would replace the applications' own.
define SUNDIAL_GUEST_APPS_BUILD_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D) \
		CC="$(TARGET_CC)" \
		TIRPC=$(STAGING_DIR)/usr/include/tirpc \
		OUT=$(@D)/build \
		all
endef

# The programs, and a link to one of them for each application; the runner is the first process.
define SUNDIAL_GUEST_APPS_INSTALL_TARGET_CMDS
	rm -rf $(TARGET_DIR)/usr/lib/sundial
	mkdir -p $(TARGET_DIR)/usr/lib/sundial
	$(INSTALL) -m 0755 $(@D)/build/apps $(@D)/build/mbcf-apps $(@D)/build/command-apps $(TARGET_DIR)/usr/lib/sundial/
	find $(@D)/build -maxdepth 1 -type l -exec cp -d {} $(TARGET_DIR)/usr/lib/sundial/ \;
	ln -sf ../usr/lib/sundial/apps $(TARGET_DIR)/bin/runner
endef

$(eval $(generic-package))
