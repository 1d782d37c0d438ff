/* SPDX-License-Identifier: Apache-2.0 */
/* The audit of this node, read piece by piece. */
#include "base/hex.h"
#include "server/state/control_inner.h"

#define PIECE_BYTES ((size_t)256 << 10) /* twice as many digits in an answer */

/* {"file":…,"offset":…,"bytes":digits,"end":…,"seq":…,"digest":…}: from where the next piece is,
 * and, at the end, the last line that psd has written. Without a place: the oldest. */
psd_status_t ps_control_auth_audit(ps_control_t *self, ps_control_request_t *request,
                                   psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t digits = {0};
    ps_audit_place_t place = {0};
    ps_audit_chain_t end = {0};
    char digest[PS_AUDIT_DIGEST_TEXT_SIZE];
    bool is_end = false;
    psd_status_t rc = PSD_OK;

    if (self->is.audit == NULL) {
        return psd_error_set(err, PSD_UNSUPPORTED, "this psd writes no audit: audit.files is 0");
    }
    rc = ps_doc_get_u64_or(request->doc, "file", 0, INT64_MAX, 0, &place.file, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request->doc, "offset", 0, INT64_MAX, 0, &place.offset, err);
    }
    if (rc == PSD_OK) {
        rc = ps_audit_log_read(self->is.audit, &place, PIECE_BYTES, &bytes, &is_end, &end, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_hex_write(&digits, (ps_bytes_t){.data = bytes.data, .size = bytes.size}) &&
                   ps_doc_set_u64(request->reply, "file", place.file) &&
                   ps_doc_set_u64(request->reply, "offset", place.offset) &&
                   ps_doc_set_text(request->reply, "bytes", (const char *)digits.data) &&
                   ps_doc_set_bool(request->reply, "end", is_end) &&
                   ps_doc_set_text(request->reply, "node", self->is.node) &&
                   ps_doc_set_u64(request->reply, "seq", end.seq) &&
                   ps_doc_set_text(request->reply, "digest",
                                   ps_audit_digest_text(end.digest, digest))
               ? PSD_OK
               : ps_control_no_memory(err);
}
