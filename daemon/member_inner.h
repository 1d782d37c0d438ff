/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the member. */
#ifndef PS_DAEMON_MEMBER_INNER_H
#define PS_DAEMON_MEMBER_INNER_H

#include "daemon/member.h"
#include "wire/doc.h"

struct ps_member {
    ps_member_args_t is; /* from ps_member_start on */
    ps_socket_t *link;   /* owned */
    char registry[PS_ENDPOINT_MAX + 1];
    char name[PS_NAME_MAX + 1];
    uint64_t incarnation;
    ps_id_t cluster;
    uint64_t heartbeat_ms;
    uint64_t last_id;
    uint64_t heard_ms;
    uint64_t beat_ms;  /* when the next beat is due */
    bool is_announced; /* the registry has answered that */
    bool is_heard;
    uint32_t *tables; /* owned; that the shards were told */
    size_t n_tables;
    size_t tables_capacity;
    psd_error_t *err;
};

/* member_tell.c: does what the registry tells or asks, and answers. */
void ps_member_obey(ps_member_t *self, const char *op, const ps_doc_t *doc);
/* {"v":1,"id":…,"op":…,"versions":…,"cluster":…,"name":…,"incarnation":…};
 * NULL: no memory. */
ps_doc_t *ps_member_message(ps_member_t *self, const char *op);
/* false: it did not go. */
PSD_MUST_CHECK bool ps_member_send(ps_member_t *self, const ps_doc_t *doc);
#endif
