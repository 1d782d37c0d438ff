/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_doc - a JSON document with checked access
 *
 * What     The body of control messages. Wraps jansson and names what is wrong:
 *          `table_create.cols is 0; allowed: 1..2147483648`.
 * Owner    ps_doc_new and ps_doc_parse give a document to the caller
 *          (ps_doc_destroy). Every other ps_doc_t pointer is borrowed from the
 *          document that contains it.
 * Threads  Confined to one thread.
 */
#ifndef PS_WIRE_DOC_H
#define PS_WIRE_DOC_H

#include "base/bytes.h"

typedef struct ps_doc ps_doc_t;

#define PS_DOC_BYTES_MAX (UINT32_C(16) << 20) /* of one document's text */
#define PS_DOC_DEPTH_MAX 32

/* An empty object / array; NULL when there is no memory. */
ps_doc_t *ps_doc_new(void);
ps_doc_t *ps_doc_new_array(void);
void ps_doc_destroy(ps_doc_t **self_p);
/* Parses one object. Refuses duplicate keys, a depth over the limit, text that
 * is not UTF-8 and bytes after the end. Errors: PSD_PROTO with line and column,
 * PSD_LIMIT, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_doc_parse(ps_bytes_t text, ps_doc_t **ret_doc, psd_error_t *err);
/* Appends the text, compact, keys in insertion order. false: no memory. */
PSD_MUST_CHECK bool ps_doc_print(const ps_doc_t *self, ps_buffer_t *buffer);

/*
 * Reading. `key` is looked up in an object. Errors name the path of keys from
 * the document's root. A missing key or a wrong type is PSD_PROTO, a value out
 * of range PSD_INVALID. *ret is set on PSD_OK only. The _or forms return a
 * default when the key is missing (never when its value is wrong).
 */
bool ps_doc_has(const ps_doc_t *self, const char *key);
PSD_MUST_CHECK psd_status_t ps_doc_get_u64(const ps_doc_t *self, const char *key, uint64_t min,
                                           uint64_t max, uint64_t *ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_get_u64_or(const ps_doc_t *self, const char *key, uint64_t min,
                                              uint64_t max, uint64_t fallback, uint64_t *ret,
                                              psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_get_i64(const ps_doc_t *self, const char *key, int64_t min,
                                           int64_t max, int64_t *ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_get_f64(const ps_doc_t *self, const char *key, double *ret,
                                           psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_get_bool(const ps_doc_t *self, const char *key, bool *ret,
                                            psd_error_t *err);
/* Unchanged when the key is absent. */
PSD_MUST_CHECK psd_status_t ps_doc_get_switch(const ps_doc_t *self, const char *key, bool *ret,
                                              psd_error_t *err);
/* Borrowed text, without embedded '\0', at most max_bytes long. */
PSD_MUST_CHECK psd_status_t ps_doc_get_text(const ps_doc_t *self, const char *key, size_t max_bytes,
                                            const char **ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_get_text_or(const ps_doc_t *self, const char *key,
                                               size_t max_bytes, const char *fallback,
                                               const char **ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_get_id(const ps_doc_t *self, const char *key, ps_id_t *ret,
                                          psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_get_object(const ps_doc_t *self, const char *key,
                                              const ps_doc_t **ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_get_array(const ps_doc_t *self, const char *key,
                                             size_t max_count, const ps_doc_t **ret,
                                             psd_error_t *err);
/* Items of an array; 0 for anything else. */
size_t ps_doc_count(const ps_doc_t *self);
/* Item i as an object / a number; i < count. */
PSD_MUST_CHECK psd_status_t ps_doc_at_object(const ps_doc_t *self, size_t i, const ps_doc_t **ret,
                                             psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_at_u64(const ps_doc_t *self, size_t i, uint64_t *ret,
                                          psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_doc_at_text(const ps_doc_t *self, size_t i, size_t max_bytes,
                                           const char **ret, psd_error_t *err);

/* Writing. false: no memory (or text that is not UTF-8); the key is then not
 * set. u64 above 2^63-1 is written as a string of digits, which ps_doc_get_u64
 * and ps_doc_at_u64 read too. f64 numbers parse back to the same bits; NaN and
 * infinities are refused. */
PSD_MUST_CHECK bool ps_doc_set_u64(ps_doc_t *self, const char *key, uint64_t value);
PSD_MUST_CHECK bool ps_doc_set_i64(ps_doc_t *self, const char *key, int64_t value);
PSD_MUST_CHECK bool ps_doc_set_f64(ps_doc_t *self, const char *key, double value);
PSD_MUST_CHECK bool ps_doc_set_bool(ps_doc_t *self, const char *key, bool value);
PSD_MUST_CHECK bool ps_doc_set_text(ps_doc_t *self, const char *key, const char *value);
PSD_MUST_CHECK bool ps_doc_set_id(ps_doc_t *self, const char *key, const ps_id_t *value);
PSD_MUST_CHECK bool ps_doc_set_null(ps_doc_t *self, const char *key);
/* A fresh object / array under key, borrowed; NULL when there is no memory. */
ps_doc_t *ps_doc_add_object(ps_doc_t *self, const char *key);
ps_doc_t *ps_doc_add_array(ps_doc_t *self, const char *key);
/* Appends to an array. */
PSD_MUST_CHECK bool ps_doc_append_u64(ps_doc_t *self, uint64_t value);
PSD_MUST_CHECK bool ps_doc_append_text(ps_doc_t *self, const char *value);
ps_doc_t *ps_doc_append_object(ps_doc_t *self);
#endif
