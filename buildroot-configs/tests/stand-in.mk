# SPDX-License-Identifier: Apache-2.0
#
# A stand-in for Buildroot's package infrastructure, for tests: it runs what our packages define, with the host's compiler.
#
#   make -f stand-in.mk TREE=DIR OUT=DIR NAME...    NAME is a package; OUT/NAME its folder, with its sources if they are not local

BR2_EXTERNAL_SUNDIAL_PATH := $(TREE)
STAGING_DIR := $(OUT)/staging
TARGET_DIR := $(OUT)/target
BINARIES_DIR := $(OUT)/images
INSTALL := install
TARGET_CC := gcc
TARGET_LD := ld
TARGET_NM := nm
TARGET_STRIP := strip
# What the packages end with; the lines after the include take its place.
generic-package =
host-autotools-package =

include $(TREE)/external.mk

# $(1) is the package, $(2) the same in capitals with underscores.
define package
.PHONY: $(1)
$(1): $(OUT)/$(1)/.stamp
$(OUT)/$(1)/.stamp:
	mkdir -p $$(@D) $$(TARGET_DIR)/bin
	$$(if $$(filter local,$$($(2)_SITE_METHOD)),tar -C $$($(2)_SITE) $$($(2)_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS) -c . | tar -C $$(@D) -x)
	$$(foreach hook,$$($(2)_POST_RSYNC_HOOKS),$$(call $$(hook)))
	$$($(2)_BUILD_CMDS)
	$$($(2)_INSTALL_STAGING_CMDS)
	$$(if $$(filter NO,$$($(2)_INSTALL_TARGET)),,$$($(2)_INSTALL_TARGET_CMDS))
	$$($(2)_INSTALL_IMAGES_CMDS)
endef
$(eval $(call package,lwip,LWIP))
$(eval $(call package,sss-core,SSS_CORE))
$(eval $(call package,sundial-guest-apps,SUNDIAL_GUEST_APPS))
