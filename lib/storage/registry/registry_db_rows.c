/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the registry in SQLite: statements made of the lists of
 * registry_fields.def, and values put into their columns and read back. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "storage/registry/registry_db_impl.h"

#define COLUMNS(NAME, table, type, n_keys, n_of, n_cut) \
    static const ps_field_t NAME##_columns[] = {PS_ROW_##NAME##_FIELDS(PS_FIELD_ROW, type)};
PS_ROW_MAP(COLUMNS)
#undef COLUMNS

typedef struct table {
    const char *name;
    const ps_field_t *columns; /* the keys first */
    size_t n_columns;
    size_t n_keys;
    size_t n_of;  /* keys of what a row belongs to */
    size_t n_cut; /* keys by which rows are removed; 0: they go with others */
} table_t;

#define TABLE(NAME, table, type, keys, of, cut) \
    {#table, NAME##_columns, sizeof NAME##_columns / sizeof *NAME##_columns, keys, of, cut},
static const table_t tables[PS_ROW_COUNT] = {PS_ROW_MAP(TABLE)};
#undef TABLE

/* ---- statements ---- */

/* The first n columns, each as `format` has it, with `between`. */
static bool print_columns(ps_buffer_t *sql, const table_t *table, size_t first, size_t n,
                          const char *format, const char *between)
{
    bool ok = true;

    for (size_t i = first; i < n && ok; i++) {
        const char *name = table->columns[i].name;

        ok = (i == first || ps_buffer_print(sql, "%s", between));
        for (const char *at = format; *at != '\0' && ok; at++) {
            ok = *at == '@' ? ps_buffer_print(sql, "%s", name) : ps_buffer_append(sql, at, 1);
        }
    }
    return ok;
}

static bool print_put(ps_buffer_t *sql, const table_t *table)
{
    size_t n = table->n_columns;
    bool ok = ps_buffer_print(sql, "INSERT INTO %s(", table->name) &&
              print_columns(sql, table, 0, n, "@", ", ") && ps_buffer_print(sql, ") VALUES(") &&
              print_columns(sql, table, 0, n, "?", ", ") &&
              ps_buffer_print(sql, ") ON CONFLICT(") &&
              print_columns(sql, table, 0, table->n_keys, "@", ", ");

    if (n == table->n_keys) {
        return ok && ps_buffer_print(sql, ") DO NOTHING");
    }
    return ok && ps_buffer_print(sql, ") DO UPDATE SET ") &&
           print_columns(sql, table, table->n_keys, n, "@ = excluded.@", ", ");
}

static bool print_where(ps_buffer_t *sql, const table_t *table, size_t n)
{
    return n == 0 ||
           (ps_buffer_print(sql, " WHERE ") && print_columns(sql, table, 0, n, "@ = ?", " AND "));
}

static bool print_all(ps_buffer_t *sql, const table_t *table)
{
    return ps_buffer_print(sql, "SELECT ") &&
           print_columns(sql, table, 0, table->n_columns, "@", ", ") &&
           ps_buffer_print(sql, " FROM %s", table->name) && print_where(sql, table, table->n_of) &&
           ps_buffer_print(sql, " ORDER BY ") &&
           print_columns(sql, table, 0, table->n_keys, "@", ", ");
}

static bool print_use(ps_buffer_t *sql, const table_t *table, ps_rows_use_t use)
{
    if (use == PS_ROWS_PUT) {
        return print_put(sql, table);
    }
    if (use == PS_ROWS_ALL) {
        return print_all(sql, table);
    }
    return ps_buffer_print(sql, "DELETE FROM %s", table->name) &&
           print_where(sql, table, table->n_cut);
}

static psd_status_t prepare(ps_registry_db_t *self, ps_registry_row_t row, ps_rows_use_t use,
                            psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t sql = {0};
    const table_t *table = &tables[row];
    int code = SQLITE_OK;

    if (use == PS_ROWS_CUT && table->n_cut == 0) {
        return PSD_OK;
    }
    if (!print_use(&sql, table, use)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a statement");
    }
    code = sqlite3_prepare_v3(self->db, (const char *)sql.data, (int)sql.size,
                              SQLITE_PREPARE_PERSISTENT, &self->rows[row][use], NULL);
    return code == SQLITE_OK ? PSD_OK : ps_sql_error(self->db, code, err);
}

psd_status_t ps_registry_rows_prepare(ps_registry_db_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (int i = 0; i < PS_ROW_COUNT * PS_ROWS_USE_COUNT && rc == PSD_OK; i++) {
        rc = prepare(self, (ps_registry_row_t)(i / PS_ROWS_USE_COUNT),
                     (ps_rows_use_t)(i % PS_ROWS_USE_COUNT), err);
    }
    return rc;
}

/* ---- storing ---- */

/* false: no memory. */
static bool put_spelling(ps_query_t *query, const ps_field_t *field, const void *value)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    if (!ps_field_spell(field, value, &text) || !ps_buffer_append(&text, "", 1)) {
        return false;
    }
    ps_query_put_copy(query, (const char *)text.data);
    return true;
}

static bool put_field(ps_query_t *query, const ps_field_t *field, const void *value)
{
    const void *at = (const uint8_t *)value + field->at;

    switch ((int)field->type) {
    case PS_AS_U32:
        ps_query_put_u64(query, ps_load_u32(at));
        return true;
    case PS_AS_U64:
        ps_query_put_u64(query, ps_load_u64(at));
        return true;
    case PS_AS_I32:
        ps_query_put_i64(query, ps_load_i32(at));
        return true;
    case PS_AS_BOOL:
        ps_query_put_u64(query, ps_load_u8(at));
        return true;
    case PS_AS_TEXT:
        ps_query_put_text(query, at);
        return true;
    case PS_AS_ID:
        ps_query_put_blob(query, at, PS_ID_SIZE);
        return true;
    default:
        if (ps_field_is_spelling(field)) {
            return put_spelling(query, field, value);
        }
        ps_query_put_text(query, ps_field_word(field, value));
        return true;
    }
}

static psd_status_t put(void *context, ps_registry_row_t row, const void *value, psd_error_t *err)
{
    ps_registry_db_t *self = context;
    const table_t *table = &tables[row];
    ps_query_t query = ps_query_begin(self->rows[row][PS_ROWS_PUT], table->name);
    bool ok = true;

    for (size_t i = 0; i < table->n_columns && ok; i++) {
        ok = put_field(&query, &table->columns[i], value);
    }
    if (!ok) {
        ps_query_reset(&query);
        return psd_error_set(err, PSD_NOMEM, "no memory for a row of %s", table->name);
    }
    return ps_query_run(&query, err);
}

static psd_status_t cut(void *context, ps_registry_row_t row, const uint64_t *keys,
                        psd_error_t *err)
{
    ps_registry_db_t *self = context;
    const table_t *table = &tables[row];
    ps_query_t query = ps_query_begin(self->rows[row][PS_ROWS_CUT], table->name);

    assert(table->n_cut > 0);
    for (size_t i = 0; i < table->n_cut; i++) {
        ps_query_put_u64(&query, keys[i]);
    }
    return ps_query_run(&query, err);
}

psd_status_t ps_registry_rows_store(ps_registry_db_t *self, const ps_registry_t *registry,
                                    psd_error_t *err)
{
    const ps_row_sink_t sink = {.put = put, .cut = cut, .context = self};

    return ps_registry_rows(registry, &sink, err);
}

/* ---- loading ---- */

ps_query_t ps_registry_rows_begin(ps_registry_db_t *self, ps_registry_row_t row, uint64_t key,
                                  uint64_t key_2)
{
    const table_t *table = &tables[row];
    ps_query_t query = ps_query_begin(self->rows[row][PS_ROWS_ALL], table->name);

    if (table->n_of > 0) {
        ps_query_put_u64(&query, key);
    }
    if (table->n_of > 1) {
        ps_query_put_u64(&query, key_2);
    }
    return query;
}

static psd_status_t read_spelling(ps_query_t *query, const ps_field_t *field, void *value,
                                  psd_error_t *err)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    const char *text = ps_query_text(query, ps_field_spelling_max(field));
    char place[PS_PLACE_SIZE];
    psd_status_t rc = ps_query_check(query, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = why == NULL ? PSD_NOMEM : ps_field_read_spelling(field, value, text, why);
    if (rc == PSD_OK || rc == PSD_NOMEM) {
        return rc == PSD_OK ? rc : psd_error_set(err, rc, "no memory");
    }
    ps_query_place(query, place);
    return psd_error_set(err, PSD_DAMAGED, "%s: %s: %s", place, field->name, psd_error_text(why));
}

static psd_status_t read_word(ps_query_t *query, const ps_field_t *field, void *value,
                              psd_error_t *err)
{
    const char *word = ps_query_text(query, PS_FIELD_WORD_MAX);
    char place[PS_PLACE_SIZE];
    psd_status_t rc = ps_query_check(query, err);

    if (rc != PSD_OK || ps_field_set_word(field, value, word)) {
        return rc;
    }
    ps_query_place(query, place);
    return psd_error_set(err, PSD_DAMAGED, "%s: %s is \"%s\"", place, field->name, word);
}

static psd_status_t read_field(ps_query_t *query, const ps_field_t *field, void *value,
                               psd_error_t *err)
{
    void *at = (uint8_t *)value + field->at;

    switch ((int)field->type) {
    case PS_AS_U32:
        ps_store_u32(at, ps_query_u32(query));
        return PSD_OK;
    case PS_AS_U64:
        ps_store_u64(at, ps_query_u64(query));
        return PSD_OK;
    case PS_AS_I32:
        ps_store_i32(at, ps_query_i32(query));
        return PSD_OK;
    case PS_AS_BOOL:
        ps_store_u8(at, ps_query_bool(query) ? 1 : 0);
        return PSD_OK;
    case PS_AS_TEXT:
        ps_query_copy_text(query, at, field->size);
        return PSD_OK;
    case PS_AS_ID:
        ps_query_copy_blob(query, at, PS_ID_SIZE);
        return PSD_OK;
    default:
        return ps_field_is_spelling(field) ? read_spelling(query, field, value, err)
                                           : read_word(query, field, value, err);
    }
}

psd_status_t ps_registry_rows_read(ps_query_t *query, ps_registry_row_t row, void *value,
                                   psd_error_t *err)
{
    const table_t *table = &tables[row];
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < table->n_columns && rc == PSD_OK; i++) {
        rc = read_field(query, &table->columns[i], value, err);
    }
    return rc == PSD_OK ? ps_query_check(query, err) : rc;
}
