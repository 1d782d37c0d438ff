/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the member. */
#ifndef PS_SERVER_MEMBER_INNER_H
#define PS_SERVER_MEMBER_INNER_H

#include "server/nodes/member.h"

/* To a member of the registry that does not lead. */
typedef struct ps_sign_link {
    char endpoint[PS_ENDPOINT_MAX + 1];
    ps_socket_t *link; /* owned */
    bool is_wanted;
} ps_sign_link_t;

struct ps_member {
    ps_member_args_t is;                /* from ps_member_start on */
    ps_agent_t *agent;                  /* owned; from ps_member_start on */
    ps_socket_t *link;                  /* owned */
    char registry[PS_ENDPOINT_MAX + 1]; /* where the link goes */
    ps_address_t leader;                /* the registry, as its node calls itself */
    char name[PS_NAME_MAX + 1];
    uint64_t incarnation;
    ps_id_t secret;
    ps_id_t cluster;
    uint64_t heartbeat_ms;
    uint32_t weight;              /* 0: as many as it has shards */
    uint64_t last_id;             /* of a join */
    bool any_name;                /* with who->any_name, until it has a name */
    ps_route_t *shards;           /* owned; announced */
    bool heard_is_due;            /* heard.json is to be written */
    uint64_t heard_again_ms;      /* … when it is tried again */
    ps_node_message_t invite;     /* to the registry; kind 0: none */
    const ps_server_host_t *host; /* borrowed for the join */
    const char *key;              /* … of ps_member_self_t */
    bool has_joined;              /* … too */
    ps_rights_t *rights;          /* borrowed; NULL: nobody needs a key */
    uint64_t rights_ms;           /* when it is to ask for news of them */
    bool rights_heard;            /* from the registry where the link goes */
    bool rights_denied;           /* it refused to say them */
    bool is_shut_out;             /* … as this node was denied, and has not been let in since */
    ps_sign_link_t signs[PS_SEATS_MAX]; /* links owned */
    size_t n_signs;
    uint64_t sign_ms; /* when the next is due */
    psd_error_t *err; /* owned */
};

/* The nodes that have the registry, as far as this node knows. Returns how many; 0:
 * the registry is alone, or unknown. own: room for what the replica says. */
size_t ps_member_known_seats(const ps_member_t *self, const ps_replica_t *replica,
                             ps_seat_t own[PS_SEATS_MAX], const ps_seat_t **ret_seats);
/* The nodes that may have the registry. */
void ps_member_fill_members(const ps_member_t *self, const ps_replica_t *replica,
                            ps_members_t *members);
/* member_map.c: answers a client that asks for the map alone, while the registry has had no
 * leader for 2 s. false: it cannot; the reply is void. */
PSD_MUST_CHECK bool ps_member_answer_map(const ps_member_t *self, const ps_replica_t *replica,
                                         const ps_doc_t *request, ps_doc_t *reply);
/* member_map.c: who asks may look at all tables that the request is for. */
PSD_MUST_CHECK bool ps_member_may_look(const ps_member_t *self, const ps_asker_t *asker,
                                       const ps_doc_t *request);
/* member_rights.c: asks the registry at the link for its principals, when that is due. */
void ps_member_ask_rights(ps_member_t *self);
/* The answer to that. */
void ps_member_take_rights(ps_member_t *self, ps_bytes_t text);
/* member_signs.c: closes the links. */
void ps_member_drop_signs(ps_member_t *self);
#endif
