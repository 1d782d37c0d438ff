/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a command of the registry. What is accepted has one form in
 * bytes, and a registry takes it or refuses it; undone, it leaves nothing.
 */
#include <stdlib.h>

#include "protocol/registry/command_code.h"
#include "support/registry_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

/* A cluster that has lived for a while. */
static ps_registry_t *make_registry(void)
{
    ps_registry_args_t args = fixture_args();
    ps_registry_t *registry = NULL;
    walk_t walk = {.rng = {7}};

    args.copies_max = FIXTURE_COPIES_MAX;
    check(ps_registry_new(&args, &registry, NULL) == PSD_OK);
    for (int i = 0; i < 300; i++) {
        PSD_AUTO(ps_command_done) ps_command_t step = {0};

        if (walk_plan(&walk, registry, &step, NULL) == PSD_OK && step.kind != 0) {
            check(ps_registry_apply(registry, &step, 1, NULL) == PSD_OK);
        }
    }
    return registry;
}

static void try_it(const ps_command_t *command)
{
    static ps_registry_t *registry;
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;
    psd_status_t rc = PSD_OK;

    if (registry == NULL) {
        registry = make_registry();
    }
    before = fixture_dump(registry);
    rc = ps_registry_try(registry, command, 1, NULL);
    check(rc == PSD_OK || rc == PSD_DAMAGED);
    if (rc == PSD_OK) {
        ps_registry_undo(registry);
    }
    after = fixture_dump(registry);
    check(before != NULL && after != NULL && strcmp(before, after) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(ps_command_done) ps_command_t first = {0};
    PSD_AUTO(ps_command_done) ps_command_t second = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t again = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = ps_command_decode((ps_bytes_t){data, size}, &first, err);

    if (rc != PSD_OK) {
        check((rc == PSD_PROTO || rc == PSD_VERSION) && psd_error_text(err)[0] != '\0');
        return 0;
    }
    check(ps_command_encode(&first, &bytes));
    check(ps_command_decode((ps_bytes_t){bytes.data, bytes.size}, &second, err) == PSD_OK);
    check(ps_command_encode(&second, &again));
    check(bytes.size == again.size && memcmp(bytes.data, again.data, bytes.size) == 0);
    try_it(&first);
    return 0;
}
