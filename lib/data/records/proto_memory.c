/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator of protobuf-c's that gives one message no more than its budget.
 */
#include "data/records/proto_memory.h"

#include "base/alloc.h"
#include "data/streams/samples.h"

/* What a message may take. Fields of two bytes, which is the least that keys
 * have, take 36 times as much; empty groups, of which a small packed file can
 * have millions, more. */
#define BUDGET_RATIO ((size_t)40)
#define BUDGET_LEAST ((size_t)64 << 10)
#define BUDGET_MAX ((size_t)256 << 20)

typedef struct budget {
    size_t left; /* bytes; what is freed does not come back */
    bool is_over;
    bool failed; /* there was no memory */
} budget_t;

static size_t budget_of(size_t message_size)
{
    return message_size < (BUDGET_MAX - BUDGET_LEAST) / BUDGET_RATIO
               ? message_size * BUDGET_RATIO + BUDGET_LEAST
               : BUDGET_MAX;
}

static void *give(void *data, size_t size)
{
    budget_t *budget = data;
    void *block = NULL;

    if (size > budget->left) {
        budget->is_over = true;
        return NULL;
    }
    budget->left -= size;
    block = ps_alloc_raw(1, size);
    budget->failed = budget->failed || block == NULL;
    return block;
}

static void take_back(void *budget, void *block)
{
    (void)budget;
    ps_free(block);
}

static psd_status_t say_why_not(const budget_t *budget, const ProtobufCMessageDescriptor *schema,
                                size_t size, psd_error_t *err)
{
    if (budget->failed) {
        return ps_sample_no_memory(size, err);
    }
    return budget->is_over
               ? psd_error_set(err, PSD_INVALID,
                               "a message %s of %zu bytes takes more than %zu "
                               "of memory, as only empty groups do",
                               schema->short_name, size, budget_of(size))
               : psd_error_set(err, PSD_INVALID, "it is not a message %s", schema->short_name);
}

ProtobufCMessage *ps_proto_unpack(const ProtobufCMessageDescriptor *schema, ps_bytes_t message,
                                  psd_status_t *ret_status, psd_error_t *err)
{
    budget_t budget = {.left = budget_of(message.size)};
    ProtobufCAllocator memory = {.alloc = give, .free = take_back, .allocator_data = &budget};
    ProtobufCMessage *self = protobuf_c_message_unpack(
        schema, &memory, message.size, message.data != NULL ? message.data : (const uint8_t *)"");

    *ret_status = self != NULL ? PSD_OK : say_why_not(&budget, schema, message.size, err);
    return self;
}

void ps_proto_unpacked_free(ProtobufCMessage *self)
{
    budget_t none = {0};
    ProtobufCAllocator memory = {.alloc = give, .free = take_back, .allocator_data = &none};

    protobuf_c_message_free_unpacked(self, &memory);
}
