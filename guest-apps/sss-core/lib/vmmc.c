/* SPDX-License-Identifier: Apache-2.0 */

/* What tasks ask of the backplane's adapter, one system call each; transfers need none. */
#include "sss/vmmc.h"

#include "sss/system.h"

#define CALL(number, ...) CALL_(number, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(number, a, b, c, d, e, f, ...)                                                       \
    sss_call(number, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d), (uint64_t)(e),    \
             (uint64_t)(f))

const char *vmmc_error_text(int error)
{
    switch (-error) {
    case VMMC_REFUSED + VMMC_NO_NAME:
        return "the node exports nothing of that name";
    case VMMC_REFUSED + VMMC_NO_KEY:
        return "the key is another one";
    case VMMC_REFUSED + VMMC_NO_NODE:
        return "the export is not for this node";
    case VMMC_REFUSED + VMMC_FULL:
        return "the export has been imported by another";
    case VMMC_REFUSED + VMMC_GONE:
        return "the export is no longer there";
    case SSS_ENOSYS:
        return "the node has no adapter of a backplane";
    case SSS_ETIMEDOUT:
        return "the node does not answer";
    case SSS_EAGAIN:
        return "the adapter has no place left";
    case SSS_ENOMEM:
        return "no memory is left";
    case SSS_EEXIST:
        return "there is such an export, or something at that address, already";
    case SSS_ENOENT:
        return "there is no such export, import or bound page";
    case SSS_EFAULT:
        return "that is not memory of the task's own";
    default:
        return "an argument is not allowed";
    }
}

int vmmc_export(const struct vmmc_export_setup *setup)
{
    return (int)CALL(SSS_VMMC_EXPORT, setup);
}

int vmmc_unexport(int id)
{
    return (int)CALL(SSS_VMMC_UNEXPORT, id);
}

int vmmc_import(struct vmmc_import_setup *setup)
{
    return (int)CALL(SSS_VMMC_IMPORT, setup);
}

int vmmc_unimport(int handle)
{
    return (int)CALL(SSS_VMMC_UNIMPORT, handle);
}

void *vmmc_bind(void *address, uint32_t pages, int handle, uint32_t first, unsigned flags,
                int *error)
{
    long result = CALL(SSS_VMMC_BIND, address, pages, handle, first, flags);

    *error = result < 0 ? (int)result : 0;
    return result < 0 ? NULL : (void *)result;
}

int vmmc_unbind(void *address, uint32_t pages)
{
    return (int)CALL(SSS_VMMC_UNBIND, address, pages);
}

int vmmc_source(int handle, const void *address, uint32_t pages)
{
    return (int)CALL(SSS_VMMC_SOURCE, handle, address, pages);
}
