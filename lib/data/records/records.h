/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/data/records: the files of parameter_server that have no lines
 *
 * It is       Records with heads, messages of its three schemas, descriptions
 *             and names of matrices.
 * It uses     streams, the schemas of lib/data/proto, lib/base; protobuf-c and
 *             zlib.
 * It ignores  Shares, guesses of formats, who reads.
 * Start at    records.h, proto_message.h, matrix_names.h.
 */
/*
 * ps_records - messages in a file, each with a head before it
 *
 * What     parameter_server's record files. A head is a magic number and the
 *          size of the message, of 32 bits; or, in the older files, two sizes
 *          of 64 bits: of the message, and of what it is packed into by zlib
 *          (0: it is not). Which of them a file has, its first head says: a
 *          message does not begin with four zeros.
 * Units    bytes
 * Owner    the caller owns the struct; a message is borrowed until the next one
 * Threads  confined to one thread
 * Errors   as ps_source; PSD_DAMAGED a head that is none, or a message longer
 *          than PS_STRETCH_MAX
 */
#ifndef PS_DATA_RECORDS_H
#define PS_DATA_RECORDS_H

#include "base/bytes.h"
#include "data/streams/window.h"

#define PS_RECORD_HEAD_MAX 20

typedef struct ps_records {
    ps_byte_window_t window;
    bool long_heads;
    ps_buffer_t plain; /* the message, where it was packed */
    uint64_t given;    /* offset of the head of the last one */
} ps_records_t;

/* Do these bytes begin such a file? */
bool ps_records_know(const uint8_t *head, size_t size);
PSD_MUST_CHECK psd_status_t ps_records_open(ps_records_t *ret_records, const char *path,
                                            psd_error_t *err);
/* Frees what is inside and zeroes it; fits PSD_AUTO. */
void ps_records_done(ps_records_t *self);
/* The next message; *ret_message with data NULL is the end. PSD_INVALID: it
 * cannot be unpacked; the next call continues after it. */
PSD_MUST_CHECK psd_status_t ps_records_next(ps_records_t *self, ps_bytes_t *ret_message,
                                            psd_error_t *err);
/* Passes over the next one; *ret_end: there is none. */
PSD_MUST_CHECK psd_status_t ps_records_skip(ps_records_t *self, bool *ret_end, psd_error_t *err);
/* Appends a head and its message, compressed when heads are long. false: no
 * memory. */
PSD_MUST_CHECK bool ps_records_append(ps_buffer_t *out, bool long_heads, const void *message,
                                      size_t size);
#endif
