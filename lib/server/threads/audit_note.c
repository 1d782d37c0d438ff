/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the audit, and what the log says when they are lost. */
#include "server/threads/audit_note.h"

#include <inttypes.h>

#include "base/log.h"
#include "transport/threads/clock.h"

ps_audit_record_t ps_audit_record_of(const ps_asker_t *asker, const char *who, uint32_t id)
{
    return (ps_audit_record_t){.who = who,
                               .who_id = id,
                               .has_uid = asker->has_uid,
                               .uid = asker->uid,
                               .key = asker->key[0] == '\0' ? NULL : asker->key,
                               .address = asker->address};
}

void ps_audit_note(ps_audit_log_t *log, const ps_audit_record_t *record)
{
    ps_audit_outcome_t outcome = {0};
    psd_error_t *err = NULL;
    char quoted[512];

    if (log == NULL) {
        return;
    }
    err = psd_error_new();
    if (ps_audit_log_add(log, record, ps_unix_ms(), ps_now_ms(), &outcome, err) != PSD_OK) {
        if (outcome.begins) {
            ps_log(PS_LOG_ERROR, "audit_not_written",
                   "reason=%s hint=\"requests are served as before, and the audit has none of "
                   "them; make room on the disk of the data directory\"",
                   ps_log_quote(err == NULL ? "" : psd_error_text(err), quoted, sizeof quoted));
        }
    } else if (outcome.lost > 0) {
        ps_log(PS_LOG_WARN, "audit_written_again", "lost=%" PRIu64, outcome.lost);
    }
    psd_error_destroy(&err);
}
