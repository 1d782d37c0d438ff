/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_invites - the tokens by which new nodes join, and new clients are let in
 *
 * What     A token has a secret key that only who comes with it has. Here is the public half,
 *          whom it lets in, and until when. It is used up by the first who comes with it: from
 *          then on the key that this one has shown counts.
 * Shape    a ring of PS_INVITES_MAX, of which those that are used or expired make room. They live
 *          as long as this node leads the registry, and are void after it.
 * Units    ms, as ps_now_ms
 * Threads  confined to one
 */
#ifndef PS_SERVER_INVITES_H
#define PS_SERVER_INVITES_H

#include "protocol/trust/trust.h"

#define PS_INVITES_MAX 64

typedef struct ps_invite {
    char key[PS_PUBLIC_KEY_SIZE + 1];   /* of the token; "": there is none */
    char name[PS_NAME_MAX + 1];         /* of the node or the principal that it lets in */
    ps_rule_t rule;                     /* of the principal; of a node: role PS_ROLE_NODE */
    char by[PS_NAME_MAX + 1];           /* the principal that made it */
    uint64_t until_ms;                  /* it counts; 0: it was dropped */
    char taken[PS_PUBLIC_KEY_SIZE + 1]; /* the key of who came with it; "": nobody yet */
} ps_invite_t;

typedef struct ps_invites {
    ps_invite_t items[PS_INVITES_MAX];
    uint64_t n; /* where room is looked for next, modulo PS_INVITES_MAX */
} ps_invites_t;

/* There is room for it: not all count, or it replaces one. */
bool ps_invites_has_room(const ps_invites_t *self, const ps_invite_t *invite, uint64_t now_ms);
/* Another one; where a token of that key is known, nothing changes. The token that was made for
 * the same node or principal before, if it is not used, counts no longer. false: there is no
 * room. */
PSD_MUST_CHECK bool ps_invites_add(ps_invites_t *self, const ps_invite_t *invite, uint64_t now_ms);
/* The token of that key, used and expired ones, too. NULL: unknown. Borrowed until the next
 * change. */
const ps_invite_t *ps_invites_find(const ps_invites_t *self, const char *key);
/* Who has that key has come with the token, which is used up. */
void ps_invites_take(ps_invites_t *self, const ps_invite_t *invite, const char *key);
/* Nobody comes under that name any more by a token that was made before. Nodes have names of
 * their own: is_node says which are meant. true: there is one that nobody used, also where it was
 * dropped before. */
bool ps_invites_drop(ps_invites_t *self, const char *name, bool is_node);
/* Nobody comes any more by a token that the principal made. */
void ps_invites_drop_by(ps_invites_t *self, const char *by);
bool ps_invite_is_node(const ps_invite_t *self);
/* The same key, made by the same principal for the same one. */
bool ps_invite_equal(const ps_invite_t *self, const ps_invite_t *other);
/* Somebody may still come by it, and nobody has. */
bool ps_invite_counts(const ps_invite_t *self, uint64_t now_ms);
#endif
