/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/sockets/ranks.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "transport/sockets/plugin_socket.h"

/* The carrier whose world was entered; NULL: none. It stays. */
static _Atomic(const ps_carrier_plugin_t *) entered;

psd_status_t ps_ranks_enter(const char *name, int *ret_rank, int *ret_size, psd_error_t *err)
{
    const ps_carrier_plugin_t *carrier = NULL;
    char reason[PS_CARRIER_REASON] = "";
    psd_status_t rc = ps_plugin_load(name, &carrier, err);
    int code = 0;

    if (rc != PSD_OK) {
        return rc;
    }
    if (carrier->enter == NULL) {
        return psd_error_set(err, PSD_UNSUPPORTED, "carrier %s has no ranks", name);
    }
    code = carrier->enter(ret_rank, ret_size, reason);
    if (code != 0) {
        return psd_error_set(err, PSD_CONNECT, "carrier %s: %s", name,
                             reason[0] == '\0' ? strerror(code) : reason);
    }
    atomic_store(&entered, carrier);
    return PSD_OK;
}

psd_status_t ps_ranks_say(const char *key, const char *value, psd_error_t *err)
{
    const ps_carrier_plugin_t *carrier = atomic_load(&entered);
    int code = carrier == NULL ? EIO : carrier->say(key, value);

    return code == 0 ? PSD_OK
                     : psd_error_set(err, PSD_IO, "the ranks cannot be told \"%.100s\": %s", key,
                                     strerror(code));
}

bool ps_ranks_find(const char *key, char ret_value[PS_CARRIER_TEXT])
{
    const ps_carrier_plugin_t *carrier = atomic_load(&entered);

    return carrier != NULL && carrier->find(key, ret_value) == 0;
}

bool ps_ranks_are_without(int rank)
{
    const ps_carrier_plugin_t *carrier = atomic_load(&entered);

    return carrier != NULL && carrier->is_lost(rank) != 0;
}
