/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_checkpoint - directories of checkpoints, and their manifests
 *
 * What     DIR/NAME has a file for each partition (storage/snapshot/snapshot_file.h,
 *          pieces as in model/store/store_image.h), and, once all of them are whole,
 *          manifest.json, which says what they are. Without a manifest there is
 *          no checkpoint; the files of an interrupted one are removed when a
 *          checkpoint of the same name is begun or dropped.
 * Shape    the manifest: one line of JSON, and a line "xxh3 " with the 16
 *          hexadecimal digits of the XXH3-64 of the line before, without its
 *          end
 * Threads  any, one at a time for a name
 */
#ifndef PS_STORAGE_CHECKPOINT_H
#define PS_STORAGE_CHECKPOINT_H

#include "storage/disk/disk.h"
#include "wire/messages/doc.h"

#define PS_CHECKPOINT_NAME_MAX 100
#define PS_CHECKPOINT_FORMAT 2 /* of manifests */

/* 1 .. PS_CHECKPOINT_NAME_MAX letters, digits, '-', '_', '.', the first one a
 * letter or digit. Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_check_name(const char *name, psd_error_t *err);
/* "DIR/NAME". Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_path(const char *dir, const char *name, ps_buffer_t *ret,
                                               psd_error_t *err);
/* Makes DIR/NAME, empty. Errors: PSD_CHECKPOINT_EXISTS; PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_begin(ps_disk_t *disk, const char *dir, const char *name,
                                                psd_error_t *err);
/* Writes the manifest, which makes it a checkpoint. Errors: PSD_LIMIT no room;
 * PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_write(ps_disk_t *disk, const char *dir, const char *name,
                                                const ps_doc_t *manifest, psd_error_t *err);
/* ret_sum: the checksum at its end; may be NULL.
 * Errors: PSD_NO_CHECKPOINT; PSD_DAMAGED naming the file and the byte;
 * PSD_FOREIGN another format; PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_read(ps_disk_t *disk, const char *dir, const char *name,
                                               ps_doc_t **ret_manifest, uint64_t *ret_sum,
                                               psd_error_t *err);
/* Called for each name, in any order, even of directories without a manifest,
 * which are no checkpoints: they are in progress, or were interrupted. No
 * directory: there are none. Errors: PSD_IO, PSD_NOMEM, and what `each`
 * returned. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_list(ps_disk_t *disk, const char *dir,
                                               ps_disk_name_t *each, void *context,
                                               psd_error_t *err);
/* Removes the manifest, then the rest; also the files of an interrupted one.
 * Errors: PSD_NO_CHECKPOINT there is nothing of that name; PSD_IO;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_drop(ps_disk_t *disk, const char *dir, const char *name,
                                               psd_error_t *err);
#endif
