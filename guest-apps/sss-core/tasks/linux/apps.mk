# SPDX-License-Identifier: Apache-2.0
#
# The MBCF workloads as Linux programs: one program, OUT/mbcf-apps, and a link to it for each. It is not part of OUT/apps, since
# SSS-CORE's own Sun RPC runtime and libtirpc have the same names. The rules are relative to guest-apps.

MBCF_APPS = mbcf-echo-server mbcf-echo-client mbcf-server mbcf-client
EXTRAS += $(MBCF_APPS)
MBCF_TASKS = echo-server echo-client mbcf-server mbcf-client
MBCF_SOURCES = $(patsubst %,sss-core/%,lib/mbcf_calls.c lib/json.c $(patsubst %,tasks/linux/%.c,applets no_sockets no_backplane)) \
	$(wildcard sss-core/linux/*.c sss-core/mbcf/*.c sss-core/rpc/*.c sss-core/tasks/common/*.c) common/clock.c \
	$(addprefix common/,pattern.c mix.c functions.c distance.c) \
	$(addprefix echo/,caller.c duplicates.c exchange.c function_values.c service.c)
MBCF_OBJECTS = $(MBCF_SOURCES:%.c=$(OUT)/mbcf/%.o) $(MBCF_TASKS:%=$(OUT)/mbcf/%-task.o) $(INTERFACES:%=$(OUT)/mbcf/%_xdr.o)
MBCF_CFLAGS = $(CFLAGS) -Wno-cast-function-type -DSSS_LINUX -Isss-core -Isss-core/include -Isss-core/mbcf -Isss-core/linux \
	-iquote sss-core/tasks/common -Iecho -I$(OUT)
MBCF_HEADERS = $(wildcard sss-core/*/*.h sss-core/*/*/*.h common/*.h echo/*.h) $(MAKEFILE_LIST)

$(OUT)/mbcf-apps $(OUT)/mbcf-apps.symbols: $(MBCF_OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread

$(MBCF_APPS:%=$(OUT)/%): $(OUT)/mbcf-apps
	ln -sf mbcf-apps $@

$(OUT)/mbcf/%.o: %.c $(MBCF_HEADERS) | $(INTERFACE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(MBCF_CFLAGS) -c -o $@ $<

# A task's main is a function of the one program.
$(OUT)/mbcf/%-task.o: sss-core/tasks/%.c $(MBCF_HEADERS) | $(INTERFACE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(MBCF_CFLAGS) -Dmain=$(subst -,_,$*)_task -Wno-missing-prototypes -c -o $@ $<

$(INTERFACES:%=$(OUT)/mbcf/%_xdr.o): $(OUT)/mbcf/%_xdr.o: $(OUT)/%_xdr.c $(OUT)/%.h
	@mkdir -p $(@D)
	$(CC) $(filter-out $(WARNINGS),$(MBCF_CFLAGS)) -Wno-unused-variable -ffile-prefix-map=$(abspath $(OUT))=. -c -o $@ $<
