/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_quorum_message - one message between members of the registry
 *
 * What     Also the two values that such messages carry: the members, and an
 *          entry of the log.
 * Shape    magic u32 "psQm", format u16 (PS_QUORUM_FORMAT), kind u8, 0 u8, the
 *          head; then the kind's fields, in the order of quorum_fields.def
 * Owner    ps_quorum_message_done frees what a decoded message owns. A message
 *          that is only encoded may borrow.
 * Threads  plain values
 */
#ifndef PS_PROTOCOL_QUORUM_MESSAGE_H
#define PS_PROTOCOL_QUORUM_MESSAGE_H

#include "base/bytes.h"
#include "model/tables/table.h"
#include "protocol/quorum/quorum_fields.def"

/* The format between members, greetings (proof.h) included. 1: the first; members
 * did not prove who they are. */
#define PS_QUORUM_FORMAT 2
#define PS_QUORUM_MEMBERS_MAX 16
#define PS_QUORUM_ENTRIES_MAX 65536                /* in a message */
#define PS_QUORUM_NUMBER_MAX (UINT64_C(1) << 62)   /* of terms and indexes */
#define PS_QUORUM_MEMBER_MAX ((uint64_t)INT64_MAX) /* of member ids; the least is 1 */

#define PS_QUORUM_MESSAGE_ENUM(NAME, number, word) PS_QUORUM_##NAME = number,
typedef enum ps_quorum_message_kind {
    PS_QUORUM_MESSAGE_MAP(PS_QUORUM_MESSAGE_ENUM)
} ps_quorum_message_kind_t;
#undef PS_QUORUM_MESSAGE_ENUM

typedef enum ps_quorum_role {
    PS_QUORUM_STANDBY = 0, /* has all entries, does not vote */
    PS_QUORUM_VOTER = 1
} ps_quorum_role_t;

typedef struct ps_quorum_member {
    uint64_t id;   /* random, made with the data directory, never used again */
    uint32_t role; /* ps_quorum_role_t */
    char node[PS_NAME_MAX + 1];
} ps_quorum_member_t;

typedef struct ps_quorum_members {
    uint32_t n;
    ps_quorum_member_t at[PS_QUORUM_MEMBERS_MAX]; /* in the order of joining */
} ps_quorum_members_t;

typedef enum ps_quorum_entry_kind {
    PS_QUORUM_COMMAND = 1, /* bytes: what was proposed */
    PS_QUORUM_BARRIER = 2, /* no bytes: of a leader that begins, to commit older entries */
    PS_QUORUM_CHANGE = 3   /* bytes: of ps_quorum_members_encode */
} ps_quorum_entry_kind_t;

typedef struct ps_quorum_entry {
    uint64_t term;
    uint32_t kind; /* ps_quorum_entry_kind_t */
    ps_buffer_t bytes;
} ps_quorum_entry_t;

/* What a database holds. */
typedef struct ps_quorum_snapshot {
    uint64_t index; /* of the last command in it; 2 and up */
    uint64_t term;  /* of that entry */
    uint64_t members_index;
    ps_quorum_members_t members; /* as of index */
} ps_quorum_snapshot_t;

/* quorum_fields.def says which message carries which member. */
typedef struct ps_quorum_message {
    ps_quorum_message_kind_t kind;
    ps_id_t cluster;
    ps_id_t lineage;
    uint64_t from;
    char node[PS_NAME_MAX + 1]; /* of from */
    uint64_t to;
    uint64_t life;
    uint64_t number;
    uint64_t to_life;
    uint64_t echo;
    uint64_t term;
    uint64_t for_term;
    uint64_t last_index; /* APPEND: of the entry before its entries */
    uint64_t last_term;
    bool depose; /* its leader said so */
    bool trial;
    bool granted;
    uint64_t commit;
    ps_quorum_entry_t *entries; /* owned */
    size_t n_entries;
    uint64_t rejected; /* the index that does not match; 0: it is not rejected */
    ps_quorum_snapshot_t snapshot;
} ps_quorum_message_t;

/* "vote", …; "?" when it is not a kind. */
const char *ps_quorum_message_name(ps_quorum_message_kind_t kind);
/* Frees and zeroes; fits PSD_AUTO. */
void ps_quorum_message_done(ps_quorum_message_t *self);

/* Appends the bytes. false: no memory. */
PSD_MUST_CHECK bool ps_quorum_message_encode(const ps_quorum_message_t *self, ps_buffer_t *buffer);
/* True when it begins as one. */
PSD_MUST_CHECK bool ps_quorum_message_is(ps_bytes_t bytes);
/* The kind of bytes that begin as one; 0: none. */
ps_quorum_message_kind_t ps_quorum_message_kind(ps_bytes_t bytes);
/* The sender that such bytes name; 0: none. */
uint64_t ps_quorum_message_from(ps_bytes_t bytes);
/* Reads and checks all of the bytes: what is accepted breaks no assumption of
 * the machine, whatever its state. *ret_message is the caller's on PSD_OK.
 * Errors: PSD_VERSION another format; PSD_PROTO and PSD_INVALID, naming the
 * field; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_quorum_message_decode(ps_bytes_t bytes,
                                                     ps_quorum_message_t *ret_message,
                                                     psd_error_t *err);

/* The member of this id; NULL: none. */
const ps_quorum_member_t *ps_quorum_members_find(const ps_quorum_members_t *self, uint64_t id);
uint32_t ps_quorum_members_voters(const ps_quorum_members_t *self);
/* Errors: PSD_INVALID an id or a node that is not allowed or there twice, an
 * unknown role, no voter. */
PSD_MUST_CHECK psd_status_t ps_quorum_members_check(const ps_quorum_members_t *self,
                                                    psd_error_t *err);
/* Appends the bytes of an entry of kind CHANGE. false: no memory. */
PSD_MUST_CHECK bool ps_quorum_members_encode(const ps_quorum_members_t *self, ps_buffer_t *buffer);
/* Reads and checks them. Errors: PSD_VERSION, PSD_PROTO, PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_quorum_members_decode(ps_bytes_t bytes,
                                                     ps_quorum_members_t *ret_members,
                                                     psd_error_t *err);
/* An entry as it may come from a message or from disk. Errors: PSD_PROTO,
 * PSD_INVALID, PSD_VERSION. */
PSD_MUST_CHECK psd_status_t ps_quorum_entry_check(const ps_quorum_entry_t *self, psd_error_t *err);
#endif
