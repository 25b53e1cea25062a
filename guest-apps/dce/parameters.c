/* SPDX-License-Identifier: Apache-2.0 */
#include "parameters.h"

#include <stdlib.h>

#include "samples.h"
#include "stubs.h"
#include "twelve_ndr.h"

enum {
    FRAGMENT_DEFAULT = 4096,
    WINDOW_DEFAULT = 32 * 1024,
    RESEND_DEFAULT_MS = 2000,
    GIVE_UP_DEFAULT_MS = 30000,
    HOUR_MS = 3600 * 1000,
    BUFFER_LIMIT = 1 << 24,
    NS_PER_MS = 1000 * 1000,
};

bool dce_address(const char *text, uint32_t *address)
{
    char *end;

    *address = 0;
    for (unsigned i = 0; i < 4; i++, text = end + 1) {
        unsigned long part = strtoul(text, &end, 10);

        if (*text < '0' || *text > '9' || part > 255 || *end != (i < 3 ? '.' : '\0'))
            return false;
        *address = *address << 8 | (uint32_t)part;
    }
    return true;
}

uint64_t dce_option_ms(struct options *options, const char *name, unsigned absent_ms)
{
    return (uint64_t)options_integer(options, name, absent_ms, 1, HOUR_MS) * NS_PER_MS;
}

static void read_sizes(struct dce_parameters *parameters, struct options *options)
{
    parameters->sizes = options_integers(options, "interface_sizes", 0, DCE_PAYLOAD_MOST,
                                         &parameters->size_count);
    if (parameters->size_count > DCE_SIZES_MOST)
        samples_refuse("option interface_sizes: at most %d", DCE_SIZES_MOST);
    parameters->largest = 0;
    for (size_t i = 0; i < parameters->size_count; i++)
        if ((size_t)parameters->sizes[i] > parameters->largest)
            parameters->largest = (size_t)parameters->sizes[i];
    dce_stubs_sizes(parameters->sizes, parameters->size_count);
}

void dce_parameters_of_functions(struct dce_parameters *parameters)
{
    if (parameters->size_count != 0)
        samples_refuse("option interface_sizes: the interface of the functions has none");
    parameters->largest = DCE_TWELVE_MOST;
}

void dce_parameters_read(struct dce_parameters *parameters, struct options *options)
{
    static const char *const orders[] = {"little", "big", NULL};
    static const char *const policies[] = {"window", "halves", "osf", NULL};
    long long fragment = options_integer(options, "fragment_bytes", FRAGMENT_DEFAULT,
                                         DCE_MUST_RECEIVE, DCE_HEADER + DCE_BODY_MOST);
    long long window = options_integer(options, "window_bytes", WINDOW_DEFAULT, 1024,
                                       DCE_WINDOW_MOST_KIB * 1024);

    if (fragment % 8 != 0)
        samples_refuse("option fragment_bytes: must be a multiple of 8");
    if (window % 1024 != 0 || window < fragment || window < 3 * 1024)
        samples_refuse(
            "option window_bytes: must be a multiple of 1024, at least 3072 and a fragment");
    parameters->window_bytes = (unsigned)window;
    parameters->offer = (struct dce_offer){(uint16_t)(window / 1024), (uint32_t)fragment};
    parameters->xmitq.fragment = (unsigned)fragment;
    parameters->xmitq.policy = (enum dce_policy)options_word(options, "policy", policies);
    parameters->policy_text = policies[parameters->xmitq.policy];
    parameters->xmitq.resend_ns = dce_option_ms(options, "resend_ms", RESEND_DEFAULT_MS);
    parameters->give_up_ns = dce_option_ms(options, "give_up_ms", GIVE_UP_DEFAULT_MS);
    parameters->big_endian = options_word(options, "byte_order", orders) == 1;
    parameters->byte_order_text = orders[parameters->big_endian];
    parameters->socket_buffer = (int)options_integer(options, "socket_buffer", 0, 0, BUFFER_LIMIT);
    read_sizes(parameters, options);
}
