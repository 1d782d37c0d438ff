/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_answer - what goes back to a client, and what is noted on the way
 *
 * What     Builds answers, notes and records of the log in the step's outbox.
 * Threads  Confined to the shard's one.
 */
#ifndef PS_PROTOCOL_ANSWER_H
#define PS_PROTOCOL_ANSWER_H

#include "protocol/partition/local_table.h"

/* Each appends to the step's outbox; when there is no memory for an
 * answer it is left out, and the client asks again. */
void ps_answer_refused(ps_step_t *step, const ps_request_t *request, psd_status_t status,
                       uint64_t detail, const char *text);
/* Refuses a client of before the loss of a table's rows. */
void ps_answer_rows_lost(ps_step_t *step, const ps_request_t *request, const char *table);
void ps_answer_ack(ps_step_t *step, const ps_request_t *request);
void ps_answer_parked(ps_step_t *step, const ps_request_t *request, const char *text);
/* PARKED, if the values that the request asks for are on their way already.
 * False: they are not. */
bool ps_answer_is_under_way(ps_step_t *step, const ps_request_t *request);
/* Gathers what the request selects. Returns rows gathered. */
uint64_t ps_answer_values(ps_step_t *step, ps_partition_t *partition, const ps_request_t *request);
/* was_taken: a PUSH or MARK is in the log here, and its answer waited. */
void ps_answer_moved(ps_step_t *step, const ps_request_t *request, const ps_local_table_t *table,
                     bool was_taken);
/* A refusal of something that is no request: HELLO, or bytes out of turn. */
void ps_answer_refused_conn(ps_step_t *step, uint64_t conn, psd_status_t status, const char *text);
/* Refuses a request on a connection that has not said HELLO, by its number. */
void ps_answer_no_session(ps_step_t *step, uint64_t conn, const ps_message_t *message);
void ps_answer_welcome(ps_step_t *step, uint64_t conn, uint32_t filters);
void ps_note(ps_step_t *step, const ps_note_t *note);
/* A note that only args.trace asks for. */
#define PS_NOTE_TRACE(step, note)    \
    do {                             \
        if ((step)->args.trace) {    \
            ps_note((step), (note)); \
        }                            \
    } while (0)
/* Puts an answer's body through the filter that its request came through. */
void ps_answer_filter(ps_step_t *step, const ps_request_t *request, ps_effect_t *effect);

#endif
