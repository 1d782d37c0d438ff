/* SPDX-License-Identifier: Apache-2.0 */
/* base/slice.h: payloads and value types. */
#include "base/slice.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

static int n_released;

static void count_release(void *owner)
{
    int *counter = owner;

    (*counter)++;
}

static ps_bytes_t bytes_of(const char *text)
{
    return (ps_bytes_t){(const uint8_t *)text, strlen(text)};
}

Test(payload, borrows_its_parts_and_releases_the_owner_once)
{
    ps_bytes_t keys = bytes_of("keyskeys");
    ps_bytes_t index = bytes_of("indx");
    ps_bytes_t values = bytes_of("values");
    ps_payload_t *self = ps_payload_new(keys, index, values, &n_released, count_release);

    cr_assert_not_null(self);
    cr_assert_eq(self->keys.data, keys.data);
    cr_assert_eq(self->index.data, index.data);
    cr_assert_eq(self->n_spans, 1);
    cr_assert_eq(self->spans[0].data, values.data);
    cr_assert_eq(ps_payload_size(self), 8 + 4 + 6);
    cr_assert_eq(n_released, 0);
    ps_payload_destroy(&self);
    cr_assert_null(self);
    cr_assert_eq(n_released, 1);
}

Test(payload, without_values_has_no_span)
{
    ps_bytes_t none = {0};
    ps_payload_t *self = ps_payload_new(none, none, none, NULL, NULL);

    cr_assert_not_null(self);
    cr_assert_eq(self->n_spans, 0);
    cr_assert_eq(ps_payload_size(self), 0);
    ps_payload_destroy(&self);
}

/* Who keeps shared bytes keeps a copy, in one piece; other bytes are held. */
Test(payload, is_owned_by_holding_or_by_copying)
{
    uint8_t values[] = "values";
    ps_bytes_t spans[2] = {{values, 4}, {values + 4, 2}};
    ps_payload_t *self =
        ps_payload_new(bytes_of("keyskeys"), bytes_of("indx"), spans[0], NULL, NULL);
    ps_payload_t *own = NULL;

    cr_assert_not_null(self);
    self->spans = ps_alloc(2, sizeof *self->spans);
    cr_assert_not_null(self->spans);
    memcpy(self->spans, spans, sizeof spans);
    self->n_spans = 2;
    own = ps_payload_own(self);
    cr_assert_eq(own, self);
    ps_payload_destroy(&own);
    self->shared = true;
    fail_alloc_at(0);
    cr_assert_null(ps_payload_own(self));
    fail_alloc_off();
    own = ps_payload_own(self);
    cr_assert_neq(own, self);
    memset(values, 'x', sizeof values);
    cr_assert_not(own->shared);
    cr_assert_eq(own->n_spans, 1);
    cr_assert_eq(own->spans[0].size, 6);
    cr_assert_eq(memcmp(own->spans[0].data, "values", 6), 0);
    cr_assert_eq(memcmp(own->keys.data, "keyskeys", 8), 0);
    cr_assert_eq(memcmp(own->index.data, "indx", 4), 0);
    ps_payload_destroy(&own);
    ps_payload_destroy(&self);
}

Test(payload, last_holder_frees)
{
    ps_payload_t *first =
        ps_payload_new((ps_bytes_t){0}, (ps_bytes_t){0}, bytes_of("v"), &n_released, count_release);
    ps_payload_t *second = NULL;

    cr_assert_not_null(first);
    second = ps_payload_keep(first);
    cr_assert_eq(second, first);
    ps_payload_destroy(&first);
    cr_assert_null(first);
    cr_assert_eq(n_released, 0);
    cr_assert_eq(second->spans[0].size, 1);
    ps_payload_destroy(&second);
    cr_assert_eq(n_released, 1);
}

Test(payload, destroy_and_size_take_null)
{
    ps_payload_t *none = NULL;

    ps_payload_destroy(&none);
    ps_payload_destroy(NULL);
    cr_assert_eq(ps_payload_size(NULL), 0);
}

Test(payload, copy_owns_all_three_parts)
{
    char source[] = "keyskeysindxvalues";
    const uint8_t *at = (const uint8_t *)source;
    ps_payload_t *self =
        ps_payload_copy((ps_bytes_t){at, 8}, (ps_bytes_t){at + 8, 4}, (ps_bytes_t){at + 12, 6});

    cr_assert_not_null(self);
    memset(source, 'x', sizeof source);
    cr_assert_arr_eq(self->keys.data, "keyskeys", 8);
    cr_assert_arr_eq(self->index.data, "indx", 4);
    cr_assert_eq(self->n_spans, 1);
    cr_assert_arr_eq(self->spans[0].data, "values", 6);
    cr_assert_eq(ps_payload_size(self), 18);
    ps_payload_destroy(&self);
}

Test(payload, copy_of_nothing_is_a_payload)
{
    ps_bytes_t none = {0};
    ps_payload_t *self = ps_payload_copy(none, none, none);

    cr_assert_not_null(self);
    cr_assert_eq(ps_payload_size(self), 0);
    ps_payload_destroy(&self);
}

Test(payload, copy_of_sizes_that_do_not_add_up_gives_null)
{
    ps_bytes_t big = {(const uint8_t *)"x", SIZE_MAX};
    ps_bytes_t one = {(const uint8_t *)"x", 1};

    cr_assert_null(ps_payload_copy(big, one, one));
    cr_assert_null(ps_payload_copy(one, one, big));
}

static psd_status_t new_payload(void *fixture)
{
    ps_bytes_t values = bytes_of("values");
    ps_payload_t *self = ps_payload_new(values, values, values, fixture, count_release);

    if (self == NULL) {
        /* The owner stays the caller's. */
        cr_assert_eq(*(int *)fixture, 0);
        return PSD_NOMEM;
    }
    ps_payload_destroy(&self);
    return PSD_OK;
}

static psd_status_t copy_payload(void *fixture)
{
    ps_bytes_t values = bytes_of("values");
    ps_payload_t *self = ps_payload_copy(values, values, values);

    (void)fixture;
    if (self == NULL) {
        return PSD_NOMEM;
    }
    ps_payload_destroy(&self);
    return PSD_OK;
}

Test(payload, no_memory_gives_null_and_leaks_nothing)
{
    int released = 0;
    const char *complaint = fail_alloc_sweep(new_payload, &released);

    cr_assert_null(complaint, "%s", complaint);
    complaint = fail_alloc_sweep(copy_payload, NULL);
    cr_assert_null(complaint, "%s", complaint);
}

Test(slice, row_of_a_list_is_read_at_any_alignment)
{
    uint8_t block[1 + 2 * 8] = {0};
    ps_payload_t payload = {.keys = {block + 1, 16}};
    ps_slice_t slice = {.rows = PS_ROWS_LIST, .n_rows = 2};

    block[1] = 7;
    block[9] = 9;
    cr_assert_eq(ps_slice_row(&slice, &payload, 0), 7);
    cr_assert_eq(ps_slice_row(&slice, &payload, 1), 9);
}

Test(slice, row_of_a_range_counts_up)
{
    ps_payload_t payload = {0};
    ps_slice_t slice = {.rows = PS_ROWS_RANGE, .n_rows = 3, .first_row = 40};

    cr_assert_eq(ps_slice_row(&slice, &payload, 0), 40);
    cr_assert_eq(ps_slice_row(&slice, &payload, 2), 42);
}

Test(type, names_and_sizes)
{
    static const struct {
        ps_type_t type;
        const char *name;
        size_t size;
    } wanted[] = {{PS_TYPE_I32, "i32", 4},
                  {PS_TYPE_I64, "i64", 8},
                  {PS_TYPE_F32, "f32", 4},
                  {PS_TYPE_F64, "f64", 8}};

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        ps_type_t type = (ps_type_t)0;

        cr_assert_str_eq(ps_type_name(wanted[i].type), wanted[i].name);
        cr_assert_eq(ps_type_size(wanted[i].type), wanted[i].size);
        cr_assert(ps_type_parse(wanted[i].name, &type));
        cr_assert_eq(type, wanted[i].type);
    }
}

Test(type, numbers_that_travel_never_change)
{
    cr_assert_eq((int)PS_TYPE_I32, 1);
    cr_assert_eq((int)PS_TYPE_I64, 2);
    cr_assert_eq((int)PS_TYPE_F32, 3);
    cr_assert_eq((int)PS_TYPE_F64, 4);
    cr_assert_eq((int)PS_ROWS_RANGE, 1);
    cr_assert_eq((int)PS_LAYOUT_SPARSE, 1);
    cr_assert_eq((int)PS_COLS_RANGE, 1);
    cr_assert_eq((int)PS_COLS_LIST, 2);
}

Test(type, what_is_no_type_is_refused)
{
    ps_type_t type = PS_TYPE_F32;

    cr_assert_str_eq(ps_type_name((ps_type_t)9), "?");
    cr_assert_eq(ps_type_size((ps_type_t)0), 0);
    cr_assert_not(ps_type_parse("", &type));
    cr_assert_not(ps_type_parse("?", &type));
    cr_assert_not(ps_type_parse("f16", &type));
    cr_assert_not(ps_type_parse("F32", &type));
    cr_assert_not(ps_type_parse("f32 ", &type));
    cr_assert_eq(type, PS_TYPE_F32);
}
