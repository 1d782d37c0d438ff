/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of an audit, made and checked. */
#include "protocol/audit/audit_chain.h"

#include <ctype.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/alloc.h"

#define HEAD "{\"seq\":"
#define TAIL ",\"digest\":\""
#define EVENT ",\"event\":\""
#define END "\"}"
#define HEX_SIZE ((size_t)2 * PS_AUDIT_DIGEST_SIZE)
#define TAIL_SIZE (sizeof TAIL - 1 + HEX_SIZE + sizeof END - 1)
#define SEQ_DIGITS_MAX 19
#define SEQ_MAX (UINT64_C(1) << 62) /* more than any file has */
#define EVENT_WITHIN 96             /* bytes from the line's beginning */

static void digest_of(const uint8_t before[PS_AUDIT_DIGEST_SIZE], const uint8_t *body, size_t size,
                      uint8_t ret[PS_AUDIT_DIGEST_SIZE])
{
    crypto_generichash_state state;

    /* None of these fails with sizes that are constant. */
    (void)crypto_generichash_init(&state, NULL, 0, PS_AUDIT_DIGEST_SIZE);
    (void)crypto_generichash_update(&state, before, PS_AUDIT_DIGEST_SIZE);
    (void)crypto_generichash_update(&state, body, size);
    (void)crypto_generichash_final(&state, ret, PS_AUDIT_DIGEST_SIZE);
}

const char *ps_audit_digest_text(const uint8_t digest[PS_AUDIT_DIGEST_SIZE],
                                 char ret[PS_AUDIT_DIGEST_TEXT_SIZE])
{
    return sodium_bin2hex(ret, PS_AUDIT_DIGEST_TEXT_SIZE, digest, PS_AUDIT_DIGEST_SIZE);
}

/* ---- made ---- */

ps_doc_t *ps_audit_line_new(const ps_audit_chain_t *chain, uint64_t unix_ms, const char *event)
{
    ps_doc_t *line = ps_doc_new();

    if (line != NULL &&
        (!ps_doc_set_u64(line, "seq", chain->seq + 1) ||
         !ps_doc_set_u64(line, "unix_ms", unix_ms) || !ps_doc_set_text(line, "event", event))) {
        ps_doc_destroy(&line);
    }
    return line;
}

static bool set(ps_doc_t *line, const char *key, const char *text)
{
    return (text != NULL && ps_doc_set_text(line, key, text)) || ps_doc_set_null(line, key);
}

static bool add_pairs(ps_doc_t *line, const ps_audit_record_t *record)
{
    ps_doc_t *detail = record->n_pairs == 0 ? NULL : ps_doc_add_object(line, "detail");
    bool ok = record->n_pairs == 0 || detail != NULL;

    for (size_t i = 0; ok && i < record->n_pairs; i++) {
        ok = set(detail, record->pairs[i].key, record->pairs[i].text);
    }
    return ok;
}

bool ps_audit_line_fill(ps_doc_t *line, const ps_audit_record_t *record)
{
    return set(line, "who", record->who) &&
           (record->has_uid ? ps_doc_set_u64(line, "uid", record->uid)
                            : ps_doc_set_null(line, "uid")) &&
           set(line, "key", record->key) && set(line, "address", record->address) &&
           set(line, "op", record->op) && set(line, "verb", record->verb) &&
           set(line, "object", record->object) && set(line, "name", record->name) &&
           add_pairs(line, record) &&
           ps_doc_set_text(line, "result", psd_status_name(record->result)) &&
           ps_doc_set_text(line, "code", psd_status_code(record->result)) &&
           ps_doc_set_u64(line, "session", record->session) &&
           ps_doc_set_u64(line, "id", record->request);
}

bool ps_audit_line_end(ps_audit_chain_t *chain, const ps_doc_t *line, ps_buffer_t *to)
{
    const size_t begin = to->size;
    uint8_t digest[PS_AUDIT_DIGEST_SIZE];
    char text[PS_AUDIT_DIGEST_TEXT_SIZE];

    if (!ps_doc_print(line, to)) {
        return false;
    }
    to->size--; /* its brace */
    digest_of(chain->digest, to->data + begin, to->size - begin, digest);
    if (to->size - begin + TAIL_SIZE > PS_AUDIT_LINE_MAX ||
        !ps_buffer_print(to, TAIL "%s" END "\n", ps_audit_digest_text(digest, text))) {
        to->size = begin;
        return false;
    }
    chain->seq++;
    memcpy(chain->digest, digest, sizeof digest);
    return true;
}

/* ---- checked ---- */

/* The line's number, and the bytes that its digest is of. false: it is no line. */
static bool split(ps_bytes_t line, uint64_t *ret_seq, size_t *ret_body)
{
    const char *text = (const char *)line.data;
    size_t at = sizeof HEAD - 1;
    uint64_t seq = 0;

    if (line.size > PS_AUDIT_LINE_MAX || line.size < at + TAIL_SIZE ||
        memcmp(text, HEAD, at) != 0) {
        return false;
    }
    for (size_t n = 0; isdigit((unsigned char)text[at]) && n < SEQ_DIGITS_MAX; n++) {
        seq = seq * 10 + (uint64_t)(text[at++] - '0');
    }
    *ret_seq = seq;
    *ret_body = line.size - TAIL_SIZE;
    return seq > 0 && at <= *ret_body && text[at] == ',' &&
           memcmp(text + *ret_body, TAIL, sizeof TAIL - 1) == 0 &&
           memcmp(text + line.size - (sizeof END - 1), END, sizeof END - 1) == 0;
}

/* Text in a line has its quotes escaped, so that it cannot look like that. */
static bool has_event(ps_bytes_t line, const char *event)
{
    const char *at = memmem(line.data, line.size < EVENT_WITHIN ? line.size : EVENT_WITHIN, EVENT,
                            sizeof EVENT - 1);
    size_t length = strlen(event);
    size_t left = at == NULL ? 0 : (size_t)((const char *)line.data + line.size - at);

    return left > sizeof EVENT + length && memcmp(at + sizeof EVENT - 1, event, length) == 0 &&
           at[sizeof EVENT - 1 + length] == '"';
}

/* The first line that there is goes on with what it says. */
static psd_status_t read_begin(ps_audit_check_t *self, ps_bytes_t line, uint64_t seq,
                               psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const char *text = NULL;
    size_t n = 0;

    if (!has_event(line, "begin")) {
        return psd_error_set(err, PSD_DAMAGED,
                             "it is not the beginning of a file: lines before it were removed");
    }
    if (ps_doc_parse(line, &doc, NULL) != PSD_OK ||
        ps_doc_get_text(doc, "prev", HEX_SIZE, &text, NULL) != PSD_OK ||
        sodium_hex2bin(self->chain.digest, sizeof self->chain.digest, text, strlen(text), NULL, &n,
                       NULL) != 0 ||
        n != PS_AUDIT_DIGEST_SIZE) {
        return psd_error_set(err, PSD_DAMAGED, "it was changed");
    }
    self->chain.seq = seq - 1;
    self->first = seq;
    return PSD_OK;
}

static psd_status_t check_seq(const ps_audit_check_t *self, uint64_t seq, psd_error_t *err)
{
    const uint64_t next = self->chain.seq + 1;

    if (seq == next) {
        return PSD_OK;
    }
    if (seq > next) {
        return psd_error_set(err, PSD_DAMAGED,
                             "it is number %" PRIu64 ", and number %" PRIu64
                             " should follow: lines before it were removed or moved, or it was "
                             "inserted",
                             seq, next);
    }
    return psd_error_set(err, PSD_DAMAGED,
                         "it is number %" PRIu64 ", and number %" PRIu64
                         " should follow: it was inserted or moved",
                         seq, next);
}

psd_status_t ps_audit_check_line(ps_audit_check_t *self, ps_bytes_t line, psd_error_t *err)
{
    uint8_t digest[PS_AUDIT_DIGEST_SIZE];
    char text[PS_AUDIT_DIGEST_TEXT_SIZE];
    uint64_t seq = 0;
    size_t body = 0;
    psd_status_t rc = PSD_OK;

    ps_audit_check_pass(self, line);
    if (!split(line, &seq, &body)) {
        return psd_error_set(err, PSD_DAMAGED, "it is no line of an audit, or was changed");
    }
    if (self->n_lines == 0) {
        rc = read_begin(self, line, seq, err);
    }
    if (rc == PSD_OK) {
        rc = check_seq(self, seq, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    digest_of(self->chain.digest, line.data, body, digest);
    if (memcmp(ps_audit_digest_text(digest, text), line.data + body + sizeof TAIL - 1, HEX_SIZE) !=
        0) {
        return psd_error_set(err, PSD_DAMAGED, "it was changed, or is another than was written");
    }
    self->chain.seq = seq;
    memcpy(self->chain.digest, digest, sizeof digest);
    self->n_lines++;
    self->n_cuts += has_event(line, "cut") ? 1 : 0;
    self->n_gaps += has_event(line, "gap") ? 1 : 0;
    return PSD_OK;
}

void ps_audit_check_pass(ps_audit_check_t *self, ps_bytes_t line)
{
    uint64_t seq = 0;
    size_t body = 0;

    if (split(line, &seq, &body) && seq > self->top && seq < SEQ_MAX) {
        self->top = seq;
    }
}

/* ---- pace ---- */

bool ps_audit_pace_take(ps_audit_pace_t *self, uint64_t burst, uint64_t now_ms)
{
    if (self->spent_ms < now_ms) {
        self->spent_ms = now_ms;
    }
    if (self->spent_ms + PS_AUDIT_PACE_MS > now_ms + burst * PS_AUDIT_PACE_MS) {
        return false;
    }
    self->spent_ms += PS_AUDIT_PACE_MS;
    return true;
}
