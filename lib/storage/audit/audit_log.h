/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_audit_log - the audit that a psd writes
 *
 * What     Opened at the start: the file is checked, an end that a crash has cut is taken
 *          away and noted ("cut"), and one with wrong lines is put aside. A full file becomes
 *          an older one, of which the oldest is removed; the chain of digests goes on.
 * Shape    A line is in the file when ps_audit_log_add returns, but only closing and the
 *          change to another file flush it: it survives a crash of psd, and of the machine
 *          only when the kernel has written it, after half a minute or so.
 *          A line that cannot be written, on a full disk for one, is lost. The next one
 *          that can be written is "gap" and says how many. Failed requests have a
 *          pace for each principal, and one for all strangers (ps_audit_pace); "more",
 *          once a minute at most, says how many were not written.
 * Owner    ps_audit_log_close.
 * Threads  any; a lock
 */
#ifndef PS_STORAGE_AUDIT_LOG_H
#define PS_STORAGE_AUDIT_LOG_H

#include "protocol/audit/audit_chain.h"
#include "storage/disk/disk.h"

typedef struct ps_audit_log ps_audit_log_t;

typedef struct ps_audit_args {
    ps_disk_t *disk; /* borrowed */
    const char *dir; /* borrowed until close */
    uint64_t file_bytes;
    uint64_t files; /* with the one that is written; > 0 */
    uint64_t unix_ms;
    const char *node;    /* for the line "start" … */
    const char *release; /* … of psd */
} ps_audit_args_t;

/* What a start has found. */
typedef struct ps_audit_found {
    uint64_t seq;      /* of the last line, that of this start */
    uint64_t cut;      /* bytes of a line without an end that were taken away */
    char damaged[400]; /* "": nothing was wrong */
    char lost[400];    /* why no line could be written; "": one could */
} ps_audit_found_t;

/* A disk that is full does not count as an error: lines are then lost, and counted. Errors: those
 * of the disk, for what is there; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_audit_log_open(const ps_audit_args_t *args,
                                              ps_audit_found_t *ret_found, ps_audit_log_t **ret_log,
                                              psd_error_t *err);
/* Writes "stop", flushes. Takes NULL, nulls *self_p. */
void ps_audit_log_close(ps_audit_log_t **self_p, uint64_t unix_ms);

/* What became of a line. */
typedef struct ps_audit_outcome {
    ps_audit_chain_t end; /* with it; seq 0: it is not in the file */
    bool begins;          /* this is the first one that was lost */
    uint64_t lost;        /* lines before this one, which was written */
} ps_audit_outcome_t;

/*
 * Writes "request". now_ms: of a clock that does not go back.
 * Errors: those of the disk; PSD_NOMEM; the line is then lost, and counted.
 */
PSD_MUST_CHECK psd_status_t ps_audit_log_add(ps_audit_log_t *self, const ps_audit_record_t *record,
                                             uint64_t unix_ms, uint64_t now_ms,
                                             ps_audit_outcome_t *ret_outcome, psd_error_t *err);
/* Writes a line that has an event alone; what is lost is counted. */
void ps_audit_log_say(ps_audit_log_t *self, const char *event, uint64_t unix_ms);

/* Where the chain ends now. */
ps_audit_chain_t ps_audit_log_end(ps_audit_log_t *self);

/* A place in the files; zeroes: where the oldest one begins. */
typedef struct ps_audit_place {
    uint64_t file; /* number of its first line */
    uint64_t offset;
} ps_audit_place_t;

/*
 * Appends bytes from a place on, and moves it. A piece never has bytes of two files.
 * ret_end: set when that was all there is, with what the chain then ends with.
 * Errors: those of the disk; PSD_BUSY the file is gone; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_audit_log_read(ps_audit_log_t *self, ps_audit_place_t *place,
                                              size_t size, ps_buffer_t *to, bool *ret_is_end,
                                              ps_audit_chain_t *ret_end, psd_error_t *err);
#endif
