/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the three schemas, by protobuf-c. */
#include "data/records/proto_message.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "data/proto/example.pb-c.h"
#include "data/proto/input.pb-c.h"
#include "data/proto/instance.pb-c.h"
#include "data/records/proto_memory.h"

#define MERGED_GROUP (-1)

typedef Psd__Input__PServerInput input_t;
typedef Psd__Input__FeatureGroup input_group_t;
typedef Psd__Instance__Instance instance_t;
typedef Psd__Instance__InstanceInfo instance_info_t;
typedef Psd__Instance__FeatureGroupInfo instance_group_t;
typedef Psd__Example__Example example_t;
typedef Psd__Example__Slot slot_t;

void ps_proto_info_done(ps_proto_info_t *self)
{
    ps_free(self->ranges);
    *self = (ps_proto_info_t){0};
}

/* ---- which schema ---- */

/* Which fields a message has: a bit for each number below 16, by its wire type.
 */
typedef struct fields {
    uint32_t varint, length, fixed32;
    ps_bytes_t first_length; /* the first of field 1 that has a length */
} fields_t;

static bool take_varint(ps_bytes_t *left, uint64_t *ret_value)
{
    *ret_value = 0;
    for (unsigned shift = 0; shift < 64 && left->size > 0; shift += 7) {
        uint8_t byte = *left->data++;

        left->size--;
        *ret_value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    return false;
}

/* Passes over a field's value; false: it is broken. */
static bool skip_value(ps_bytes_t *left, uint64_t wire, ps_bytes_t *ret_value)
{
    uint64_t size = 0;

    *ret_value = (ps_bytes_t){0};
    if (wire == 0) {
        return take_varint(left, &size);
    }
    if (wire == 2 && !take_varint(left, &size)) {
        return false;
    }
    size = wire == 1 ? 8 : wire == 5 ? 4 : size;
    if ((wire != 1 && wire != 2 && wire != 5) || size > left->size) {
        return false;
    }
    *ret_value = (ps_bytes_t){left->data, (size_t)size};
    left->data += size;
    left->size -= (size_t)size;
    return true;
}

static bool look_at_fields(ps_bytes_t left, fields_t *ret_fields)
{
    *ret_fields = (fields_t){0};
    while (left.size > 0) {
        ps_bytes_t value;
        uint64_t tag = 0;
        uint32_t bit = 0;

        if (!take_varint(&left, &tag) || !skip_value(&left, tag & 7, &value)) {
            return false;
        }
        bit = tag >> 3 < 16 ? UINT32_C(1) << (tag >> 3) : 0;
        ret_fields->varint |= (tag & 7) == 0 ? bit : 0;
        ret_fields->length |= (tag & 7) == 2 ? bit : 0;
        ret_fields->fixed32 |= (tag & 7) == 5 ? bit : 0;
        if (tag == (1 << 3 | 2) && ret_fields->first_length.data == NULL) {
            ret_fields->first_length = value;
        }
    }
    return true;
}

#define FIELD(number) (UINT32_C(1) << (number))

/* A slot's second field has a length, and that of what is said of slots is a
 * number. */
static bool is_example_info(const fields_t *fields)
{
    fields_t slot;

    return (fields->varint & FIELD(2)) != 0 ||
           (look_at_fields(fields->first_length, &slot) && (slot.varint & FIELD(2)) != 0);
}

static bool find_schema(ps_bytes_t message, ps_proto_info_t *info)
{
    fields_t fields;

    if (!look_at_fields(message, &fields)) {
        return false;
    }
    if ((fields.length & FIELD(1)) != 0) {
        info->schema = PS_PROTO_EXAMPLE;
        info->is_info = is_example_info(&fields);
    } else if ((fields.varint & FIELD(1)) != 0) {
        info->schema = (fields.varint & FIELD(2)) != 0 ? PS_PROTO_INSTANCE : PS_PROTO_INPUT;
        info->is_info = true;
    } else {
        info->schema = (fields.varint & (FIELD(2) | FIELD(4))) != 0 ||
                               ((fields.fixed32 | fields.length) & FIELD(3))
                           ? PS_PROTO_INSTANCE
                           : PS_PROTO_INPUT;
    }
    return true;
}

/* ---- what the first message says ---- */

static void note_entries(ps_proto_info_t *info, size_t n_keys, size_t n_values)
{
    psd_entries_t kind = n_keys == 0     ? PSD_ENTRIES_DENSE
                         : n_values == 0 ? PSD_ENTRIES_BINARY
                                         : PSD_ENTRIES_SPARSE;

    if (n_keys + n_values > 0) {
        info->entries = !info->has_entries || info->entries == kind ? kind : PSD_ENTRIES_SPARSE;
        info->has_entries = true;
    }
}

static psd_status_t look_at_instances(ps_proto_info_t *info, ps_bytes_t message, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    instance_info_t *about = (instance_info_t *)(void *)ps_proto_unpack(
        &psd__instance__instance_info__descriptor, message, &rc, err);

    if (about == NULL) {
        return rc;
    }
    info->has_entries = true;
    info->entries = about->fea_type == PSD__INSTANCE__INSTANCE_INFO__FEATURE_TYPE__DENSE
                        ? PSD_ENTRIES_DENSE
                    : about->fea_type == PSD__INSTANCE__INSTANCE_INFO__FEATURE_TYPE__SPARSE_BINARY
                        ? PSD_ENTRIES_BINARY
                        : PSD_ENTRIES_SPARSE;
    /* One more than ranges: that of all groups. */
    if (about->n_fea_group > PS_PROTO_RANGES_MAX + 1) {
        rc = psd_error_set(err, PSD_INVALID, "it has ranges of %zu groups; %d are allowed",
                           about->n_fea_group, PS_PROTO_RANGES_MAX);
    } else {
        info->ranges = ps_alloc(about->n_fea_group + 1, sizeof *info->ranges);
        rc = info->ranges != NULL ? PSD_OK : ps_sample_no_memory(message.size, err);
    }
    for (size_t g = 0; rc == PSD_OK && g < about->n_fea_group; g++) {
        const instance_group_t *group = about->fea_group[g];

        /* That of all groups, merged, says nothing of each. */
        if (group->group_id != MERGED_GROUP && group->fea_begin < group->fea_end) {
            info->ranges[info->n++] = (ps_proto_range_t){.group = group->group_id,
                                                         .begin = group->fea_begin,
                                                         .end = group->fea_end,
                                                         .n_entries = group->nnz};
        }
    }
    ps_proto_unpacked_free(&about->base);
    return rc;
}

static psd_status_t look_at_inputs(ps_proto_info_t *info, ps_bytes_t message, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    Psd__Input__PServerInputInfo *about = (Psd__Input__PServerInputInfo *)(void *)ps_proto_unpack(
        &psd__input__pserver_input_info__descriptor, message, &rc, err);

    if (about == NULL) {
        return rc;
    }
    for (size_t g = 0; g < about->n_feature_group_info; g++) {
        Psd__Input__FeatureGroupInfo__FeatureType type = about->feature_group_info[g]->feature_type;

        note_entries(info, type != 1, type != 3);
    }
    ps_proto_unpacked_free(&about->base);
    return rc;
}

static psd_status_t look_at_examples(ps_proto_info_t *info, ps_bytes_t message, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    Psd__Example__ExampleInfo *about = (Psd__Example__ExampleInfo *)(void *)ps_proto_unpack(
        &psd__example__example_info__descriptor, message, &rc, err);

    if (about == NULL) {
        return rc;
    }
    for (size_t s = 0; s < about->n_slot; s++) {
        if (about->slot[s]->id != 0) {
            note_entries(info, about->slot[s]->format != 1, about->slot[s]->format != 3);
        }
    }
    ps_proto_unpacked_free(&about->base);
    return rc;
}

/* A sample says it by what it has. */
static psd_status_t look_at_sample(ps_proto_info_t *info, ps_bytes_t message, psd_error_t *err)
{
    static const ProtobufCMessageDescriptor *const schemas[] = {
        [PS_PROTO_INPUT] = &psd__input__pserver_input__descriptor,
        [PS_PROTO_INSTANCE] = &psd__instance__instance__descriptor,
        [PS_PROTO_EXAMPLE] = &psd__example__example__descriptor};
    psd_status_t rc = PSD_OK;
    ProtobufCMessage *sample = ps_proto_unpack(schemas[info->schema], message, &rc, err);

    if (sample == NULL) {
        return rc;
    }
    if (info->schema == PS_PROTO_INPUT) {
        const input_t *input = (input_t *)(void *)sample;

        for (size_t g = 0; g < input->n_feature_group; g++) {
            note_entries(info, input->feature_group[g]->n_feature_id,
                         input->feature_group[g]->n_value);
        }
    } else if (info->schema == PS_PROTO_INSTANCE) {
        const instance_t *instance = (instance_t *)(void *)sample;

        note_entries(info, instance->n_fea_id, instance->n_fea_val);
    } else {
        const example_t *example = (example_t *)(void *)sample;

        for (size_t s = 0; s < example->n_slot; s++) {
            if (example->slot[s]->id != 0) {
                note_entries(info, example->slot[s]->n_key, example->slot[s]->n_val);
            }
        }
    }
    ps_proto_unpacked_free(sample);
    return rc;
}

psd_status_t ps_proto_info_look(ps_proto_info_t *ret_info, ps_bytes_t message, psd_error_t *err)
{
    ps_proto_info_t info = {0};
    psd_status_t rc = PSD_OK;

    if (!find_schema(message, &info)) {
        return psd_error_set(err, PSD_INVALID, "the first record is not a protobuf message");
    }
    if (!info.is_info) {
        rc = look_at_sample(&info, message, err);
    } else if (info.schema == PS_PROTO_INPUT) {
        rc = look_at_inputs(&info, message, err);
    } else if (info.schema == PS_PROTO_INSTANCE) {
        rc = look_at_instances(&info, message, err);
    } else {
        rc = look_at_examples(&info, message, err);
    }
    if (rc != PSD_OK) {
        ps_proto_info_done(&info);
        return rc;
    }
    *ret_info = info;
    return PSD_OK;
}

/* ---- messages made samples ---- */

/* Entries as messages have them. */
typedef struct entries {
    const uint64_t *keys;
    size_t n_keys;
    const float *values;
    size_t n_values;
} entries_t;

/* Adds entries to the group that is open. */
static psd_status_t add_entries(const ps_proto_info_t *info, entries_t in, psd_samples_t *samples,
                                psd_error_t *err)
{
    size_t n = in.n_keys != 0 ? in.n_keys : in.n_values;
    bool fits = in.n_values == 0 || in.n_keys == 0 || in.n_keys == in.n_values;

    fits = fits && (info->entries != PSD_ENTRIES_DENSE || in.n_keys == 0) &&
           (info->entries != PSD_ENTRIES_BINARY || in.n_values == 0);
    if (!fits) {
        return psd_error_set(err, PSD_INVALID,
                             "a group of %zu keys and %zu values; in this file "
                             "they are %s",
                             in.n_keys, in.n_values,
                             info->entries == PSD_ENTRIES_DENSE    ? "values only"
                             : info->entries == PSD_ENTRIES_BINARY ? "keys only"
                                                                   : "as many");
    }
    if (!ps_samples_reserve(samples, 1, n)) {
        return ps_sample_no_memory(n * sizeof(float), err);
    }
    for (size_t e = 0; e < n; e++) {
        float value = in.n_values == 0 ? 1 : in.values[e];

        if (!isfinite(value)) {
            return psd_error_set(err, PSD_INVALID, "a value is not finite");
        }
        ps_samples_add(samples, in.n_keys == 0 ? e : in.keys[e], value);
    }
    return PSD_OK;
}

static psd_status_t begin(psd_samples_t *samples, bool has_label, float label, psd_error_t *err)
{
    if (!ps_samples_reserve(samples, 1, 0)) {
        return ps_sample_no_memory(0, err);
    }
    if (has_label && !isfinite(label)) {
        return psd_error_set(err, PSD_INVALID, "its label is not finite");
    }
    ps_samples_begin(samples, has_label ? label : NAN);
    return PSD_OK;
}

static psd_status_t add_input(const ps_proto_info_t *info, const input_t *input,
                              psd_samples_t *samples, psd_error_t *err)
{
    psd_status_t rc = begin(samples, input->has_label, input->label, err);

    for (size_t g = 0; rc == PSD_OK && g < input->n_feature_group; g++) {
        const input_group_t *group = input->feature_group[g];

        rc = add_entries(info,
                         (entries_t){(const uint64_t *)group->feature_id, group->n_feature_id,
                                     group->value, group->n_value},
                         samples, err);
        if (rc == PSD_OK) {
            ps_samples_end_group(samples, group->group_id);
        }
    }
    return rc;
}

/* The range in which a key lies; NULL: in none. `last` is tried first. */
static const ps_proto_range_t *range_of(const ps_proto_info_t *info, const ps_proto_range_t *last,
                                        uint64_t key)
{
    if (last != NULL && key >= last->begin && key < last->end) {
        return last;
    }
    for (size_t i = 0; i < info->n; i++) {
        if (key >= info->ranges[i].begin && key < info->ranges[i].end) {
            return &info->ranges[i];
        }
    }
    return NULL;
}

/* Neighbours of one range are a group. */
static psd_status_t add_instance(const ps_proto_info_t *info, const instance_t *instance,
                                 psd_samples_t *samples, psd_error_t *err)
{
    size_t n = instance->n_fea_id;
    const ps_proto_range_t *last = NULL;
    psd_status_t rc = begin(samples, instance->has_label, instance->label, err);

    if (rc == PSD_OK && instance->n_fea_val != 0 && n != 0 && n != instance->n_fea_val) {
        return psd_error_set(err, PSD_INVALID, "%zu keys and %zu values", n, instance->n_fea_val);
    }
    if (rc == PSD_OK && (n == 0 || info->n == 0)) {
        rc = add_entries(info,
                         (entries_t){instance->fea_id, n, instance->fea_val, instance->n_fea_val},
                         samples, err);
        if (rc == PSD_OK) {
            ps_samples_end_group(samples, info->n == 0 ? 0 : info->ranges[0].group);
        }
        return rc;
    }
    for (size_t at = 0; rc == PSD_OK && at < n;) {
        size_t end = at + 1;
        bool has_values = instance->n_fea_val != 0;

        last = range_of(info, last, instance->fea_id[at]);
        while (end < n && range_of(info, last, instance->fea_id[end]) == last) {
            end++;
        }
        rc = add_entries(info,
                         (entries_t){instance->fea_id + at, end - at,
                                     has_values ? instance->fea_val + at : NULL,
                                     has_values ? end - at : 0},
                         samples, err);
        if (rc == PSD_OK) {
            ps_samples_end_group(samples, last == NULL ? 0 : last->group);
        }
        at = end;
    }
    return rc;
}

static bool is_label(const slot_t *slot)
{
    return slot->id == 0;
}

static psd_status_t add_example(const ps_proto_info_t *info, const example_t *example,
                                psd_samples_t *samples, psd_error_t *err)
{
    const slot_t *label = NULL;
    psd_status_t rc = PSD_OK;

    for (size_t s = 0; s < example->n_slot; s++) {
        if (is_label(example->slot[s]) && example->slot[s]->n_val > 0) {
            label = example->slot[s];
        }
    }
    if (label != NULL && label->n_val != 1) {
        return psd_error_set(err, PSD_INVALID, "it has %zu labels", label->n_val);
    }
    rc = begin(samples, label != NULL, label != NULL ? label->val[0] : 0, err);
    for (size_t s = 0; rc == PSD_OK && s < example->n_slot; s++) {
        const slot_t *slot = example->slot[s];

        if (is_label(slot)) {
            continue;
        }
        rc = add_entries(info, (entries_t){slot->key, slot->n_key, slot->val, slot->n_val}, samples,
                         err);
        if (rc == PSD_OK) {
            ps_samples_end_group(samples, slot->unnamed ? 0 : slot->id);
        }
    }
    return rc;
}

psd_status_t ps_proto_message_parse(const ps_proto_info_t *info, ps_bytes_t message,
                                    psd_samples_t *samples, psd_error_t *err)
{
    static const ProtobufCMessageDescriptor *const schemas[] = {
        [PS_PROTO_INPUT] = &psd__input__pserver_input__descriptor,
        [PS_PROTO_INSTANCE] = &psd__instance__instance__descriptor,
        [PS_PROTO_EXAMPLE] = &psd__example__example__descriptor};
    psd_status_t rc = PSD_OK;
    ProtobufCMessage *sample = ps_proto_unpack(schemas[info->schema], message, &rc, err);

    if (sample == NULL) {
        return rc;
    }
    if (info->schema == PS_PROTO_INPUT) {
        rc = add_input(info, (input_t *)(void *)sample, samples, err);
    } else if (info->schema == PS_PROTO_INSTANCE) {
        rc = add_instance(info, (instance_t *)(void *)sample, samples, err);
    } else {
        rc = add_example(info, (example_t *)(void *)sample, samples, err);
    }
    ps_proto_unpacked_free(sample);
    if (rc == PSD_OK) {
        ps_samples_end(samples);
    }
    return rc;
}
