/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sealed - small JSON files of a data directory that notice damage
 *
 * Shape    one object; its last key is "checksum": XXH3-64 of all bytes before
 *          that key's comma, in 16 hexadecimal digits
 * Threads  no shared state
 */
#ifndef PS_SERVER_SEALED_H
#define PS_SERVER_SEALED_H

#include "wire/messages/doc.h"

/* Reads DIR/NAME. *ret_doc is the caller's; NULL: there is no such file. Errors:
 * PSD_IO; PSD_DAMAGED naming the file; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_sealed_read(const char *dir, const char *name, ps_doc_t **ret_doc,
                                           psd_error_t *err);
/* Writes it in one piece (ps_place_write), readable by the owner alone. Errors: PSD_IO,
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_sealed_write(const char *dir, const char *name, const ps_doc_t *doc,
                                            psd_error_t *err);
/* Names the file, in an error about what it says. Returns PSD_DAMAGED, or PSD_NOMEM when rc
 * is that. */
psd_status_t ps_sealed_blame(const char *dir, const char *name, psd_status_t rc, psd_error_t *err);
#endif
