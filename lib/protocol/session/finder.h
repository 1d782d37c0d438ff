/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_finder - which of several nodes to ask for the registry
 *
 * What     A list of addresses of nodes, of any of them: those that the user
 *          gave, in their order, then those that answers named. One of them is
 *          asked at a time. A node that is not the registry names it (status
 *          NOT_LEADER), and the finder follows, PS_FINDER_HOPS times in a row
 *          at most. A node that is silent, or knows no leader, is left for the
 *          next of the list, round and round until the caller gives up:
 *
 *              asked --answer--> found (stays there)
 *                |  --names the leader--> asks that one at once
 *                |  --knows none--------> asks the next one after a pause
 *                +--silent, refused-----> asks the next one
 *
 *          Patience and pause double with each round.
 * Units    ms of any clock that only goes forward
 * Owner    The caller; embedded, without memory of its own. A copy goes its own
 *          way. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_FINDER_H
#define PS_PROTOCOL_FINDER_H

#include "model/tables/table.h"
#include "wire/messages/doc.h"
#include "wire/messages/route.h"

#define PS_FINDER_GIVEN_MAX 16 /* addresses in a list of the user */
#define PS_FINDER_MAX 24       /* … and with those that answers named */
#define PS_FINDER_HOPS 3
#define PS_FINDER_PATIENCE_MS 400        /* in the first round */
#define PS_FINDER_PATIENCE_FOUND_MS 1000 /* with a registry that has answered */
#define PS_FINDER_PATIENCE_MAX_MS 8000
#define PS_FINDER_PAUSE_MS 100
#define PS_FINDER_PAUSE_MAX_MS 1000
#define PS_FINDER_WHY_MAX 99
#define PS_FINDER_TEXT 2000 /* of ps_finder_print */

/* What an address said when it was last asked. */
typedef enum ps_said {
    PS_SAID_NOTHING = 0, /* it was not asked yet */
    PS_SAID_SILENT = 1,
    PS_SAID_REFUSED = 2,   /* nobody listens there; why says it */
    PS_SAID_NO_LEADER = 3, /* it is a node, and knows no registry that answers */
    PS_SAID_LEADER = 4,    /* it is a node, and named the registry */
    PS_SAID_ANSWER = 5     /* it is the registry */
} ps_said_t;

typedef struct ps_address {
    char endpoint[PS_ENDPOINT_MAX + 1];
    char node[PS_NAME_MAX + 1]; /* "": unknown */
    bool is_given;              /* by the user: it stays in the list */
    ps_said_t said;
    char why[PS_FINDER_WHY_MAX + 1]; /* of REFUSED */
} ps_address_t;

typedef struct ps_finder {
    ps_address_t items[PS_FINDER_MAX];
    size_t n;
    size_t at;         /* that is asked, or has answered */
    size_t found;      /* that answered last; n: none did */
    uint32_t n_hops;   /* in a row */
    size_t n_steps;    /* without an answer, in this round */
    uint64_t asked_ms; /* since when `at` owes an answer; UINT64_MAX: it does not */
    uint64_t patience_ms;
    uint64_t patience_max_ms; /* PS_FINDER_PATIENCE_MAX_MS, unless the owner wants less */
    uint64_t pause_ms;
    uint64_t step_ms; /* when to ask `next`; UINT64_MAX: not planned */
    size_t next;
} ps_finder_t;

/*
 * list  in  "tcp://HOST:PORT" or "ipc://PATH", several with commas between them
 *
 * Errors: PSD_INVALID, naming the place in a list: it is empty, too long, of no
 * known transport, or there are more than PS_FINDER_GIVEN_MAX. One address alone is
 * left to whoever connects.
 */
PSD_MUST_CHECK psd_status_t ps_finder_init(ps_finder_t *self, const char *list, psd_error_t *err);
/* Adds an address, unless it is there or the list is full. node: "": unknown. An
 * address that an answer named for the same node before is replaced. */
void ps_finder_add(ps_finder_t *self, const char *node, const char *endpoint, bool is_given);

/* Where to ask. Borrowed until the next call. */
const char *ps_finder_endpoint(const ps_finder_t *self);
/* A question that is answered at once was sent there. */
void ps_finder_asked(ps_finder_t *self, uint64_t now_ms);
/* Nothing is asked any more. */
void ps_finder_rest(ps_finder_t *self);
/* Takes an answer, and the `members` that it names. true: it is that of the
 * registry; false: its status is NOT_LEADER, and the question is still open. */
bool ps_finder_heard(ps_finder_t *self, const ps_doc_t *reply, uint64_t now_ms);
/* Nobody listens at items[i]. The next one is asked at once; after the last of a round,
 * after a pause. */
void ps_finder_refused(ps_finder_t *self, size_t i, const char *why, uint64_t now_ms);
/* The connection to the registry that has answered broke: the next address is asked
 * at once, and nobody who still names this one is believed. */
void ps_finder_broke(ps_finder_t *self, uint64_t now_ms);
/* Whether it is time to ask again, at ps_finder_endpoint; ret_moved: which is
 * another one than before. */
bool ps_finder_look(ps_finder_t *self, uint64_t now_ms, bool *ret_moved);
/* When the next look is due; UINT64_MAX: never. */
uint64_t ps_finder_due_ms(const ps_finder_t *self);
/* Whether it has left at least one address since the last answer of a registry. */
bool ps_finder_is_lost(const ps_finder_t *self);
/* Of a search without a result: PSD_NOT_LEADER nodes answered, and none has the
 * registry; PSD_CONNECT none answered. */
PSD_MUST_CHECK psd_status_t ps_finder_status(const ps_finder_t *self);
/* "tcp://a:1 is silent, tcp://b:1 (node b) says there is no leader" */
void ps_finder_print(const ps_finder_t *self, char ret_text[PS_FINDER_TEXT]);

/* ---- members ---- */

/* The nodes that have the registry, as answers name them: node and endpoint of
 * each; the other fields of an address are not set. */
typedef struct ps_members {
    size_t n;
    ps_address_t items[PS_FINDER_MAX];
} ps_members_t;

/* {"node":…,"endpoint":…}. false: no memory. */
PSD_MUST_CHECK bool ps_member_to_doc(ps_doc_t *doc, const char *node, const char *endpoint);
/* Reads the `members` of a document; leaves out what cannot be read. */
void ps_members_from_doc(ps_members_t *self, const ps_doc_t *doc);
/* Sets `members`. false: no memory. */
PSD_MUST_CHECK bool ps_members_to_doc(const ps_members_t *self, ps_doc_t *doc);
/* The same nodes at the same addresses, in the same order. */
bool ps_members_equal(const ps_members_t *a, const ps_members_t *b);
#endif
