/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/sockets/ranks.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "transport/environment/environment.h"
#include "transport/sockets/plugin_socket.h"

#define CARRIER "mpi" /* the only one with a world */
#define PORT "mpi://"
#define CARRIED "carried" /* what a rank says of its links */

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

ps_ranks_use_t ps_ranks_use(void)
{
    ps_environment_t said;

    if (ps_environment_read("PSD_TRANSPORT", &said, NULL) != PSD_OK || said.text == NULL) {
        return PS_RANKS_UNUSED;
    }
    return strcmp(said.text, CARRIER) == 0           ? PS_RANKS_ALONE
           : strcmp(said.text, CARRIER ",auto") == 0 ? PS_RANKS_FIRST
                                                     : PS_RANKS_UNUSED;
}

/* The carrier of links; NULL: they go as they always do. Perhaps the other copy of this room has
 * entered the world. */
static const ps_carrier_plugin_t *carrying(void)
{
    static _Atomic(const ps_carrier_plugin_t *) known;
    const ps_carrier_plugin_t *carrier = atomic_load(&known);
    char value[PS_CARRIER_TEXT];

    if (carrier != NULL || ps_ranks_use() == PS_RANKS_UNUSED) {
        return carrier;
    }
    carrier = ps_plugin_loaded(CARRIER);
    if (carrier == NULL || carrier->find == NULL || carrier->find(CARRIED, value) != 0) {
        return NULL;
    }
    atomic_store(&known, carrier);
    return carrier;
}

/* That of the world which this process has entered; NULL: none. */
static const ps_carrier_plugin_t *world(void)
{
    const ps_carrier_plugin_t *carrier = atomic_load(&entered);

    return carrier != NULL ? carrier : carrying();
}

/* ---- what ranks say ---- */

psd_status_t ps_ranks_say(const char *key, const char *value, psd_error_t *err)
{
    const ps_carrier_plugin_t *carrier = world();
    int code = carrier == NULL ? EIO : carrier->say(key, value);

    return code == 0 ? PSD_OK
                     : psd_error_set(err, PSD_IO, "the ranks cannot be told \"%.100s\": %s", key,
                                     strerror(code));
}

bool ps_ranks_find(const char *key, char ret_value[PS_CARRIER_TEXT])
{
    const ps_carrier_plugin_t *carrier = world();

    return carrier != NULL && carrier->find(key, ret_value) == 0;
}

bool ps_ranks_are_without(int rank)
{
    const ps_carrier_plugin_t *carrier = world();

    return carrier != NULL && carrier->is_lost(rank) != 0;
}

/* ---- links by the carrier ---- */

psd_status_t ps_ranks_carry(psd_error_t *err)
{
    return ps_ranks_say(CARRIED, "", err);
}

bool ps_ranks_do_carry(void)
{
    return carrying() != NULL;
}

psd_status_t ps_ranks_way(const char *endpoint, char ret_address[PS_CARRIER_TEXT], psd_error_t *err)
{
    const ps_carrier_plugin_t *carrier = carrying();

    ret_address[0] = '\0';
    if (carrier == NULL || ps_plugin_name_of(endpoint) != NULL ||
        carrier->find(endpoint, ret_address) == 0 || ps_ranks_use() == PS_RANKS_FIRST) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_CONNECT, "no rank of this mpirun listens at \"%.300s\"",
                         endpoint);
}

bool ps_ranks_own(const char *endpoint)
{
    char address[PS_CARRIER_TEXT];

    return ps_ranks_way(endpoint, address, NULL) != PSD_OK || address[0] != '\0';
}

const char *ps_ranks_port(void)
{
    return carrying() == NULL ? NULL : PORT;
}
