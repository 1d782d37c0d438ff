/* SPDX-License-Identifier: Apache-2.0 */
/* ps_audit_note - a line for the audit of this node, and a word in the log when lines are lost */
#ifndef PS_SERVER_AUDIT_NOTE_H
#define PS_SERVER_AUDIT_NOTE_H

#include "storage/audit/audit_log.h"
#include "transport/sockets/asker.h"

/* Who asks, as a record has it; who: the principal's name, or NULL, and id its number. Borrows
 * both. */
ps_audit_record_t ps_audit_record_of(const ps_asker_t *asker, const char *who, uint32_t id);
/* What cannot be written is lost, and nothing is refused because of it. log: NULL: nothing is
 * written. Any thread. */
void ps_audit_note(ps_audit_log_t *log, const ps_audit_record_t *record);
#endif
