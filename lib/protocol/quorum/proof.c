/* SPDX-License-Identifier: Apache-2.0 */
/* Keyed digests of who speaks, greetings in bytes, and the end that connected. */
#include "protocol/quorum/proof.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "protocol/registry/field.h"

#define GREETING_MAGIC UINT32_C(0x6d477370) /* "psGm" in memory order */
#define SEAL_MAGIC UINT32_C(0x6d537370)     /* "psSm" */
#define FORMAT_AT 4
#define NUMBER_AT 8
#define DIGEST_AT 16

static const ps_field_t greeting_fields[] = {PS_GREETING_FIELDS(PS_FIELD_ROW, ps_greeting_t)};
PS_FIELD_SHAPE(greeting, ps_greeting_t)

#define KIND_NAME(NAME, number, word) [number] = #word,
static const char *const names[] = {[0] = "?", PS_GREETING_MAP(KIND_NAME)};
#undef KIND_NAME
#define N_KINDS (sizeof names / sizeof *names)

/* ---- digests ---- */

/* What a digest is of: no digest of one use is one of another. */
typedef enum use {
    USE_KEY = 16,
    USE_NONCE = 17,
    USE_SEAL = 18,
    USE_PLACE = 19,
    USE_TALK = 32 /* and ps_proof_of_t */
} use_t;

static crypto_generichash_state begin(const ps_id_t *key, int use)
{
    crypto_generichash_state state;
    const uint8_t byte = (uint8_t)use;

    /* Neither fails with sizes that are constant. */
    (void)crypto_generichash_init(&state, key->bytes, sizeof key->bytes, sizeof(ps_id_t));
    (void)crypto_generichash_update(&state, &byte, 1);
    return state;
}

static void add(crypto_generichash_state *state, const void *bytes, size_t size)
{
    (void)crypto_generichash_update(state, bytes, size);
}

static void add_u64(crypto_generichash_state *state, uint64_t number)
{
    uint8_t bytes[sizeof number];

    ps_store_u64(bytes, number);
    add(state, bytes, sizeof bytes);
}

static void add_text(crypto_generichash_state *state, const char *text)
{
    add_u64(state, strlen(text));
    add(state, text, strlen(text));
}

static void end(crypto_generichash_state *state, ps_id_t *ret)
{
    (void)crypto_generichash_final(state, ret->bytes, sizeof ret->bytes);
    sodium_memzero(state, sizeof *state);
}

void ps_proof_key(const ps_id_t *secret, const ps_id_t *cluster, const char *node, ps_id_t *ret_key)
{
    crypto_generichash_state state = begin(secret, USE_KEY);

    add(&state, cluster->bytes, sizeof cluster->bytes);
    add_text(&state, node);
    end(&state, ret_key);
}

void ps_proof_of(const ps_talk_t *talk, ps_proof_of_t of, const ps_id_t *key, ps_id_t *ret_proof)
{
    crypto_generichash_state state = begin(key, USE_TALK + (int)of);

    add(&state, talk->cluster.bytes, sizeof talk->cluster.bytes);
    add(&state, talk->lineage.bytes, sizeof talk->lineage.bytes);
    add_u64(&state, talk->caller);
    add_u64(&state, talk->callee);
    add_text(&state, talk->caller_node);
    add_text(&state, talk->callee_node);
    add(&state, talk->caller_nonce.bytes, sizeof talk->caller_nonce.bytes);
    add(&state, talk->callee_nonce.bytes, sizeof talk->callee_nonce.bytes);
    end(&state, ret_proof);
}

bool ps_proof_equal(const ps_id_t *a, const ps_id_t *b)
{
    return sodium_memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void ps_proof_nonce(const ps_id_t *seed, uint64_t count, ps_id_t *ret_nonce)
{
    crypto_generichash_state state = begin(seed, USE_NONCE);

    add_u64(&state, count);
    end(&state, ret_nonce);
}

void ps_proof_place(const ps_id_t *key, const ps_id_t *cluster, uint64_t member, uint64_t life,
                    const char *node, const char *endpoint, ps_id_t *ret_proof)
{
    crypto_generichash_state state = begin(key, USE_PLACE);

    add(&state, cluster->bytes, sizeof cluster->bytes);
    add_u64(&state, member);
    add_u64(&state, life);
    add_text(&state, node);
    add_text(&state, endpoint);
    end(&state, ret_proof);
}

/* ---- greetings in bytes ---- */

const char *ps_greeting_name(ps_greeting_kind_t kind)
{
    return (size_t)kind < N_KINDS ? names[kind] : names[0];
}

bool ps_greeting_encode(const ps_greeting_t *self, ps_buffer_t *buffer)
{
    return ps_buffer_u32(buffer, GREETING_MAGIC) && ps_buffer_u16(buffer, PS_QUORUM_FORMAT) &&
           ps_buffer_u8(buffer, (uint8_t)self->kind) && ps_buffer_u8(buffer, 0) &&
           ps_shape_encode(&greeting_shape, self, buffer);
}

bool ps_greeting_is(ps_bytes_t bytes)
{
    return bytes.size >= sizeof(uint32_t) && ps_load_u32(bytes.data) == GREETING_MAGIC;
}

/* What all formats begin with. */
static psd_status_t other_format(uint16_t format, ps_cursor_t *cursor, psd_error_t *err)
{
    ps_greeting_t other = {.node = "", .build = ""};
    const ps_field_shape_t beginning = {
        .fields = greeting_fields, .n = 2, .size = sizeof(ps_greeting_t)};

    if (ps_shape_decode(&beginning, cursor, &other, NULL) != PSD_OK) {
        other = (ps_greeting_t){.node = "?", .build = "?"};
    }
    return psd_error_set(err, PSD_VERSION,
                         "node \"%s\" with psd %s has format %u between members of the registry, "
                         "this psd's is %d",
                         other.node, other.build, format, PS_QUORUM_FORMAT);
}

static psd_status_t check_greeting(const ps_greeting_t *greeting, psd_error_t *err)
{
    if (greeting->node[0] == '\0') {
        return psd_error_set(err, PSD_INVALID, "it names no node");
    }
    if (greeting->from == 0 || greeting->from > PS_QUORUM_MEMBER_MAX ||
        greeting->to > PS_QUORUM_MEMBER_MAX || greeting->from == greeting->to ||
        (greeting->to == 0) != (greeting->kind == PS_GREETING_WHO)) {
        return psd_error_set(err, PSD_INVALID, "from member %" PRIu64 " to %" PRIu64,
                             greeting->from, greeting->to);
    }
    return PSD_OK;
}

static psd_status_t decode(ps_cursor_t *cursor, ps_greeting_t *greeting, psd_error_t *err)
{
    uint32_t magic = ps_cursor_u32(cursor);
    uint16_t format = ps_cursor_u16(cursor);
    uint8_t kind = ps_cursor_u8(cursor);
    uint8_t zero = ps_cursor_u8(cursor);
    psd_status_t rc = PSD_OK;

    if (cursor->failed || magic != GREETING_MAGIC) {
        return psd_error_set(err, PSD_PROTO, "it begins with other bytes");
    }
    if (format != PS_QUORUM_FORMAT) {
        return other_format(format, cursor, err);
    }
    if (kind == 0 || kind >= N_KINDS || zero != 0) {
        return psd_error_set(err, PSD_PROTO, "kind is %u, %u", kind, zero);
    }
    greeting->kind = (ps_greeting_kind_t)kind;
    rc = ps_shape_decode(&greeting_shape, cursor, greeting, err);
    if (rc == PSD_OK && !ps_cursor_is_done(cursor)) {
        rc = psd_error_set(err, PSD_PROTO, "%zu bytes follow it", cursor->rest.size);
    }
    return rc == PSD_OK ? check_greeting(greeting, err) : rc;
}

psd_status_t ps_greeting_decode(ps_bytes_t bytes, ps_greeting_t *ret_greeting, psd_error_t *err)
{
    ps_greeting_t greeting = {.kind = 0};
    ps_cursor_t cursor = ps_cursor_over(bytes);
    psd_status_t rc =
        bytes.size > PS_GREETING_BYTES_MAX
            ? psd_error_set(err, PSD_PROTO, "it has more than %d bytes", PS_GREETING_BYTES_MAX)
            : decode(&cursor, &greeting, err);

    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "greeting of %zu bytes between members", bytes.size);
    }
    *ret_greeting = greeting;
    return PSD_OK;
}

/* ---- the end that connected ---- */

static ps_greeting_t new_greeting(const ps_speaker_t *own, ps_greeting_kind_t kind, uint64_t to)
{
    ps_greeting_t greeting = {.kind = kind,
                              .cluster = own->cluster,
                              .lineage = own->lineage,
                              .from = own->member,
                              .to = to};

    memcpy(greeting.node, own->node, sizeof greeting.node);
    memcpy(greeting.build, own->build, sizeof greeting.build);
    return greeting;
}

bool ps_caller_greet(ps_caller_t *self, const ps_speaker_t *own, uint64_t to, const char *node,
                     const ps_id_t *nonce, ps_buffer_t *buffer)
{
    ps_greeting_t greet = new_greeting(own, PS_GREETING_GREET, to);

    greet.nonce = *nonce;
    *self = (ps_caller_t){.state = PS_CALLER_GREETED,
                          .talk = {.cluster = own->cluster,
                                   .lineage = own->lineage,
                                   .caller = own->member,
                                   .callee = to,
                                   .caller_nonce = *nonce}};
    memcpy(self->talk.caller_node, own->node, sizeof self->talk.caller_node);
    (void)snprintf(self->talk.callee_node, sizeof self->talk.callee_node, "%s", node);
    return ps_greeting_encode(&greet, buffer);
}

/* The other end has proved itself: so does this one. */
static psd_status_t prove(ps_caller_t *self, const ps_speaker_t *own, const ps_id_t *key,
                          const ps_greeting_t *challenge, ps_buffer_t *buffer, psd_error_t *err)
{
    ps_greeting_t answer = new_greeting(own, PS_GREETING_PROVE, self->talk.callee);
    ps_id_t expected;

    self->talk.callee_nonce = challenge->nonce;
    if (key == NULL) {
        return psd_error_set(err, PSD_DENIED, "no secret of node \"%s\" is known",
                             self->talk.callee_node);
    }
    ps_proof_of(&self->talk, PS_PROOF_CALLEE, key, &expected);
    if (strcmp(challenge->node, self->talk.callee_node) != 0 ||
        !ps_proof_equal(&expected, &challenge->proof)) {
        return psd_error_set(err, PSD_DENIED,
                             "who answers as member %" PRIu64 " does not know the secret of node "
                             "\"%s\"",
                             self->talk.callee, self->talk.callee_node);
    }
    ps_proof_of(&self->talk, PS_PROOF_CALLER, &own->key, &answer.proof);
    if (!ps_greeting_encode(&answer, buffer)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a greeting");
    }
    ps_proof_of(&self->talk, PS_PROOF_SESSION, &own->key, &self->session);
    self->number = 0;
    self->state = PS_CALLER_PROVEN;
    return PSD_OK;
}

psd_status_t ps_caller_take(ps_caller_t *self, const ps_speaker_t *own, const ps_id_t *key,
                            ps_bytes_t bytes, ps_buffer_t *buffer, psd_error_t *err)
{
    ps_greeting_t greeting;
    psd_status_t rc = ps_greeting_decode(bytes, &greeting, err);

    if (rc != PSD_OK || greeting.from != self->talk.callee) {
        return rc;
    }
    if (greeting.kind == PS_GREETING_WHO && self->state == PS_CALLER_PROVEN) {
        self->state = PS_CALLER_SILENT;
    }
    if (greeting.kind != PS_GREETING_CHALLENGE || greeting.to != own->member ||
        self->state != PS_CALLER_GREETED) {
        return PSD_OK;
    }
    return prove(self, own, key, &greeting, buffer, err);
}

/* ---- sealed messages ---- */

static void seal(const ps_id_t *session, uint64_t number, ps_bytes_t message, ps_id_t *ret)
{
    crypto_generichash_state state = begin(session, USE_SEAL);

    add_u64(&state, number);
    add(&state, message.data, message.size);
    end(&state, ret);
}

bool ps_caller_seal(ps_caller_t *self, ps_bytes_t message, ps_buffer_t *buffer)
{
    ps_id_t digest;

    if (!ps_buffer_reserve(buffer, PS_SEAL_BYTES + message.size)) {
        return false;
    }
    seal(&self->session, ++self->number, message, &digest);
    return ps_buffer_u32(buffer, SEAL_MAGIC) && ps_buffer_u16(buffer, PS_QUORUM_FORMAT) &&
           ps_buffer_u16(buffer, 0) && ps_buffer_u64(buffer, self->number) &&
           ps_buffer_append(buffer, digest.bytes, sizeof digest.bytes) &&
           ps_buffer_append(buffer, message.data, message.size);
}

bool ps_seal_is(ps_bytes_t bytes)
{
    return bytes.size >= sizeof(uint32_t) && ps_load_u32(bytes.data) == SEAL_MAGIC;
}

psd_status_t ps_seal_open(const ps_id_t *session, ps_bytes_t bytes, uint64_t *number,
                          ps_bytes_t *ret_message, psd_error_t *err)
{
    ps_bytes_t message = {0};
    uint64_t found = 0;
    ps_id_t said;
    ps_id_t digest;

    if (bytes.size < PS_SEAL_BYTES || !ps_seal_is(bytes) ||
        ps_load_u16(bytes.data + FORMAT_AT) != PS_QUORUM_FORMAT ||
        ps_load_u16(bytes.data + FORMAT_AT + sizeof(uint16_t)) != 0) {
        return psd_error_set(err, PSD_PROTO, "%zu bytes are no sealed message", bytes.size);
    }
    message.data = bytes.data + PS_SEAL_BYTES;
    message.size = bytes.size - PS_SEAL_BYTES;
    found = ps_load_u64(bytes.data + NUMBER_AT);
    memcpy(said.bytes, bytes.data + DIGEST_AT, sizeof said.bytes);
    seal(session, found, message, &digest);
    if (!ps_proof_equal(&digest, &said)) {
        return psd_error_set(err, PSD_DENIED, "the digest of message %" PRIu64 " is wrong", found);
    }
    if (found <= *number) {
        return psd_error_set(err, PSD_DENIED, "message %" PRIu64 " after message %" PRIu64, found,
                             *number);
    }
    *number = found;
    *ret_message = message;
    return PSD_OK;
}
