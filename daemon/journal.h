/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_journal_sink - lines of the log as entries of journald, with fields
 *
 * What     MESSAGE is the line without its level; PRIORITY; PSD_EVENT its event; for
 *          each key=value a field, PSD_TABLE, PSD_NODE, PSD_SHARD and so on; and for
 *          the events of journal_events.def MESSAGE_ID, by which the catalog
 *          (`journalctl -x`) explains them. Where journald cannot be reached, the line
 *          goes to stderr.
 * Threads  any
 */
#ifndef PS_DAEMON_JOURNAL_H
#define PS_DAEMON_JOURNAL_H

#include <stddef.h>
#include <sys/uio.h>

#include "base/log.h"

#define PS_JOURNAL_FIELDS_MAX 32
#define PS_JOURNAL_BYTES 12288 /* of all fields of a line */

typedef struct ps_journal_entry {
    struct iovec fields[PS_JOURNAL_FIELDS_MAX];
    size_t n;
    size_t used; /* of bytes */
    char bytes[PS_JOURNAL_BYTES];
} ps_journal_entry_t;

/* A line of ps_log as fields, "NAME=value" each. What does not fit is left out. */
void ps_journal_entry_make(ps_journal_entry_t *self, ps_log_level_t level, const char *line);
/* The calling thread's lines, and those of threads that it starts, go there from now
 * on, if journald is there and reads stderr. */
void ps_journal_use(void);
/* The ID of an event, 32 hexadecimal digits; NULL: it has none. */
const char *ps_journal_id(const char *event);
#endif
