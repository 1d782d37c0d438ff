/* SPDX-License-Identifier: Apache-2.0 */
/* The words that ps_table_doc's writer and reader share; for this room only. */
#ifndef PS_PROTOCOL_TABLE_DOC_WORDS_H
#define PS_PROTOCOL_TABLE_DOC_WORDS_H

#include "model/tables/table.h"

/* The JSON keys of an initialiser's a and b; NULL when it has none. */
const char *ps_init_key_a(ps_init_kind_t kind);
const char *ps_init_key_b(ps_init_kind_t kind);
/* "range", "hash", "list"; "?" */
const char *ps_partition_by_name(ps_partition_by_t value);
#endif
