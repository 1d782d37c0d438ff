/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_data - samples: read from files of the usual formats, and written
 *
 *     const char *paths[] = {"train/"};
 *     psd_samples_t *batch = psd_samples_new();
 *     psd_reader_t *reader = NULL;
 *     psd_reader_open(paths, 1, NULL, &reader, err);
 *     while (psd_reader_next(reader, 1000, batch, err) == PSD_OK &&
 *            psd_samples_count(batch) > 0) { … }
 *
 * What     One type for the samples of every format: a label, a weight, and
 *          entries (key and value) in one or more groups. Readers read one
 *          batch after another in constant memory, from files, directories
 *          and patterns, plain or compressed (gzip, zstd): all of it, or the
 *          share of one worker.
 * Owner    What a call returns through `ret_x` belongs to the caller; a
 *          destructor takes the pointer's address, accepts NULL, and nulls it.
 * Threads  A reader, a writer and a batch belong to one thread at a time;
 *          several of them may be used at the same time.
 * Errors   Every call that can fail returns a psd_status_t and, when err is
 *          not NULL, one line of text that names file, line and reason.
 */
#ifndef PSD_DATA_H
#define PSD_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a batch of samples ---- */

/*
 * Shape    sample i has the groups  groups[i] .. groups[i + 1] - 1;
 *          group g  has the entries starts[g] .. starts[g + 1] - 1.
 *          Formats without groups have one, of id 0, for each sample.
 *          A dense group's keys are 0, 1, 2, …
 */
typedef struct psd_samples psd_samples_t;

/* What the labels of a data set are. */
typedef enum psd_labels {
    PSD_LABELS_NONE = 0,   /* there are none */
    PSD_LABELS_BINARY = 1, /* each +1 or -1 */
    PSD_LABELS_CLASS = 2,  /* whole numbers */
    PSD_LABELS_REAL = 3
} psd_labels_t;

/* What the entries of a data set are. */
typedef enum psd_entries {
    PSD_ENTRIES_SPARSE = 0, /* keys and values */
    PSD_ENTRIES_BINARY = 1, /* keys; every value is 1 */
    PSD_ENTRIES_DENSE = 2   /* values; keys count from 0 */
} psd_entries_t;

/* An empty batch; NULL when there is no memory. */
PSD_EXPORT psd_samples_t *psd_samples_new(void);
PSD_EXPORT void psd_samples_destroy(psd_samples_t **self_p);

/* The number of samples, groups and entries. */
PSD_EXPORT size_t psd_samples_count(const psd_samples_t *self);
PSD_EXPORT size_t psd_samples_group_count(const psd_samples_t *self);
PSD_EXPORT size_t psd_samples_entry_count(const psd_samples_t *self);

/* Arrays of the batch, borrowed until it is filled again or destroyed. */

/* The label of each sample; NaN: it has none. */
PSD_EXPORT const float *psd_samples_labels(const psd_samples_t *self);
/* Importance of each sample; default 1. */
PSD_EXPORT const float *psd_samples_weights(const psd_samples_t *self);
/* Initial prediction of each sample; default 0. */
PSD_EXPORT const float *psd_samples_initials(const psd_samples_t *self);
/* Query that each sample belongs to (libsvm's qid); 0: it has none. */
PSD_EXPORT const uint64_t *psd_samples_queries(const psd_samples_t *self);
/* One more than there are samples; see Shape. */
PSD_EXPORT const size_t *psd_samples_groups(const psd_samples_t *self);
/* Id of each group. */
PSD_EXPORT const int64_t *psd_samples_group_ids(const psd_samples_t *self);
/* One more than there are groups; see Shape. */
PSD_EXPORT const size_t *psd_samples_starts(const psd_samples_t *self);
/* Key and value of each entry. */
PSD_EXPORT const uint64_t *psd_samples_keys(const psd_samples_t *self);
PSD_EXPORT const float *psd_samples_values(const psd_samples_t *self);
/* The tag of sample i < count, of ret_size bytes (no '\0' follows them); "" for
 * most. */
PSD_EXPORT const char *psd_samples_tag(const psd_samples_t *self, size_t i, size_t *ret_size);
/* What the entries of the whole batch are. */
PSD_EXPORT psd_entries_t psd_samples_entries(const psd_samples_t *self);

/* ---- vocabularies ---- */

/* The words that keys stand for: the word of line i of a file, from 0, has the
 * key i. Several threads may read it at once. */
typedef struct psd_vocabulary psd_vocabulary_t;

/*
 * Reads the first word of every line of a file, plain or compressed.
 *
 * Errors: PSD_INVALID a line without a word, a word that appears twice, no word
 * at all; PSD_IO; PSD_DAMAGED; PSD_LIMIT more than 2^31 - 1 words; PSD_NOMEM.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_vocabulary_read(const char *path,
                                                           psd_vocabulary_t **ret_vocabulary,
                                                           psd_error_t *err);
PSD_EXPORT void psd_vocabulary_destroy(psd_vocabulary_t **self_p);
/* The number of words. */
PSD_EXPORT size_t psd_vocabulary_count(const psd_vocabulary_t *self);
/* Borrowed until it is destroyed; NULL: it has no such key. */
PSD_EXPORT const char *psd_vocabulary_word(const psd_vocabulary_t *self, uint64_t key);
/* false: it has no such word, of `size` bytes. */
PSD_EXPORT bool psd_vocabulary_find(const psd_vocabulary_t *self, const char *word, size_t size,
                                    uint64_t *ret_key);

/* ---- readers ---- */

typedef struct psd_reader psd_reader_t;
typedef struct psd_reader_options psd_reader_options_t;

/* How to read; NULL anywhere means the defaults. NULL: no memory. */
PSD_EXPORT psd_reader_options_t *psd_reader_options_new(void);
PSD_EXPORT void psd_reader_options_destroy(psd_reader_options_t **self_p);
/* "libsvm", "ps", "vw", "adfea", "terafea", "criteo", "csv", "lda-c", "text",
 * "idx", "binary", "uci", "proto" (any schema; also "proto-instance",
 * "proto-input"). "auto", the default, detects the format from the first bytes
 * and then from the first 1000 lines. PSD_INVALID: no such format. */
PSD_EXPORT psd_status_t psd_reader_options_set_format(psd_reader_options_t *self,
                                                      const char *format, psd_error_t *err);
/* Reads share `part` of n_parts. Every file is cut at ends of lines into
 * n_parts shares of about the same number of bytes (plain files) or blocks
 * (compressed ones); each line belongs to exactly one share. Default 0 of 1.
 * PSD_INVALID: n_parts is 0, or part is not below it. */
PSD_EXPORT psd_status_t psd_reader_options_set_share(psd_reader_options_t *self, uint32_t part,
                                                     uint32_t n_parts, psd_error_t *err);
/* true: the first bad line ends the reading with its error. false, the default:
 * bad lines are skipped and counted. */
PSD_EXPORT void psd_reader_options_set_strict(psd_reader_options_t *self, bool strict);
/* In "ps" files: whether entries without ':' belong to dense or to binary
 * groups; not set: the first 1000 lines decide. In "text" files: whether a line
 * becomes its words in order (binary), or each word once with its count
 * (sparse, the default). No effect in other formats. PSD_INVALID: no such
 * kind. */
PSD_EXPORT psd_status_t psd_reader_options_set_entries(psd_reader_options_t *self,
                                                       psd_entries_t entries, psd_error_t *err);
/* The maximum number of lines (samples, in formats without lines) of each
 * input; 0, the default: all. */
PSD_EXPORT void psd_reader_options_set_max_lines(psd_reader_options_t *self, uint64_t max_lines);
/* true: the entries of all groups of a sample are merged into one group of id
 * 0, by ascending keys (keys of dense groups continue from one group to the
 * next). */
PSD_EXPORT void psd_reader_options_set_merge(psd_reader_options_t *self, bool merge);
/* Bits of a "vw" index, 1 .. 61; default 18. PSD_INVALID. */
PSD_EXPORT psd_status_t psd_reader_options_set_bits(psd_reader_options_t *self, uint32_t bits,
                                                    psd_error_t *err);
/* true, the default: "vw" samples get the constant entry. */
PSD_EXPORT void psd_reader_options_set_constant(psd_reader_options_t *self, bool constant);
/* true: names of "vw" features are hashed even if they are numbers. */
PSD_EXPORT void psd_reader_options_set_hash_all(psd_reader_options_t *self, bool hash_all);

/* Only samples [first, end) of each input, in formats that can seek to a sample
 * ("idx", "binary"); nothing else is read. A share
 * (psd_reader_options_set_share) is a share of these samples. PSD_INVALID: the
 * range is empty. */
PSD_EXPORT psd_status_t psd_reader_options_set_rows(psd_reader_options_t *self, uint64_t first,
                                                    uint64_t end, psd_error_t *err);
/* The factor for the values of "idx" samples, for instance 1.0f / 255; default
 * 1. PSD_INVALID: 0, or its magnitude exceeds 1e9. */
PSD_EXPORT psd_status_t psd_reader_options_set_scale(psd_reader_options_t *self, float scale,
                                                     psd_error_t *err);
/* The file with the labels of "idx" or "binary" samples; "none": there are no
 * labels. NULL, the default: a file in the same directory. For "idx" it has the
 * name of the samples' file with "labels" in place of "images" and "idx1" in
 * place of "idx3", compressed or not; for binary matrices it is STEM.y.info.
 * Copied. PSD_NOMEM. */
PSD_EXPORT psd_status_t psd_reader_options_set_labels(psd_reader_options_t *self, const char *path,
                                                      psd_error_t *err);
/* The vocabulary file that gives the keys of "text" samples; words that are not
 * in it are left out. "lda-c" lines with keys beyond its last word are bad;
 * "uci" files with more words are refused. NULL, the default: no vocabulary,
 * words are hashed. Copied. PSD_NOMEM. */
PSD_EXPORT psd_status_t psd_reader_options_set_vocabulary(psd_reader_options_t *self,
                                                          const char *path, psd_error_t *err);
/* Where the reader caches the parsed samples of each input, so that the next
 * reader with the same settings need not parse it again: a directory, or
 * "beside" for hidden files beside the inputs. A cache is written when all of
 * an input has been parsed. It is valid while the size, inode and times of the
 * input are the same; a damaged cache is ignored and written again. No cache is
 * made of inputs that are not files, that changed less than 20 ms before they
 * were opened, or that are read with max_lines or without parsing ("idx",
 * "binary"). NULL, the default: no cache. Copied. PSD_NOMEM. */
PSD_EXPORT psd_status_t psd_reader_options_set_cache(psd_reader_options_t *self,
                                                     const char *directory, psd_error_t *err);

/*
 * Opens the inputs and detects their format; nothing else is read yet.
 *
 * paths    in  n_paths >= 1 of: a file; a directory, whose files (except hidden
 *              ones) are read in the order of their names; a glob(7) pattern;
 *              "-", standard input. All have one format.
 * options  in  copied; NULL: the defaults
 *
 * Errors: PSD_INVALID a pattern that matches nothing, a directory without
 * files, a format that is not recognised, a file compressed by xz, bzip2 or
 * zip; PSD_IO a path that cannot be opened or does not exist; PSD_DAMAGED
 * compressed data that is broken; PSD_LIMIT; PSD_NOMEM.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_reader_open(const char *const *paths, size_t n_paths,
                                                       const psd_reader_options_t *options,
                                                       psd_reader_t **ret_reader, psd_error_t *err);
PSD_EXPORT void psd_reader_close(psd_reader_t **self_p);
/*
 * Empties the batch and reads up to max_samples (>= 1) samples into it; an
 * empty batch is the end. After an error the batch has the samples that were
 * read before it.
 *
 * Errors: PSD_INVALID a bad line, when strict, or one longer than 64 MiB;
 * PSD_IO; PSD_DAMAGED; PSD_LIMIT; PSD_NOMEM. After an error the reader can only
 * be closed.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_reader_next(psd_reader_t *self, size_t max_samples,
                                                       psd_samples_t *samples, psd_error_t *err);
/* The format's name, static. */
PSD_EXPORT const char *psd_reader_format(const psd_reader_t *self);
/* The kind of the labels read so far. */
PSD_EXPORT psd_labels_t psd_reader_labels(const psd_reader_t *self);
/* Progress: the number of bytes read from the inputs (compressed bytes if they
 * are compressed), and the total; 0: unknown (standard input). */
PSD_EXPORT uint64_t psd_reader_bytes(const psd_reader_t *self, uint64_t *ret_total);
/* The number of samples read, and of bad lines skipped, so far. */
PSD_EXPORT uint64_t psd_reader_sample_count(const psd_reader_t *self);
PSD_EXPORT uint64_t psd_reader_bad_count(const psd_reader_t *self);
/* What is wrong with the i-th bad line, i < 10 ("FILE:LINE: …", or "FILE: byte
 * N: …" in a share that begins in the middle of a file); NULL: there is none.
 * Borrowed until the reader is closed. */
PSD_EXPORT const char *psd_reader_bad(const psd_reader_t *self, size_t i);

/* The first reason why a cache could not be used or written; NULL: there is
 * none. Borrowed until the reader is closed. */
PSD_EXPORT const char *psd_reader_warning(const psd_reader_t *self);
/* The vocabulary of psd_reader_options_set_vocabulary, borrowed until the
 * reader is closed; NULL: there is none. */
PSD_EXPORT const psd_vocabulary_t *psd_reader_vocabulary(const psd_reader_t *self);

/* ---- statistics of a data set ---- */

/* Counts over samples: how many there are, and with which keys and labels. The
 * greatest key tells how many rows a table of weights needs. */
typedef struct psd_summary psd_summary_t;

#define PSD_SUMMARY_KEYS_MAX 8388608 /* distinct keys; 256 MiB */
#define PSD_SUMMARY_LABELS_MAX 64    /* distinct labels */

/* An empty one; NULL when there is no memory. */
PSD_EXPORT psd_summary_t *psd_summary_new(void);
PSD_EXPORT void psd_summary_destroy(psd_summary_t **self_p);
/* Adds a batch. Errors: PSD_NOMEM; then none of its samples is counted, but
 * some of its keys may be. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_summary_add(psd_summary_t *self,
                                                       const psd_samples_t *samples,
                                                       psd_error_t *err);
/* Reads the rest of the reader's samples and adds them. Errors: as
 * psd_reader_next, and the samples read before the error are added;
 * PSD_NOMEM. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_reader_summary(psd_reader_t *self,
                                                          psd_summary_t *summary, psd_error_t *err);
/* The number of samples; of entries; the most entries of one sample. */
PSD_EXPORT uint64_t psd_summary_sample_count(const psd_summary_t *self);
PSD_EXPORT uint64_t psd_summary_entry_count(const psd_summary_t *self);
PSD_EXPORT uint64_t psd_summary_most_entries(const psd_summary_t *self);
/* The number of distinct keys; ret_more (may be NULL): there are more than
 * PSD_SUMMARY_KEYS_MAX, and the others are not counted. */
PSD_EXPORT uint64_t psd_summary_key_count(const psd_summary_t *self, bool *ret_more);
/* The least and the greatest key; false: there is no entry. */
PSD_EXPORT bool psd_summary_key_range(const psd_summary_t *self, uint64_t *ret_min,
                                      uint64_t *ret_max);
/* The number of samples without a label. */
PSD_EXPORT uint64_t psd_summary_unlabelled_count(const psd_summary_t *self);
/* The least and the greatest label; false: no sample has one. */
PSD_EXPORT bool psd_summary_label_range(const psd_summary_t *self, float *ret_min, float *ret_max);
/* The number of distinct labels; ret_more (may be NULL): there are more than
 * PSD_SUMMARY_LABELS_MAX, and psd_summary_label does not return the others. */
PSD_EXPORT size_t psd_summary_label_count(const psd_summary_t *self, bool *ret_more);
/* The i-th label, ascending, and its number of samples (may be NULL); NaN and
 * 0: there is none. */
PSD_EXPORT float psd_summary_label(const psd_summary_t *self, size_t i, uint64_t *ret_samples);

/* ---- localizers ---- */

/*
 * What     Maps the keys of a batch, any 64-bit numbers, to 0, 1, 2, …: the
 *          indexes of a trainer's arrays, and of the rows that it pulls.
 *
 *     psd_localizer_run(localizer, psd_samples_keys(batch),
 *                       psd_samples_entry_count(batch), err);
 *     psd_select_rows(…, psd_localizer_keys(localizer),
 *                     psd_localizer_count(localizer));
 *     … model[psd_localizer_ids(localizer)[entry]] …
 *
 * Shape    keys ascend, each once; ids are their indexes:
 *          keys[ids[e]] is the key of entry e. The result is the same with any
 *          number of threads.
 * Units    36 bytes of memory for each entry of the largest batch, and 16 for
 *          each key of it
 */
typedef struct psd_localizer psd_localizer_t;

/* The id of an entry whose key was left out. */
#define PSD_ID_NONE UINT32_MAX

/* n_threads 1 .. 1024, including the caller's. Errors: PSD_INVALID; PSD_IO a
 * thread cannot be started; PSD_NOMEM. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_localizer_new(uint32_t n_threads,
                                                         psd_localizer_t **ret_localizer,
                                                         psd_error_t *err);
PSD_EXPORT void psd_localizer_destroy(psd_localizer_t **self_p);
/*
 * From now on a key is left out until min_count (1 .. 255) entries had it, in
 * this batch and in the batches before it since this call. A count-min sketch
 * of n_cells (>= 1) bytes counts the entries. It never keeps a key out too
 * long. With a probability of 2 % it overcounts a key by e / (n_cells / 4) of
 * all entries or more, and lets it in too early.
 * Errors: PSD_INVALID; PSD_NOMEM: nothing changes.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_localizer_set_min_count(psd_localizer_t *self,
                                                                   uint32_t min_count,
                                                                   uint64_t n_cells,
                                                                   psd_error_t *err);
/* Maps the n (< 2^32 - 1) keys of a batch; the results of the last run are
 * gone. Errors: PSD_LIMIT n; PSD_NOMEM; then nothing is found or counted. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_localizer_run(psd_localizer_t *self,
                                                         const uint64_t *keys, size_t n,
                                                         psd_error_t *err);
/* The number of keys that were found and are not left out. */
PSD_EXPORT size_t psd_localizer_count(const psd_localizer_t *self);
/* These keys; borrowed until the next run, as the arrays below. */
PSD_EXPORT const uint64_t *psd_localizer_keys(const psd_localizer_t *self);
/* The number of entries of each key in the batch. */
PSD_EXPORT const uint32_t *psd_localizer_counts(const psd_localizer_t *self);
/* The key's index for each entry of the batch; PSD_ID_NONE: left out. */
PSD_EXPORT const uint32_t *psd_localizer_ids(const psd_localizer_t *self);

/* ---- writers ---- */

typedef struct psd_writer psd_writer_t;

/*
 * Writes samples to a file. The file appears when psd_writer_commit renames it
 * into place. An existing file keeps its permissions, and does not change until
 * then.
 *
 * path    in  a name that ends with .gz or .zst: compressed. "-", or another
 *             name of standard output: samples are written there at once, as
 *             into anything that is not a file (a pipe, a device). Format
 *             "binary": the prefix of the names of its files
 * format  in  "libsvm", "ps", "vw", "csv", "lda-c", "binary", "uci", "proto",
 *              "proto-instance", "proto-input"
 *
 * Errors: PSD_INVALID no such format, or one that can only be read; a
 * directory; a name that ends with .xz, .bz2, .zip or .lz4; binary files that
 * exist already; PSD_IO; PSD_NOMEM.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_writer_open(const char *path, const char *format,
                                                       psd_writer_t **ret_writer, psd_error_t *err);
/* true: weights, initial predictions, queries, tags, labels and ids of groups
 * are dropped where the format has no place for them. false, the default: the
 * writer refuses a sample that has some. */
PSD_EXPORT void psd_writer_set_lossy(psd_writer_t *self, bool lossy);
/* Errors: PSD_INVALID a sample that the format cannot hold, naming it: those
 * before it are written, and the writer can go on; PSD_IO, PSD_NOMEM: the
 * writer can only be closed. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_writer_write(psd_writer_t *self,
                                                        const psd_samples_t *samples,
                                                        psd_error_t *err);
/* Flushes the file and renames it into place. Errors: PSD_IO. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_writer_commit(psd_writer_t *self, psd_error_t *err);
/* The temporary name of the file until the commit, so that an interrupted
 * program can remove it; "": none. Borrowed. */
PSD_EXPORT const char *psd_writer_beside(const psd_writer_t *self);
/* Closes the writer; removes a file that was not committed. */
PSD_EXPORT void psd_writer_close(psd_writer_t **self_p);

#ifdef __cplusplus
}
#endif

#endif
