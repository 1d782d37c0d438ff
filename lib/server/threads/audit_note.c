/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the audit, and what the log says when they are lost. */
#include "server/threads/audit_note.h"

#include <inttypes.h>
#include <stdio.h>

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

/* The log has a request with its line's number and digest, too: a file whose lines were all
 * replaced no longer has that digest there. */
static void repeat_in_log(const ps_audit_record_t *record, const ps_audit_chain_t *end)
{
    char digest[PS_AUDIT_DIGEST_TEXT_SIZE];
    const char *who = record->who == NULL ? "-" : record->who; /* "-" begins no name */
    char from[64];
    char key[128];
    char name[512];

    if (record->has_uid) {
        (void)snprintf(from, sizeof from, "uid=%" PRIu32, record->uid);
    } else {
        (void)snprintf(from, sizeof from, "address=%s",
                       record->address == NULL ? "" : record->address);
    }
    ps_log(PS_LOG_INFO, "audit",
           "line=%" PRIu64 " who=%s %s key=%s op=%s name=%s result=%s digest=%s", end->seq, who,
           from, ps_log_quote(record->key == NULL ? "" : record->key, key, sizeof key),
           record->op == NULL ? "-" : record->op,
           ps_log_quote(record->name == NULL ? "" : record->name, name, sizeof name),
           psd_status_name(record->result), ps_audit_digest_text(end->digest, digest));
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
    if (outcome.end.seq > 0) {
        repeat_in_log(record, &outcome.end);
    }
    psd_error_destroy(&err);
}
