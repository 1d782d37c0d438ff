/* SPDX-License-Identifier: Apache-2.0 */
/* Samples printed as messages: these borrow the sample's arrays. */
#include "data/records/proto_message.h"

#include <math.h>

#include "base/alloc.h"
#include "data/proto/example.pb-c.h"
#include "data/proto/input.pb-c.h"
#include "data/proto/instance.pb-c.h"

#define UNNAMED_SLOT 1 /* where all groups are merged */

typedef Psd__Input__PServerInput input_t;
typedef Psd__Input__FeatureGroup input_group_t;
typedef Psd__Example__Example example_t;
typedef Psd__Example__Slot slot_t;
typedef Psd__Instance__Instance instance_t;
typedef Psd__Instance__InstanceInfo instance_info_t;
typedef Psd__Instance__FeatureGroupInfo instance_group_t;

static bool pack(const ProtobufCMessage *message, ps_buffer_t *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    if (!ps_buffer_reserve(out, size)) {
        return false;
    }
    out->size += protobuf_c_message_pack(message, out->data + out->size);
    return true;
}

/* Keys of dense entries, and values of binary ones, are not written. */
static size_t n_keys(const psd_samples_t *samples, size_t n)
{
    return samples->entries == PSD_ENTRIES_DENSE ? 0 : n;
}

static size_t n_values(const psd_samples_t *samples, size_t n)
{
    return samples->entries == PSD_ENTRIES_BINARY ? 0 : n;
}

static bool print_input(const psd_samples_t *samples, size_t i, ps_buffer_t *out)
{
    size_t first = samples->groups[i];
    size_t n = samples->groups[i + 1] - first;
    input_t input = PSD__INPUT__PSERVER_INPUT__INIT;
    PSD_AUTO(ps_free_at) input_group_t *groups = ps_alloc(n, sizeof *groups);
    PSD_AUTO(ps_free_at)
    input_group_t **list = ps_alloc(n, sizeof(input_group_t *));

    if (groups == NULL || list == NULL) {
        return false;
    }
    for (size_t k = 0; k < n; k++) {
        size_t start = samples->starts[first + k];
        size_t count = samples->starts[first + k + 1] - start;

        groups[k] = (input_group_t)PSD__INPUT__FEATURE_GROUP__INIT;
        groups[k].group_id = (int32_t)samples->group_ids[first + k];
        groups[k].n_feature_id = n_keys(samples, count);
        groups[k].feature_id = (int64_t *)(samples->keys + start);
        groups[k].n_value = n_values(samples, count);
        groups[k].value = samples->values + start;
        list[k] = &groups[k];
    }
    input.has_label = !isnan(samples->labels[i]);
    input.label = samples->labels[i];
    input.n_feature_group = n;
    input.feature_group = list;
    return pack(&input.base, out);
}

static bool print_instance(const psd_samples_t *samples, size_t i, ps_buffer_t *out)
{
    size_t start = samples->starts[samples->groups[i]];
    size_t n = samples->starts[samples->groups[i + 1]] - start;
    instance_t instance = PSD__INSTANCE__INSTANCE__INIT;

    instance.has_label = !isnan(samples->labels[i]);
    instance.label = samples->labels[i];
    instance.n_fea_id = n_keys(samples, n);
    instance.fea_id = samples->keys + start;
    instance.n_fea_val = n_values(samples, n);
    instance.fea_val = samples->values + start;
    return pack(&instance.base, out);
}

static bool print_example(const psd_samples_t *samples, size_t i, ps_buffer_t *out)
{
    size_t first = samples->groups[i];
    size_t n = samples->groups[i + 1] - first;
    size_t labels = isnan(samples->labels[i]) ? (size_t)0 : (size_t)1;
    example_t example = PSD__EXAMPLE__EXAMPLE__INIT;
    PSD_AUTO(ps_free_at) slot_t *slots = ps_alloc(n + 1, sizeof *slots);
    PSD_AUTO(ps_free_at) slot_t **list = ps_alloc(n + 1, sizeof(slot_t *));

    if (slots == NULL || list == NULL) {
        return false;
    }
    for (size_t k = 0; k < n + labels; k++) {
        slots[k] = (slot_t)PSD__EXAMPLE__SLOT__INIT;
        slots[k].has_id = true;
        list[k] = &slots[k];
    }
    if (labels != 0) {
        slots[0].n_val = 1;
        slots[0].val = samples->labels + i;
    }
    for (size_t k = 0; k < n; k++) {
        size_t start = samples->starts[first + k];
        size_t count = samples->starts[first + k + 1] - start;
        slot_t *slot = &slots[k + labels];

        slot->id = (int32_t)samples->group_ids[first + k];
        if (slot->id == 0) {
            slot->id = UNNAMED_SLOT;
            slot->has_unnamed = true;
            slot->unnamed = true;
        }
        slot->n_key = n_keys(samples, count);
        slot->key = samples->keys + start;
        slot->n_val = n_values(samples, count);
        slot->val = samples->values + start;
    }
    example.n_slot = n + labels;
    example.slot = list;
    return pack(&example.base, out);
}

bool ps_proto_message_print(ps_proto_schema_t schema, const psd_samples_t *samples, size_t i,
                            ps_buffer_t *out)
{
    switch (schema) {
    case PS_PROTO_INPUT:
        return print_input(samples, i, out);
    case PS_PROTO_INSTANCE:
        return print_instance(samples, i, out);
    case PS_PROTO_EXAMPLE:
    default:
        return print_example(samples, i, out);
    }
}

static void fill_groups(const ps_proto_info_t *info, instance_group_t *groups,
                        instance_group_t **list)
{
    for (size_t g = 0; g < info->n; g++) {
        groups[g] = (instance_group_t)PSD__INSTANCE__FEATURE_GROUP_INFO__INIT;
        groups[g].has_group_id = true;
        groups[g].group_id = (int32_t)info->ranges[g].group;
        groups[g].has_fea_begin = true;
        groups[g].fea_begin = info->ranges[g].begin;
        groups[g].has_fea_end = true;
        groups[g].fea_end = info->ranges[g].end;
        groups[g].has_nnz = true;
        groups[g].nnz = info->ranges[g].n_entries;
        list[g] = &groups[g];
    }
}

bool ps_proto_info_print(const ps_proto_info_t *info, psd_labels_t labels, uint64_t n_samples,
                         ps_buffer_t *out)
{
    static const Psd__Instance__InstanceInfo__FeatureType types[] = {
        [PSD_ENTRIES_SPARSE] = PSD__INSTANCE__INSTANCE_INFO__FEATURE_TYPE__SPARSE,
        [PSD_ENTRIES_BINARY] = PSD__INSTANCE__INSTANCE_INFO__FEATURE_TYPE__SPARSE_BINARY,
        [PSD_ENTRIES_DENSE] = PSD__INSTANCE__INSTANCE_INFO__FEATURE_TYPE__DENSE};
    instance_info_t about = PSD__INSTANCE__INSTANCE_INFO__INIT;
    PSD_AUTO(ps_free_at)
    instance_group_t *groups = ps_alloc(info->n, sizeof *groups);
    PSD_AUTO(ps_free_at)
    instance_group_t **list = ps_alloc(info->n, sizeof(instance_group_t *));

    if (groups == NULL || list == NULL) {
        return false;
    }
    fill_groups(info, groups, list);
    /* Their order is that of the kinds, from 1 on. */
    about.label_type = (Psd__Instance__InstanceInfo__LabelType)(labels + 1);
    about.fea_type = types[info->entries];
    about.n_fea_group = info->n;
    about.fea_group = list;
    about.has_num_ins = true;
    about.num_ins = n_samples;
    return pack(&about.base, out);
}
