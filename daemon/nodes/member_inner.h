/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the member. */
#ifndef PS_DAEMON_MEMBER_INNER_H
#define PS_DAEMON_MEMBER_INNER_H

#include "daemon/nodes/member.h"
#include "daemon/nodes/sizes.h"
#include "wire/messages/doc.h"

/* A task from the registry that the shards have not done yet. */
typedef struct ps_delivery {
    uint64_t serial; /* the registry's; several tasks may share one */
    uint64_t local;  /* the shards' */
    uint32_t drop;   /* the table that is dropped; 0: none */
    bool asks;       /* its answer is made of the shards' answers */
} ps_delivery_t;

struct ps_member {
    ps_member_args_t is; /* from ps_member_start on */
    ps_socket_t *link;   /* owned */
    char registry[PS_ENDPOINT_MAX + 1];
    char name[PS_NAME_MAX + 1];
    uint64_t incarnation;
    ps_id_t secret;
    ps_id_t cluster;
    uint64_t heartbeat_ms;
    uint64_t weight; /* 0: as many as it has shards */
    uint64_t last_id;
    uint64_t announce_id; /* of the last announcement */
    uint64_t max_epoch;   /* the greatest that the registry sent */
    uint64_t heard_ms;
    uint64_t beat_ms;  /* when the next beat is due */
    bool is_announced; /* the registry has answered that */
    bool is_heard;
    bool files_out;                    /* no descriptor is left */
    bool any_name;                     /* with who->any_name, until it has a name */
    uint64_t refused_ms;               /* when a refusal was last logged; 0:
                                        * none since it joined */
    psd_status_t refused;              /* what that was */
    char refusal[PS_DAMAGE_TEXT_SIZE]; /* what is lost has no other copy; "" */
    uint32_t *tables;                  /* owned; that the shards know */
    size_t n_tables;
    size_t tables_capacity;
    ps_delivery_t *deliveries; /* owned; in order */
    size_t n_deliveries;
    size_t deliveries_capacity;
    ps_sizes_t sizes;   /* of the partitions whose primaries are here */
    uint64_t look;      /* the shards' serial of the question for them; 0: they
                           are not asked */
    uint64_t look_ms;   /* when they are asked next */
    psd_status_t worst; /* of those of one serial that are done */
    psd_error_t *err;
};

/* member_tell.c: carries out the registry's updates and questions. */
void ps_member_obey(ps_member_t *self, const char *op, const ps_doc_t *doc);
/* member_answer.c */
/* Answers the task when the shards have done it. ps_member_expect made room
 * for it. */
void ps_member_await(ps_member_t *self, const ps_delivery_t *delivery);
/* Room for n more. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_member_expect(ps_member_t *self, size_t n, psd_error_t *err);
/* Sends the result. When this answer is lost, the registry asks again. */
void ps_member_answer(ps_member_t *self, uint64_t serial, psd_status_t rc, const char *text);
/* Waits for the answer to the announcement, so that a refused node never
 * reports itself ready. Errors: those of ps_member_failure. */
PSD_MUST_CHECK psd_status_t ps_member_await_word(ps_member_t *self, psd_error_t *err);
/* member.c */
/* {"v":1,"id":…,"op":…,"versions":…,"cluster":…,"name":…,"incarnation":…};
 * NULL: no memory. */
ps_doc_t *ps_member_message(ps_member_t *self, const char *op);
/* Errors: PSD_NOMEM; PSD_LIMIT it is longer than a control message may be;
 * those of ps_socket_send_text. */
PSD_MUST_CHECK psd_status_t ps_member_send(ps_member_t *self, const ps_doc_t *doc,
                                           psd_error_t *err);
/* PSD_OK, or the error in an answer of the registry. */
PSD_MUST_CHECK psd_status_t ps_member_status_of(const ps_doc_t *doc, psd_error_t *err);
#endif
