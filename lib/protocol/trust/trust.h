/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/trust: who may do what
 *
 * It is       Principals with their rules, roles and rights, and what each request and
 *             each message needs.
 * It uses     lib/wire (the kinds of data messages), lib/model (names), lib/base.
 * It ignores  How a caller proves its key or uid, sockets, and where principals are stored
 *             (registry). Who asks it, at level encrypt: control_may.c and shard_gate.c of
 *             lib/server; at any level `pscli auth can-i` and the registry, for its last
 *             administrator.
 * Start at    trust_roles.def for the rights, trust_kinds.def for the requests.
 */
/*
 * ps_trust - may this principal do that?
 *
 * What     A principal is a person, a job or a node, known by a public key or, on this host, by a
 *          uid. It has rules; each gives a role over the tables and jobs that its globs match. What
 *          no rule gives is refused.
 * Shape    plain values
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_PROTOCOL_TRUST_H
#define PS_PROTOCOL_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/tables/table.h"
#include "protocol/trust/trust_kinds.def"
#include "protocol/trust/trust_roles.def"
#include "psd/status.h"
#include "wire/messages/message.h"

#define PS_PUBLIC_KEY_SIZE 40 /* characters of a public key, Z85 */
#define PS_RULES_MAX 16       /* of a principal */
#define PS_NO_UID UINT32_MAX
#define PS_REACH_TEXT_SIZE 256

#define PS_ROLE_ENUM(NAME, number, word) PS_ROLE_##NAME = number,
typedef enum ps_role { PS_ROLE_MAP(PS_ROLE_ENUM) PS_ROLE_END } ps_role_t;
#undef PS_ROLE_ENUM

#define PS_VERB_ENUM(NAME, word) PS_VERB_##NAME,
typedef enum ps_verb { PS_VERB_MAP(PS_VERB_ENUM) PS_VERB_END } ps_verb_t;
#undef PS_VERB_ENUM

#define PS_OBJECT_ENUM(NAME, word) PS_OBJECT_##NAME,
typedef enum ps_object { PS_OBJECT_MAP(PS_OBJECT_ENUM) PS_OBJECT_END } ps_object_t;
#undef PS_OBJECT_ENUM

/* Where a request has its object; trust_kinds.def explains them. */
typedef enum ps_scope {
    PS_SCOPE_WHOLE,
    PS_SCOPE_NAME,
    PS_SCOPE_SPEC,
    PS_SCOPE_JOB,
    PS_SCOPE_EACH,
    PS_SCOPE_NUMBER
} ps_scope_t;

/* What one kind of request or message needs. */
typedef struct ps_need {
    const char *kind; /* "table_drop", "PUSH" */
    ps_verb_t verb;
    ps_object_t object;
    ps_scope_t scope;
    bool is_noted; /* the audit has it: it changes something */
} ps_need_t;

#define PS_TRUST_OP_ENUM(kind, VERB, OBJECT, SCOPE, NOTE) PS_TRUST_OP_##kind,
typedef enum ps_trust_op { PS_TRUST_OPS(PS_TRUST_OP_ENUM) PS_TRUST_OPS_COUNT } ps_trust_op_t;
#undef PS_TRUST_OP_ENUM

/* One line of rights. A glob is a name in which "*" stands for any characters, none too, and
 * "?" for one. */
typedef struct ps_rule {
    ps_role_t role;
    char tables[PS_NAME_MAX + 1];
    char jobs[PS_NAME_MAX + 1];
} ps_rule_t;

typedef struct ps_principal {
    uint32_t id; /* > 0, never used twice */
    char name[PS_NAME_MAX + 1];
    char key[PS_PUBLIC_KEY_SIZE + 1]; /* public; "": it has none */
    /* The old key, which counts beside it until the registry's leader ends it; "": there is
     * none. One that is denied has none. */
    char old_key[PS_PUBLIC_KEY_SIZE + 1];
    uint64_t old_until_unix_ms; /* … not before that, by the leader's clock; 0: there is none */
    uint32_t uid;               /* of a user of the host whose psd is asked; or PS_NO_UID */
    bool denied;                /* it may do nothing, whatever its rules say */
    uint64_t epoch;             /* of the command that changed it last */
    ps_rule_t rules[PS_RULES_MAX];
    uint32_t n_rules;
} ps_principal_t;

/* The need of a request of the control port; op < PS_TRUST_OPS_COUNT. */
const ps_need_t *ps_need_of_op(ps_trust_op_t op);
/* The need of a request by its name; NULL: there is no such request. */
const ps_need_t *ps_need_of_request(const char *name);
/* The need of a data message that a shard gets; NULL: there is no such kind. */
const ps_need_t *ps_need_of_message(ps_kind_t kind);

/* "admin", "look", "table"; "?": unknown. */
const char *ps_role_word(ps_role_t role);
const char *ps_verb_word(ps_verb_t verb);
/* As it stands before its object in a sentence: "look at", "read". */
const char *ps_verb_phrase(ps_verb_t verb);
const char *ps_object_word(ps_object_t object);
/* The value of a word. false: unknown. */
PSD_MUST_CHECK bool ps_role_of_word(const char *word, ps_role_t *ret_role);
PSD_MUST_CHECK bool ps_verb_of_word(const char *word, ps_verb_t *ret_verb);
PSD_MUST_CHECK bool ps_object_of_word(const char *word, ps_object_t *ret_object);

/* The glob matches the whole name. */
bool ps_glob_matches(const char *glob, const char *name);
/* A glob that a rule may have: 1..63 of what names are made of, "*" and "?". */
bool ps_text_is_glob(const char *text);

/*
 * May it?
 *
 * who      NULL: nobody is known to have asked, who may nothing
 * object   with its verb, as in trust_roles.def
 * name     of the table or job; of other objects it does not count. NULL: for a table or
 *          job, whether there may be one with the right at all
 */
bool ps_trust_may(const ps_principal_t *who, ps_verb_t verb, ps_object_t object, const char *name);

/* Some role that a person or a job may have gives it, so that a rule can. */
bool ps_trust_may_give(ps_verb_t verb, ps_object_t object);
/* Of which tables or jobs its rules give that: ": its rules cover tables "a.*", "b"", for the end
 * of a refusal. "": none of them does, or the right is not one of tables or jobs. Cuts what is too
 * long. */
const char *ps_trust_print_reach(const ps_principal_t *who, ps_verb_t verb, ps_object_t object,
                                 char ret[PS_REACH_TEXT_SIZE]);

/* The key is its own, or the old one that still counts. key "": false. */
bool ps_principal_has_key(const ps_principal_t *self, const char *key);
/* Its old key ends. */
void ps_principal_end_old_key(ps_principal_t *self);
/* It is denied, and has no old key. */
void ps_principal_deny(ps_principal_t *self);
/* One of its rules is that of nodes, whether it is denied or not. */
bool ps_principal_is_node(const ps_principal_t *self);

/* The name and the rules are such that it may be stored.
 * Errors: PSD_INVALID names what is wrong. */
PSD_MUST_CHECK psd_status_t ps_principal_check(const ps_principal_t *self, psd_error_t *err);
/* The same rights and keys; id and epoch do not count. */
bool ps_principal_equal(const ps_principal_t *self, const ps_principal_t *other);
#endif
