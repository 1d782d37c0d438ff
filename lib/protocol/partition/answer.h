/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_answer - answers to clients, and the notes about them
 *
 * What     Builds answers, notes and records of the log in the step's outbox.
 * Threads  Confined to the shard's thread.
 */
#ifndef PS_PROTOCOL_ANSWER_H
#define PS_PROTOCOL_ANSWER_H

#include "protocol/partition/local_table.h"

/* Each appends to the step's outbox. Without memory the answer is dropped, and
 * the client retries. */
void ps_answer_refused(ps_step_t *step, const ps_request_t *request, psd_status_t status,
                       uint64_t detail, const char *text);
/* Refuses a client whose session is older than the loss of a table's rows. */
void ps_answer_rows_lost(ps_step_t *step, const ps_request_t *request, const char *table);
void ps_answer_ack(ps_step_t *step, const ps_request_t *request);
void ps_answer_parked(ps_step_t *step, const ps_request_t *request, const char *text);
/* Answers PARKED if the requested values are already in flight. False: they are
 * not. */
bool ps_answer_is_under_way(ps_step_t *step, const ps_request_t *request);
/* Gathers what the request selects. Returns rows gathered. */
uint64_t ps_answer_values(ps_step_t *step, ps_partition_t *partition, const ps_request_t *request);
/* was_taken: the PUSH or MARK is in the log here, and its answer waited. */
void ps_answer_moved(ps_step_t *step, const ps_request_t *request, const ps_local_table_t *table,
                     bool was_taken);
/* Refuses something other than a request: HELLO, or unexpected bytes. */
void ps_answer_refused_conn(ps_step_t *step, uint64_t conn, psd_status_t status, const char *text);
/* Refuses a request on a connection that has not said HELLO, by its number. */
void ps_answer_no_session(ps_step_t *step, uint64_t conn, const ps_message_t *message);
void ps_answer_welcome(ps_step_t *step, uint64_t conn, uint32_t filters);
void ps_note(ps_step_t *step, const ps_note_t *note);
/* A note that is made only with args.trace. */
#define PS_NOTE_TRACE(step, note)    \
    do {                             \
        if ((step)->args.trace) {    \
            ps_note((step), (note)); \
        }                            \
    } while (0)
/* Encodes an answer's body with the filter of its request. */
void ps_answer_filter(ps_step_t *step, const ps_request_t *request, ps_effect_t *effect);

#endif
