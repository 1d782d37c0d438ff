/* SPDX-License-Identifier: Apache-2.0 */
/* ps_data_dir - the directory with the state of one psd, locked by it */
#ifndef PS_STORAGE_DATA_DIR_H
#define PS_STORAGE_DATA_DIR_H

#include "psd/status.h"

/*
 * Makes DIR and missing parent directories (0700), and locks it: DIR/lock,
 * which has our pid as text. The lock ends with the process, however that ends;
 * the file stays.
 *
 * ret_fd  out  the lock's file; closing it unlocks
 *
 * Errors: PSD_IO; PSD_HELD another process holds it, naming its pid;
 * PSD_FOREIGN it is a symbolic link, belongs to another user, may be written by
 * others, holds files and none of a psd, or its lock is a symbolic link.
 */
PSD_MUST_CHECK psd_status_t ps_data_dir_lock(const char *dir, int *ret_fd, psd_error_t *err);
#endif
