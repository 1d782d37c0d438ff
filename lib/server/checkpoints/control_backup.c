/* SPDX-License-Identifier: Apache-2.0 */
/* A backup of the registry, fetched piece by piece. */
#include "server/state/control_inner.h"

#include <inttypes.h>

#include "base/hex.h"
#include "storage/registry/registry_backup.h"

#define PIECE_BYTES ((size_t)1 << 20) /* twice as many digits in an answer */

/* Takes a backup. It replaces one that no client has fetched to its end. */
static psd_status_t begin(ps_control_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_buffer_done(&self->backup.bytes);
    self->backup.number++;
    rc = ps_control_check_flushed(self, err);
    if (rc == PSD_OK) {
        rc = ps_registry_backup(self->is.db, &self->backup.bytes, err);
    }
    if (rc == PSD_OK) {
        ps_log(PS_LOG_INFO, "backup_begun", "number=%" PRIu64 " bytes=%zu", self->backup.number,
               self->backup.bytes.size);
    }
    return rc;
}

static psd_status_t add_piece(const ps_backup_t *backup, uint64_t offset, ps_doc_t *reply,
                              psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t digits = {0};
    size_t left = backup->bytes.size - (size_t)offset;
    const ps_bytes_t piece = {backup->bytes.data + offset, left < PIECE_BYTES ? left : PIECE_BYTES};

    return ps_hex_write(&digits, piece) && ps_doc_set_u64(reply, "number", backup->number) &&
                   ps_doc_set_u64(reply, "size", backup->bytes.size) &&
                   ps_doc_set_u64(reply, "offset", offset) &&
                   ps_doc_set_text(reply, "bytes", (const char *)digits.data)
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* Without a number: a new one, and its first piece. */
psd_status_t ps_control_cluster_backup(ps_control_t *self, ps_control_request_t *request,
                                       psd_error_t *err)
{
    uint64_t number = 0;
    uint64_t offset = 0;
    psd_status_t rc = ps_doc_get_u64_or(request->doc, "number", 1, UINT64_MAX, 0, &number, err);

    if (rc == PSD_OK && number == 0) {
        rc = begin(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (number != 0 && (number != self->backup.number || self->backup.bytes.size == 0)) {
        return psd_error_set(err, PSD_INVALID, "backup %" PRIu64 " has expired; start a new one",
                             number);
    }
    rc = ps_doc_get_u64_or(request->doc, "offset", 0, self->backup.bytes.size - 1, 0, &offset, err);
    if (rc == PSD_OK) {
        rc = add_piece(&self->backup, offset, request->reply, err);
    }
    if (rc == PSD_OK && self->backup.bytes.size - offset <= PIECE_BYTES) {
        ps_buffer_done(&self->backup.bytes); /* that was the last one */
    }
    return rc;
}
