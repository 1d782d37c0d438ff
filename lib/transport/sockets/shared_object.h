/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_object - shared objects from a directory that no other user can change
 *
 * What     The directory and the file belong to root or to this process's user,
 *          and neither their group nor everybody can write them.
 * Owner    An object stays loaded until the process ends.
 * Threads  any
 */
#ifndef PS_TRANSPORT_SHARED_OBJECT_H
#define PS_TRANSPORT_SHARED_OBJECT_H

#include "psd/status.h"

/* Opens the directory. Errors: PSD_IO with the system's reason; PSD_DENIED
 * others can change it. The text does not name it. */
PSD_MUST_CHECK psd_status_t ps_object_dir(const char *dir, int *ret_fd, psd_error_t *err);
/*
 * Loads the file of that name in it and finds a symbol.
 *
 * dir         in   from ps_object_dir
 * ret_object  out  the caller may give it to dlclose
 *
 * Errors: PSD_IO, PSD_INVALID it is no file, or has no such symbol; PSD_DENIED;
 * PSD_FAILED the loader refuses it, with its reason.
 */
PSD_MUST_CHECK psd_status_t ps_object_load(int dir, const char *file, const char *symbol,
                                           void **ret_object, void **ret_symbol, psd_error_t *err);
#endif
