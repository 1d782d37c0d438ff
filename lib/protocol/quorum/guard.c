/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to a member's port: unproven ones in a few places, and of each node
 * one that is proven. */
#include "protocol/quorum/guard.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

/* A node that may connect, and the connection on which it is proven. */
typedef struct place {
    ps_trust_t is;
    uint64_t n_refused;
    bool is_proven;
    uint64_t conn;
    uint64_t member;
    ps_id_t session;
    uint64_t number;
} place_t;

/* A connection that has not proved who it is. */
typedef struct unproven {
    bool is_used;
    bool is_challenged;
    uint64_t conn;
    uint64_t since_ms;
    uint64_t asked_ms; /* WHO was said; 0: never */
    uint32_t n_greetings;
    ps_talk_t talk; /* once it is challenged */
} unproven_t;

struct ps_guard {
    ps_speaker_t own;
    ps_id_t seed;
    uint64_t n_nonces;
    place_t *places; /* owned */
    size_t n_places;
    uint64_t n_nameless; /* refused, of no node that may connect */
    uint64_t n_refused;
    unproven_t unproven[PS_GUARD_UNPROVEN_MAX];
};

#define WHO_MS 100 /* between two WHO on a connection */

psd_status_t ps_guard_new(const ps_speaker_t *own, const ps_id_t *seed, ps_guard_t **ret_guard,
                          psd_error_t *err)
{
    ps_guard_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the registry's port");
    }
    self->own = *own;
    self->seed = *seed;
    *ret_guard = self;
    return PSD_OK;
}

void ps_guard_destroy(ps_guard_t **self_p)
{
    if (*self_p != NULL) {
        ps_free((*self_p)->places);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

const ps_speaker_t *ps_guard_own(const ps_guard_t *self)
{
    return &self->own;
}

void ps_guard_nonce(ps_guard_t *self, ps_id_t *ret_nonce)
{
    ps_proof_nonce(&self->seed, ++self->n_nonces, ret_nonce);
}

uint64_t ps_guard_n_refused(const ps_guard_t *self)
{
    return self->n_refused;
}

/* ---- who may connect ---- */

static place_t *find_node(const ps_guard_t *self, const char *node)
{
    for (size_t i = 0; i < self->n_places; i++) {
        if (strcmp(self->places[i].is.node, node) == 0) {
            return &self->places[i];
        }
    }
    return NULL;
}

static place_t *find_conn(const ps_guard_t *self, uint64_t conn)
{
    for (size_t i = 0; i < self->n_places; i++) {
        if (self->places[i].is_proven && self->places[i].conn == conn) {
            return &self->places[i];
        }
    }
    return NULL;
}

bool ps_guard_trust(ps_guard_t *self, const ps_trust_t *nodes, size_t n)
{
    place_t *places = n == 0 ? NULL : ps_alloc(n, sizeof *places);

    if (n > 0 && places == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const place_t *known = find_node(self, nodes[i].node);

        places[i].is = nodes[i];
        if (known != NULL && ps_id_equal(&known->is.key, &nodes[i].key)) {
            places[i] = *known;
        }
    }
    ps_free(self->places);
    self->places = places;
    self->n_places = n;
    return true;
}

const ps_id_t *ps_guard_key(const ps_guard_t *self, const char *node)
{
    const place_t *place = find_node(self, node);

    return place == NULL ? NULL : &place->is.key;
}

/* ---- connections that have proved nothing ---- */

static bool is_over(const unproven_t *unproven, uint64_t now_ms)
{
    return !unproven->is_used || now_ms >= unproven->since_ms + PS_GUARD_UNPROVEN_MS;
}

/* Its place; a new one takes a free place, or that of the oldest. */
static unproven_t *place_of(ps_guard_t *self, uint64_t now_ms, uint64_t conn)
{
    unproven_t *place = &self->unproven[0];

    for (size_t i = 0; i < PS_GUARD_UNPROVEN_MAX; i++) {
        unproven_t *at = &self->unproven[i];

        if (!is_over(at, now_ms) && at->conn == conn) {
            return at;
        }
        if (!is_over(place, now_ms) && (is_over(at, now_ms) || at->since_ms < place->since_ms)) {
            place = at;
        }
    }
    *place = (unproven_t){.is_used = true, .conn = conn, .since_ms = now_ms};
    return place;
}

static void refuse(ps_guard_t *self, const char *node, psd_status_t status, ps_guard_word_t *word)
{
    place_t *place = find_node(self, node);

    word->verdict = PS_GUARD_REFUSED;
    word->status = status;
    word->n_refused = place == NULL ? ++self->n_nameless : ++place->n_refused;
    if (place != NULL) {
        memcpy(word->node, place->is.node, sizeof word->node);
    }
    self->n_refused++;
}

static psd_status_t answer_with(const ps_guard_t *self, ps_greeting_kind_t kind, uint64_t to,
                                const unproven_t *unproven, ps_buffer_t *answer, psd_error_t *err)
{
    ps_greeting_t greeting = {.kind = kind,
                              .cluster = self->own.cluster,
                              .lineage = self->own.lineage,
                              .from = self->own.member,
                              .to = to};

    memcpy(greeting.node, self->own.node, sizeof greeting.node);
    memcpy(greeting.build, self->own.build, sizeof greeting.build);
    if (kind == PS_GREETING_CHALLENGE) {
        greeting.nonce = unproven->talk.callee_nonce;
        ps_proof_of(&unproven->talk, PS_PROOF_CALLEE, &self->own.key, &greeting.proof);
    }
    return ps_greeting_encode(&greeting, answer)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for a greeting");
}

/* ---- what arrives ---- */

static psd_status_t check_greet(const ps_guard_t *self, const ps_greeting_t *greet,
                                psd_error_t *err)
{
    bool is_cluster = ps_id_equal(&greet->cluster, &self->own.cluster);

    if (!is_cluster || !ps_id_equal(&greet->lineage, &self->own.lineage)) {
        return psd_error_set(err, PSD_CLUSTER, "member %" PRIu64 " of node \"%s\" is of another %s",
                             greet->from, greet->node, is_cluster ? "lineage" : "cluster");
    }
    return find_node(self, greet->node) == NULL
               ? psd_error_set(err, PSD_DENIED,
                               "node \"%s\" is none that this member knows the secret of",
                               greet->node)
               : PSD_OK;
}

static psd_status_t take_greet(ps_guard_t *self, unproven_t *unproven, const ps_greeting_t *greet,
                               ps_guard_word_t *word, ps_buffer_t *answer, psd_error_t *err)
{
    psd_status_t rc = check_greet(self, greet, err);

    unproven->is_challenged = false;
    if (rc != PSD_OK) {
        refuse(self, greet->node, rc, word);
        return PSD_OK;
    }
    unproven->is_challenged = true;
    unproven->talk = (ps_talk_t){.cluster = self->own.cluster,
                                 .lineage = self->own.lineage,
                                 .caller = greet->from,
                                 .callee = self->own.member,
                                 .caller_nonce = greet->nonce};
    memcpy(unproven->talk.caller_node, greet->node, sizeof greet->node);
    memcpy(unproven->talk.callee_node, self->own.node, sizeof self->own.node);
    ps_guard_nonce(self, &unproven->talk.callee_nonce);
    word->verdict = PS_GUARD_ANSWER;
    return answer_with(self, PS_GREETING_CHALLENGE, greet->from, unproven, answer, err);
}

static void take_prove(ps_guard_t *self, unproven_t *unproven, const ps_greeting_t *prove,
                       ps_guard_word_t *word, psd_error_t *err)
{
    place_t *place = NULL;
    ps_id_t expected;

    if (!unproven->is_challenged || prove->from != unproven->talk.caller) {
        return;
    }
    unproven->is_challenged = false; /* one proof for each challenge */
    place = find_node(self, unproven->talk.caller_node);
    if (place != NULL) {
        ps_proof_of(&unproven->talk, PS_PROOF_CALLER, &place->is.key, &expected);
    }
    if (place == NULL || !ps_proof_equal(&expected, &prove->proof)) {
        unproven->n_greetings = PS_GUARD_GREETINGS_MAX; /* hears nothing for a while */
        (void)psd_error_set(err, PSD_DENIED,
                            "who connected as member %" PRIu64
                            " does not know the secret of node \"%s\"",
                            unproven->talk.caller, unproven->talk.caller_node);
        refuse(self, unproven->talk.caller_node, PSD_DENIED, word);
        return;
    }
    place->is_proven = true;
    place->conn = unproven->conn;
    place->member = unproven->talk.caller;
    place->number = 0;
    ps_proof_of(&unproven->talk, PS_PROOF_SESSION, &place->is.key, &place->session);
    *unproven = (unproven_t){.is_used = false};
    word->verdict = PS_GUARD_PROVEN;
    word->member = place->member;
    memcpy(word->node, place->is.node, sizeof word->node);
}

static psd_status_t take_greeting(ps_guard_t *self, uint64_t now_ms, uint64_t conn,
                                  ps_bytes_t bytes, ps_guard_word_t *word, ps_buffer_t *answer,
                                  psd_error_t *err)
{
    unproven_t *unproven = place_of(self, now_ms, conn);
    ps_greeting_t greeting = {.kind = 0};
    psd_status_t rc = PSD_OK;

    if (unproven->n_greetings >= PS_GUARD_GREETINGS_MAX) {
        return PSD_OK;
    }
    unproven->n_greetings++;
    rc = ps_greeting_decode(bytes, &greeting, err);
    if (rc == PSD_VERSION) {
        unproven->n_greetings = PS_GUARD_GREETINGS_MAX;
        refuse(self, "", rc, word);
    } else if (rc == PSD_OK && greeting.to == self->own.member) {
        if (greeting.kind == PS_GREETING_GREET) {
            return take_greet(self, unproven, &greeting, word, answer, err);
        }
        if (greeting.kind == PS_GREETING_PROVE) {
            take_prove(self, unproven, &greeting, word, err);
        }
    }
    return PSD_OK;
}

/* The connection broke and came back, or this member has just started: the other
 * end is to prove itself again. */
static psd_status_t ask_who(ps_guard_t *self, uint64_t now_ms, uint64_t conn, ps_guard_word_t *word,
                            ps_buffer_t *answer, psd_error_t *err)
{
    unproven_t *unproven = place_of(self, now_ms, conn);

    if (unproven->asked_ms != 0 && now_ms < unproven->asked_ms + WHO_MS) {
        return PSD_OK;
    }
    unproven->asked_ms = now_ms;
    word->verdict = PS_GUARD_ANSWER;
    return answer_with(self, PS_GREETING_WHO, 0, NULL, answer, err);
}

psd_status_t ps_guard_take(ps_guard_t *self, uint64_t now_ms, uint64_t conn, ps_bytes_t bytes,
                           ps_guard_word_t *ret_word, ps_buffer_t *answer, psd_error_t *err)
{
    place_t *place = find_conn(self, conn);
    psd_status_t rc = PSD_OK;

    *ret_word = (ps_guard_word_t){.verdict = PS_GUARD_NOTHING};
    if (ps_greeting_is(bytes)) {
        return take_greeting(self, now_ms, conn, bytes, ret_word, answer, err);
    }
    if (!ps_seal_is(bytes)) {
        return PSD_OK; /* of a stranger */
    }
    if (place == NULL) {
        return ask_who(self, now_ms, conn, ret_word, answer, err);
    }
    rc = ps_seal_open(&place->session, bytes, &place->number, &ret_word->message, err);
    if (rc != PSD_OK) {
        place->is_proven = false; /* somebody else writes there */
        refuse(self, place->is.node, rc, ret_word);
        return PSD_OK;
    }
    ret_word->verdict = PS_GUARD_MESSAGE;
    ret_word->member = place->member;
    memcpy(ret_word->node, place->is.node, sizeof ret_word->node);
    return PSD_OK;
}
