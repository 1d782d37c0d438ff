/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/data/text: lines and words
 *
 * It is       The lines of an input or of a share of it, numbers, hashes of
 *             words, vocabularies, and the cells of tables in text.
 * It uses     streams, lib/base.
 * It ignores  What a line is a sample of.
 * Start at    lines.h, number.h.
 */
/*
 * ps_lines - the lines of one input, or of one worker's share of it
 *
 * What     Each line belongs to the share in which it begins. A file that can
 *          seek is cut into n_parts stretches of bytes; packed data and pipes
 *          into blocks of PS_LINES_BLOCK unpacked bytes, dealt out in turn.
 *          A byte order mark before the first line is skipped.
 * Shape    A line does not include its '\n'. In memory a '\n' always follows
 *          it, even if the last line of the file has none. It includes a '\r'.
 * Units    lines are counted from 1
 * Owner    the caller owns the struct; a line is borrowed until the next one
 * Threads  confined to one thread
 * Errors   as ps_source; PSD_INVALID a line longer than PS_LINE_MAX
 */
#ifndef PS_DATA_LINES_H
#define PS_DATA_LINES_H

#include "base/bytes.h"
#include "data/streams/source.h"

#define PS_LINES_BLOCK ((uint64_t)1 << 20)
#define PS_LINE_MAX ((size_t)64 << 20)

/* Which lines; part < n_parts. */
typedef struct ps_share {
    uint32_t part;
    uint32_t n_parts;
} ps_share_t;

typedef struct ps_line {
    const char *text; /* NULL: there is none, the end */
    size_t size;      /* text[size] is '\n' */
    bool first;       /* of its input */
} ps_line_t;

typedef struct ps_lines {
    ps_source_t *source; /* owned */
    ps_share_t share;
    char *data; /* owned */
    size_t capacity;
    size_t at, filled; /* data[at .. filled) is not given yet */
    bool ended;        /* the source has no more */
    bool by_bytes;     /* cut into stretches, not dealt out in blocks */
    uint64_t offset;   /* of data[at] in the input */
    uint64_t end;      /* by_bytes: lines from here on are the next share's */
    uint64_t n_lines;  /* passed, where the share begins with the first */
    uint64_t given;    /* offset of the line that was given last */
    bool from_middle;  /* the share does not begin with the first line */
} ps_lines_t;

/* Opens it where the share begins. */
PSD_MUST_CHECK psd_status_t ps_lines_open(ps_lines_t *ret_lines, const char *path, ps_share_t share,
                                          psd_error_t *err);
/* Continues with the first line that begins at that byte or later, whatever was
 * read before. Only for a whole plain file (ps_source_can_seek). */
PSD_MUST_CHECK psd_status_t ps_lines_seek(ps_lines_t *self, uint64_t offset, psd_error_t *err);
/* Frees what is inside and zeroes it; fits PSD_AUTO. */
void ps_lines_done(ps_lines_t *self);
PSD_MUST_CHECK psd_status_t ps_lines_next(ps_lines_t *self, ps_line_t *ret_line, psd_error_t *err);
/* The next n_lines lines, or what begins within the next max_bytes, or all that
 * there is, as one text that ends with '\n' (or is empty); they are given again
 * by ps_lines_next. Before the first ps_lines_next. */
PSD_MUST_CHECK psd_status_t ps_lines_peek(ps_lines_t *self, size_t n_lines, size_t max_bytes,
                                          ps_line_t *ret_text, psd_error_t *err);
/* The place of the last line, as errors name it: "FILE:LINE", or "FILE: byte N"
 * in a share that begins in the middle. false: no memory. */
PSD_MUST_CHECK bool ps_lines_place(const ps_lines_t *self, ps_buffer_t *out);
#endif
