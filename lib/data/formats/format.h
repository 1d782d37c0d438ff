/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/data/formats: the formats of samples
 *
 * It is       A table of functions for each format: is it one, how is a line or
 *             a record read, how is a sample written.
 * It uses     sinks, records, text, streams, lib/base.
 * It ignores  Files, shares, threads and caches: feed reads inputs through these
 *             functions.
 * Start at    format.h, feed.h for formats without lines, format_libsvm.c as a
 *             simple one. A new format is one file here and a row in format.c.
 */
/*
 * ps_sample_format - one format: how a line becomes a sample, and back
 *
 * What     A row of functions for each format, found by its name. A parser is
 *          a format with the settings that its lines are read by.
 * Owner    formats are static; the caller owns parsers
 * Threads  any; a parser changes only when it is set up
 */
#ifndef PS_DATA_FORMAT_H
#define PS_DATA_FORMAT_H

#include "data/sinks/sink.h"
#include "data/text/lines.h"

typedef struct ps_sample_format ps_sample_format_t;

/* The common properties of all samples of a file; zeroed: there is no sample
 * yet. */
typedef struct ps_printed {
    bool any;
    bool labelled; /* they have labels */
    size_t columns;
} ps_printed_t;

typedef struct ps_parser {
    const ps_sample_format_t *format;
    psd_entries_t entries; /* what entries are; where that is open, as look
                              finds them, unless entries_set */
    bool entries_set;
    const char *entries_path;           /* borrowed; the input that says so; NULL: none */
    psd_labels_t labels;                /* what labels may be, where look decides */
    uint64_t columns;                   /* of each line, where look counts them; 0: any */
    uint32_t bits;                      /* of an index, where names are hashed */
    bool constant;                      /* samples get the constant entry */
    bool hash_all;                      /* names that are numbers are hashed, too */
    float scale;                        /* of values that are stored as whole numbers */
    char *vocabulary_path;              /* NULL: there is none */
    const psd_vocabulary_t *vocabulary; /* borrowed; what is in that file */
    char *labels_path;                  /* of labels in a file of their own, or "none"; NULL:
                                           beside the input */
    uint64_t first, end;                /* samples of each input that are wanted, where they
                                           can be found by number; end 0: all */
} ps_parser_t;

/* A format that has no lines; see data/formats/feed.h. */
typedef struct ps_feed_kind ps_feed_kind_t;

struct ps_sample_format {
    const char *name;
    const char *about; /* a line for people */
    psd_entries_t entries;
    bool entries_open; /* what they are, the caller or the first lines say */
    /* How it is read, where it has no lines of samples; NULL: by fits, look and
     * parse, which are NULL then. */
    const ps_feed_kind_t *feed;
    /* How it is written, where print does not do so; NULL: by print. */
    const ps_sink_kind_t *sink;
    /* Does a line, not empty and no comment, look like one of this format? */
    bool (*fits)(ps_line_t line);
    /* Could a line that does not be one, too, as it could be one of many
     * formats? Then it speaks neither for this one nor against it. NULL: no
     * line could. */
    bool (*allows)(ps_line_t line);
    int sureness; /* of two formats that fit as well, the greater is taken */
    /* Sets the parser up by the beginning of the data; NULL: nothing to do. */
    void (*look)(ps_parser_t *parser, ps_line_t text);
    /*
     * Adds the line's sample, or none for a line that holds none (empty, a
     * comment). After an error what was added of it is taken back by the
     * caller.
     *
     * Errors: PSD_INVALID the line is bad; err says why, without its place;
     * PSD_NOMEM.
     */
    psd_status_t (*parse)(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err);
    /*
     * Appends sample i as a line; NULL, without a sink: this format is not
     * written.
     *
     * before  in out  what was written to the file so far
     *
     * Errors: PSD_INVALID the format cannot hold it, or not beside those
     * before; PSD_NOMEM.
     */
    psd_status_t (*print)(const psd_samples_t *samples, size_t i, ps_printed_t *before,
                          ps_buffer_t *out, psd_error_t *err);
    bool holds_queries;
    bool holds_groups;
    bool holds_heads; /* weights, initial predictions, tags */
    bool unlabelled;  /* it has no place for labels */
};

extern const ps_sample_format_t ps_sample_format_libsvm;
extern const ps_sample_format_t ps_sample_format_ps;
extern const ps_sample_format_t ps_sample_format_vw;
extern const ps_sample_format_t ps_sample_format_adfea;
extern const ps_sample_format_t ps_sample_format_terafea;
extern const ps_sample_format_t ps_sample_format_criteo;
extern const ps_sample_format_t ps_sample_format_csv;
extern const ps_sample_format_t ps_sample_format_lda_c;
extern const ps_sample_format_t ps_sample_format_text;
extern const ps_sample_format_t ps_sample_format_idx;
extern const ps_sample_format_t ps_sample_format_binary;
extern const ps_sample_format_t ps_sample_format_uci;
extern const ps_sample_format_t ps_sample_format_proto;
extern const ps_sample_format_t ps_sample_format_proto_instance;
extern const ps_sample_format_t ps_sample_format_proto_input;

/* PSD_INVALID: there is none of that name; err names those that there are. */
PSD_MUST_CHECK psd_status_t ps_sample_format_find(const char *name,
                                                  const ps_sample_format_t **ret_format,
                                                  psd_error_t *err);
/* The i-th format; NULL after the last. */
const ps_sample_format_t *ps_sample_format_at(size_t i);
/* The one that nine of ten of the text's lines fit; NULL: there is none. */
const ps_sample_format_t *ps_sample_format_guess(ps_line_t text);
/* The one that most of its lines fit, how many of how many, and the first that
 * does not (text NULL: all do); NULL: no line fits any. */
const ps_sample_format_t *ps_sample_format_nearest(ps_line_t text, size_t *ret_fit,
                                                   size_t *ret_lines, ps_line_t *ret_other);
/* The one without lines that the input of that name is, which begins with these
 * bytes; NULL: there is none. */
const ps_sample_format_t *ps_sample_format_know(const char *path, const uint8_t *head, size_t size);

/* The next line of a text of whole lines; moves *at_p past it. text NULL at the
 * end. */
ps_line_t ps_text_line(ps_line_t text, size_t *at_p);
/* Appends a float with as many digits as bring it back. false: no memory. */
PSD_MUST_CHECK bool ps_sample_print_f32(ps_buffer_t *out, float value);
/* PSD_INVALID: `"WORD" is not WHAT`, with the word at that place. */
psd_status_t ps_sample_refuse(const char *at, const char *what, psd_error_t *err);
/* The same of the cell at that place: what stands there up to a ',', a ';' or
 * the line's end. */
psd_status_t ps_sample_refuse_cell(const char *at, const char *what, psd_error_t *err);
/* Is there a finite number and nothing else on the line? */
bool ps_line_is_number(ps_line_t line);
/* For an error: what stands there up to a blank, ';' or ',', cut short. Static
 * within the thread. */
const char *ps_sample_word(const char *at);
/* The same of the cell there: up to a ',', a ';' or the line's end, without
 * blanks around it. */
const char *ps_sample_cell(const char *at);
#endif
