/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/model/tables: what a table is
 *
 * It is       The spec of a table as a value and as text, the list of updaters,
 *             which rows and columns a partition holds.
 * It uses     lib/base.
 * It ignores  Rows, loops, memory, and where partitions are. updaters checks a
 *             spec (table_check.c).
 * Start at    table.h, updaters.def, partition.h.
 */
/*
 * ps_table_spec - the definition of a table: the words of `table create`,
 * checked
 *
 * What     A plain value. Everything that decides the layout of a row and which
 *          partition holds it; the same on every node and in every client.
 * Owner    The caller; only `boundaries` is allocated (ps_table_spec_done frees
 *          it).
 */
#ifndef PS_MODEL_TABLE_H
#define PS_MODEL_TABLE_H

#include "base/slice.h"

#define PS_NAME_MAX 63
#define PS_TABLE_ROWS_MAX (UINT64_C(1) << 40) /* range keys */
#define PS_TABLE_COLS_MAX (UINT32_C(1) << 31) /* per row */
#define PS_TABLE_PARTITIONS_MAX UINT32_C(4096)

typedef enum ps_row_format {
    PS_ROW_DENSE = 1,  /* every row an array of all columns */
    PS_ROW_SPARSE = 2, /* every row a column -> value map */
    PS_ROW_AUTO = 3    /* a new row has the form of its first push; a sparse one turns dense when
                          that is smaller */
} ps_row_format_t;

typedef enum ps_keys {
    PS_KEYS_RANGE = 1, /* rows 0 .. n_rows - 1, all present */
    PS_KEYS_HASH = 2   /* any u64; a row appears with its first push */
} ps_keys_t;

/* The numbers are fixed: records and documents contain them. */
typedef enum ps_updater_kind {
#define UPDATER(NAME, number, ...) PS_UPDATER_##NAME = number,
#include "model/tables/updaters.def"
    PS_UPDATER_PLUGIN = 13
} ps_updater_kind_t;
#define PS_UPDATER_KINDS 32 /* all numbers are below */

#define PS_PLUGIN_TEXT_SIZE 128 /* a plug-in's parameters and '\0' */

/* model/tables/updaters.def says which settings each updater uses and what is
 * allowed. */
typedef struct ps_updater_spec {
    ps_updater_kind_t kind;
#define SETTING(name, meaning) double name;
#include "model/tables/updaters.def"
    char plugin[PS_NAME_MAX + 1];         /* its name; PLUGIN only */
    char parameters[PS_PLUGIN_TEXT_SIZE]; /* for it; PLUGIN only */
    const struct psd_updater *functions;  /* of the plug-in, borrowed; NULL if none is loaded: see
                                             model/updaters/plugin.h */
} ps_updater_spec_t;

typedef enum ps_init_kind {
    PS_INIT_ZERO = 1,
    PS_INIT_CONSTANT = 2, /* a */
    PS_INIT_UNIFORM = 3,  /* in [a, b) */
    PS_INIT_NORMAL = 4    /* mean a, standard deviation b */
} ps_init_kind_t;

typedef struct ps_init_spec {
    ps_init_kind_t kind;
    double a;
    double b;
} ps_init_spec_t;

typedef enum ps_partition_by {
    PS_PARTITION_BY_RANGE = 1, /* equal ranges of rows (or of the u64 space) */
    PS_PARTITION_BY_HASH = 2,  /* ps_hash_u64(row) folded onto the partitions */
    PS_PARTITION_BY_LIST = 3   /* boundaries: the first row of each partition
                                  but the first, ascending */
} ps_partition_by_t;

/* The default partitioning of a table with such keys: hash keys by hash. Ids
 * are usually small numbers, and all of those lie in the first range of the u64
 * space. */
ps_partition_by_t ps_partition_by_default(ps_keys_t keys);

typedef enum ps_ack {
    PS_ACK_DEFAULT = 0, /* in a request: the table's level */
    PS_ACK_MEMORY = 1,
    PS_ACK_REPLICA = 2,
    PS_ACK_DISK = 3
} ps_ack_t;

/* What becomes of the deltas that workers push in one clock of a job with max_delay 0. In other
 * jobs, and without a job, each push is applied by itself. */
typedef enum ps_combine {
    PS_COMBINE_EACH = 1,      /* each push runs the updater, in the order of the workers */
    PS_COMBINE_CLOCK_SUM = 2, /* their sum (model/combine/combine.h) runs it once */
    PS_COMBINE_CLOCK_MEAN = 3 /* as the sum, divided by the number of workers in that clock */
} ps_combine_t;

#define PS_TABLE_FILTER_SIZE 96 /* bytes of the longest filter, with '\0' */

typedef struct ps_table_spec {
    char name[PS_NAME_MAX + 1];
    uint64_t n_rows; /* RANGE keys: 1 .. PS_TABLE_ROWS_MAX; HASH: 0 */
    uint32_t n_cols; /* 1 .. PS_TABLE_COLS_MAX */
    ps_type_t type;
    ps_row_format_t row_format;
    ps_keys_t keys;
    ps_updater_spec_t updater;
    ps_init_spec_t init;
    uint64_t seed;
    uint32_t n_partitions; /* row slices x column slices; 0 in a request: the
                              cluster chooses */
    uint32_t n_col_slices; /* > 1 splits wide rows by columns; divides
                              n_partitions; 0 in a request: chosen */
    ps_partition_by_t partition_by;
    uint64_t *boundaries;              /* owned; n_boundaries rows; LIST only */
    uint32_t n_boundaries;             /* LIST: row slices - 1 */
    uint32_t replicas;                 /* wanted copies, >= 1 */
    ps_ack_t ack;                      /* MEMORY, REPLICA or DISK */
    bool allow_nonfinite;              /* NaN and infinite deltas are accepted */
    char filter[PS_TABLE_FILTER_SIZE]; /* for clients' calls that name none; "" for none;
                                          protocol/facts/table_filter.h */
    bool versions;                     /* a row stores the version of its last change, 8 bytes */
    ps_combine_t combine;
} ps_table_spec_t;

/* A valid spec except for name and n_rows: f32, 1 column, dense, range keys and
 * partitions, add, zero, 1 replica, memory, combine each; n_partitions and n_col_slices 0. */
void ps_table_spec_init(ps_table_spec_t *self);
/* Frees boundaries and zeroes the struct; fits PSD_AUTO. */
void ps_table_spec_done(ps_table_spec_t *self);
/* Deep copy. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_table_spec_copy(const ps_table_spec_t *self,
                                               ps_table_spec_t *ret_spec, psd_error_t *err);
/* Fills in what the cluster chooses: n_col_slices (as many as keep a dense row
 * slice at or under 16 MiB, and divide n_partitions), n_partitions
 * (default_partitions row slices, but not more than rows), so that
 * ps_table_spec_check passes. */
void ps_table_spec_settle(ps_table_spec_t *self, uint32_t default_partitions);
/*
 * Checks every rule: bounds above; integer types take add, assign, min, max and
 * plug-ins only, and whole-number initial values of their range; sparse and
 * auto rows begin at zero; ftrl begins at zero; dcasgd combines each;
 * n_partitions is settled and divisible; boundaries ascend strictly, lie inside the rows and
 * match n_partitions.
 * Errors: PSD_INVALID, naming field, value and what is allowed.
 */
PSD_MUST_CHECK psd_status_t ps_table_spec_check(const ps_table_spec_t *self, psd_error_t *err);

/*
 * The words of the command line and the JSON documents. Each parse leaves
 * *ret alone on error: PSD_INVALID, naming the text and what is allowed.
 *   row format  dense | sparse | auto          keys  range | hash
 *   ack         memory | replica | disk
 *   combine     each | clock-sum | clock-mean
 *   updater     add | assign | min | max | sgd[:alpha=F,l1=F,l2=F] | … |
 *               plugin:NAME[:TEXT]   (model/tables/updaters.def)
 *   init        zero | constant:V | uniform:LOW,HIGH | normal:MEAN,STD
 *   partition   range | hash | list:ROW,ROW,…
 */
PSD_MUST_CHECK psd_status_t ps_row_format_parse(const char *text, ps_row_format_t *ret,
                                                psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_keys_parse(const char *text, ps_keys_t *ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_ack_parse(const char *text, ps_ack_t *ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_combine_parse(const char *text, ps_combine_t *ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_updater_spec_parse(const char *text, ps_updater_spec_t *ret,
                                                  psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_init_spec_parse(const char *text, ps_init_spec_t *ret,
                                               psd_error_t *err);
/* Sets partition_by, boundaries and n_boundaries of spec. */
PSD_MUST_CHECK psd_status_t ps_partition_by_parse(const char *text, ps_table_spec_t *spec,
                                                  psd_error_t *err);
/* The words of the numbers; "?" when the number is unknown. The numbers of
 * updater and init are printed so that they parse back to the same bits. */
const char *ps_row_format_name(ps_row_format_t value);
const char *ps_keys_name(ps_keys_t value);
const char *ps_ack_name(ps_ack_t value);
const char *ps_combine_name(ps_combine_t value);
const char *ps_updater_name(ps_updater_kind_t value);
const char *ps_init_name(ps_init_kind_t value);
#define PS_SPEC_TEXT_SIZE 256
void ps_updater_spec_format(const ps_updater_spec_t *self, char ret[PS_SPEC_TEXT_SIZE]);
void ps_init_spec_format(const ps_init_spec_t *self, char ret[PS_SPEC_TEXT_SIZE]);
/* Appends "range", "hash" or "list:…". false: no memory. */
PSD_MUST_CHECK bool ps_partition_by_format(const ps_table_spec_t *self, ps_buffer_t *buffer);
#endif
