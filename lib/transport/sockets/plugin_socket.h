/* SPDX-License-Identifier: Apache-2.0 */
/* ps_plugin - carriers that come as shared objects; carrier_plugin.h */
#ifndef PS_TRANSPORT_PLUGIN_SOCKET_H
#define PS_TRANSPORT_PLUGIN_SOCKET_H

#include "psd/status.h"
#include "transport/sockets/carrier_plugin.h"
#include "transport/sockets/socket.h"

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

/* A link to an endpoint that goes to that address of a plug-in. It is opened again
 * by itself when its peer is gone, as one of ZeroMQ. Errors: those of connect. */
PSD_MUST_CHECK psd_status_t ps_plugin_connect_by(ps_socket_t *self, const char *address,
                                                 psd_error_t *err);
/* A port: the endpoint that it has bound last can be reached by the other ranks, where links go by
 * MPI (ranks.h). Errors: those of bind; PSD_UNSUPPORTED a port with keys. */
PSD_MUST_CHECK psd_status_t ps_plugin_bind_beside(ps_socket_t *self, psd_error_t *err);
#endif
