/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/audit: lines that say who did what, each bound to the one before
 *
 * It is       The text of a line, the chain of digests, the check of lines that were
 *             read, and how many failed requests are written.
 * It uses     lib/wire/messages/doc.h, lib/base; libsodium for digests.
 * It ignores  Files (lib/storage/audit), and which requests are noted
 *             (trust_kinds.def in lib/protocol/trust).
 * Start at    this file. docs/security.md describes the lines for people.
 */
/*
 * ps_audit_chain - lines of JSON, of which each has a digest over itself and the one before
 *
 * What     A line is changed, removed, inserted or moved: then its digest, or that of the
 *          next one, is wrong. Whoever can write the file can make new digests for all lines
 *          from there on; a digest that was noted elsewhere shows that, too.
 * Shape    {"seq":N,"unix_ms":T,"event":E,…,"digest":"64 hex digits"}, ended by a line break.
 *          The digest is BLAKE2b-256 over the 32 bytes of the one before, and the line's bytes
 *          before `,"digest":`. The first line of a file is "begin" and has the digest of the
 *          line before as "prev", because older files may be gone.
 * Threads  plain values; confined to one thread
 */
#ifndef PS_PROTOCOL_AUDIT_CHAIN_H
#define PS_PROTOCOL_AUDIT_CHAIN_H

#include "base/bytes.h"
#include "wire/messages/doc.h"

#define PS_AUDIT_DIGEST_SIZE 32
#define PS_AUDIT_DIGEST_TEXT_SIZE (2 * PS_AUDIT_DIGEST_SIZE + 1)
#define PS_AUDIT_LINE_MAX 8192 /* bytes, without the line break */

/* Where a chain ends. */
typedef struct ps_audit_chain {
    uint64_t seq; /* of the last line; 0: there was none … */
    uint8_t digest[PS_AUDIT_DIGEST_SIZE];
} ps_audit_chain_t;

#define PS_AUDIT_PAIRS_MAX 8

typedef struct ps_audit_pair {
    const char *key;
    const char *text;
} ps_audit_pair_t;

/* A request that changed something, or was refused. Texts are borrowed; NULL: unknown, or none. */
typedef struct ps_audit_record {
    const char *who; /* the principal … */
    uint32_t who_id; /* … and its number; 0: none */
    bool has_uid;
    uint32_t uid;
    const char *key;     /* public */
    const char *address; /* "": of this host */
    const char *op;      /* "table_drop", "PUSH" */
    const char *verb;
    const char *object;
    const char *name;                          /* of the object */
    ps_audit_pair_t pairs[PS_AUDIT_PAIRS_MAX]; /* what else it asked for, "role", "job" … */
    size_t n_pairs;                            /* … and their number */
    psd_status_t result;
    bool has_changed; /* something, also where the result is an error: it is always written */
    uint64_t session; /* 0: none */
    uint64_t request; /* its number within the session */
} ps_audit_record_t;

/* A new line after the chain's end: its number, the time and the event. NULL: no memory. */
ps_doc_t *ps_audit_line_new(const ps_audit_chain_t *chain, uint64_t unix_ms, const char *event);
/* Adds a record's members. What is not UTF-8 is left out. false: no memory. */
PSD_MUST_CHECK bool ps_audit_line_fill(ps_doc_t *line, const ps_audit_record_t *record);
/* Appends the line with digest and line break; the chain moves on. false: no memory, or the line
 * is longer than PS_AUDIT_LINE_MAX; nothing changed. */
PSD_MUST_CHECK bool ps_audit_line_end(ps_audit_chain_t *chain, const ps_doc_t *line,
                                      ps_buffer_t *to);
/* Lower-case digits. Returns ret. */
const char *ps_audit_digest_text(const uint8_t digest[PS_AUDIT_DIGEST_SIZE],
                                 char ret[PS_AUDIT_DIGEST_TEXT_SIZE]);

/* ---- the check ---- */

/* Empty before the first line. */
typedef struct ps_audit_check {
    ps_audit_chain_t chain; /* of the last line that was good */
    uint64_t first;         /* number of the first one */
    uint64_t n_lines;       /* that were good */
    uint64_t n_cuts;        /* ends of files that a crash had cut */
    uint64_t n_gaps;        /* times at which lines could not be written */
    uint64_t top;           /* greatest number in what looked like a line, good or not */
} ps_audit_check_t;

/* The next line, without its line break. Lines of several files come as one row. Errors:
 * PSD_DAMAGED with what is wrong; then no more lines may follow. */
PSD_MUST_CHECK psd_status_t ps_audit_check_line(ps_audit_check_t *self, ps_bytes_t line,
                                                psd_error_t *err);
/* Only `top`: of a line after one that was not good. */
void ps_audit_check_pass(ps_audit_check_t *self, ps_bytes_t line);

/* ---- pace ---- */

/* Failed requests of one caller that may be written: some at once, then one a second. More are
 * counted: whoever fails all the time must not fill the files. */
#define PS_AUDIT_BURST 200          /* of a principal */
#define PS_AUDIT_BURST_STRANGERS 20 /* of all who are none, together */
#define PS_AUDIT_PACE_MS 1000       /* for each */
typedef struct ps_audit_pace {
    uint64_t spent_ms; /* time that the lines written so far have used up */
} ps_audit_pace_t;

/* Whether one more may be written; counts it. now_ms: of any clock that does not go back. */
PSD_MUST_CHECK bool ps_audit_pace_take(ps_audit_pace_t *self, uint64_t burst, uint64_t now_ms);
#endif
