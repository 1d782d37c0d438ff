/* SPDX-License-Identifier: Apache-2.0 */
/* An agent from inside; for its files only. */
#ifndef PS_PROTOCOL_AGENT_STATE_H
#define PS_PROTOCOL_AGENT_STATE_H

#include "base/map.h"
#include "protocol/agent/agent.h"
#include "protocol/agent/sizes.h"

#define NOTES_MAX 16 /* that nobody has read */

/* A task from the registry that the shards have not done yet. */
typedef struct delivery {
    ps_agent_task_kind_t kind;
    bool begun;                 /* the shards have it */
    uint32_t id;                /* TABLE, DROP */
    uint64_t serial;            /* the registry's; several tasks may share one; 0: no answer */
    uint64_t local;             /* the shards', once begun */
    ps_node_message_t *message; /* owned; NULL: of none, or begun */
} ps_delivery_t;

struct ps_agent {
    ps_agent_args_t is;
    uint64_t last_serial;
    uint64_t announce_serial; /* of the last announcement */
    uint64_t max_epoch;       /* the greatest that the registry sent */
    uint64_t heard_ms;
    uint64_t led_ms;   /* when one that leads was last heard */
    uint64_t moved_ms; /* to the registry that it speaks to */
    uint64_t beat_ms;  /* when the next beat is due */
    bool is_announced; /* the registry has answered that */
    bool is_heard;
    bool was_announced;   /* once, in this life */
    bool joined;          /* since ps_agent_take_joined */
    bool files_out;       /* no descriptor is left */
    uint64_t refused_ms;  /* when a refusal was last noted; 0: none since it was announced … */
    psd_status_t refused; /* … and what that was */
    uint64_t past_ms;     /* when a registry of the past was last noted; 0: not yet */
    char refusal[PS_DAMAGE_TEXT_SIZE];
    ps_table_t *tables; /* owned; that the shards know: as the registry sent them, or by id alone:
                           read from disk */
    size_t n_tables;
    size_t tables_capacity;
    ps_map_t places; /* owned; of tables by id: the place in the array (as a pointer), from 1 */
    ps_map_t jobs; /* owned, each too; ps_job_t by id: those that run, as the registry sent them */
    ps_delivery_t *deliveries; /* owned; in order */
    size_t n_deliveries;
    size_t deliveries_capacity;
    psd_status_t worst; /* of the tasks of one serial that are done */
    ps_sizes_t sizes;   /* of the partitions whose primaries are here */
    bool looks;         /* a SIZES is under way */
    uint64_t look_ms;   /* when the next is due */
    ps_report_t *reports;
    size_t n_reports;
    size_t reports_capacity;
    ps_buffer_t *messages; /* owned, each too; in order */
    size_t n_messages;
    size_t messages_capacity;
    ps_buffer_t sent; /* the message that ps_agent_next_message returned */
    ps_agent_note_t notes[NOTES_MAX];
    size_t n_notes;
    ps_heard_t heard;              /* owned */
    ps_moment_t other;             /* the newest of a lineage that it does not follow yet */
    bool is_heard_new;             /* since ps_agent_take_heard */
    bool is_listed;                /* the registry's list came since the last tick */
    bool has_map;                  /* … or ever */
    uint64_t listed_ms;            /* … and when it last came; 0: never */
    uint32_t told_job;             /* jobs up to this one are known here, or gone */
    uint32_t told_table;           /* … and tables */
    ps_seat_t seats[PS_SEATS_MAX]; /* that have the registry */
    size_t n_seats;
    size_t seat;                      /* the one that was asked last */
    bool is_elsewhere;                /* who was asked does not lead … */
    char leader[PS_ENDPOINT_MAX + 1]; /* … but this one; "": unknown */
    psd_error_t *err;                 /* owned; of the message at hand */
};

/* ---- agent.c ---- */

PSD_MUST_CHECK psd_status_t ps_agent_no_memory(psd_error_t *err);
/* For ps_agent_next_note; beyond NOTES_MAX it is dropped. */
void ps_agent_note(ps_agent_t *self, const ps_agent_note_t *note);
/* That a task could not be begun. */
void ps_agent_note_not_obeyed(ps_agent_t *self, const char *what, uint64_t serial,
                              psd_status_t status, const char *text);
/* An answer to the registry's message `serial`; 0: none is owed. answers may be NULL. When it is
 * lost, the registry asks again. */
void ps_agent_answer(ps_agent_t *self, uint64_t serial, psd_status_t status, const char *text,
                     const ps_answers_t *answers);

/* ---- agent_tasks.c: what the registry tells, as tasks of the shards ---- */

/* Forgets all jobs. */
void ps_agent_forget_jobs(ps_agent_t *self);
/* Takes NULL. */
void ps_agent_destroy_message(ps_node_message_t **message_p);
/* The greatest epoch that the registry has named. */
void ps_agent_see_epoch(ps_agent_t *self, uint64_t epoch);
PSD_MUST_CHECK psd_status_t ps_agent_put_task(ps_agent_t *self, ps_agent_task_kind_t kind,
                                              uint32_t id, uint64_t serial, psd_error_t *err);
/* A tell or question of the registry becomes tasks; it may take the message's lists. Errors:
 * PSD_NO_TABLE, PSD_NOMEM, PSD_UNSUPPORTED. */
PSD_MUST_CHECK psd_status_t ps_agent_obey(ps_agent_t *self, ps_node_message_t *message,
                                          psd_error_t *err);
#endif
