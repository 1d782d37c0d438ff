/* SPDX-License-Identifier: Apache-2.0 */
/* ps_plugin - carriers that come as shared objects; carrier_plugin.h */
#ifndef PS_TRANSPORT_PLUGIN_SOCKET_H
#define PS_TRANSPORT_PLUGIN_SOCKET_H

#include "psd/status.h"
#include "transport/sockets/carrier_plugin.h"

/* "mpi" of "mpi://…"; NULL: the endpoint is no plug-in's. */
const char *ps_plugin_name_of(const char *endpoint);
/*
 * The functions of DIR/libpsd-NAME.so, which stays loaded. DIR is
 * $PSD_CARRIER_DIR, else the one that psd was built for.
 *
 * Errors: PSD_UNSUPPORTED there is no such file, or it is of another version;
 * PSD_DENIED other users can change it. The text names the file.
 */
PSD_MUST_CHECK psd_status_t ps_plugin_load(const char *name, const ps_carrier_plugin_t **ret_plugin,
                                           psd_error_t *err);
/* The same, where this process has loaded it before; else NULL. */
const ps_carrier_plugin_t *ps_plugin_loaded(const char *name);
#endif
