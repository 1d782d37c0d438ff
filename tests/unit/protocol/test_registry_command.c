/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/command_code.h: what comes back from bytes does the same.
 * And registry.h: a command on trial leaves nothing when it is undone. */
#include "support/command_sample.h"
#include "support/fail_alloc.h"
#include "support/registry_walk.h"

static psd_error_t *err;

static void make_err(void)
{
    err = psd_error_new();
}

static void drop_err(void)
{
    psd_error_destroy(&err);
}

TestSuite(registry_command, .init = make_err, .fini = drop_err);

static ps_registry_t *new_registry(void)
{
    ps_registry_args_t args = fixture_args();
    ps_registry_t *registry = NULL;

    args.copies_max = FIXTURE_COPIES_MAX;
    cr_assert_eq(ps_registry_new(&args, &registry, NULL), PSD_OK);
    return registry;
}

static ps_bytes_t bytes_of(const ps_buffer_t *buffer)
{
    return (ps_bytes_t){buffer->data, buffer->size};
}

Test(registry_command, from_bytes_it_does_the_same)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *first = new_registry();
        PSD_AUTO(ps_registry_destroy) ps_registry_t *second = new_registry();
        PSD_AUTO(ps_free_at) char *a = NULL;
        PSD_AUTO(ps_free_at) char *b = NULL;
        walk_t walk = {.rng = {seed}};

        for (int i = 0; i < 400; i++) {
            PSD_AUTO(ps_command_done) ps_command_t step = {0};
            PSD_AUTO(ps_command_done) ps_command_t copy = {0};
            PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

            if (walk_plan(&walk, first, &step, NULL) != PSD_OK || step.kind == 0) {
                continue;
            }
            cr_assert(ps_command_encode(&step, &bytes));
            cr_assert_eq(ps_command_decode(bytes_of(&bytes), &copy, err), PSD_OK, "%s",
                         psd_error_text(err));
            cr_assert_eq(ps_registry_apply(first, &step, 1000 + (uint64_t)i, err), PSD_OK);
            cr_assert_eq(ps_registry_apply(second, &copy, 70000 + 3 * (uint64_t)i, err), PSD_OK,
                         "%s", psd_error_text(err));
            cr_assert_neq(ps_registry_hash(first), 0);
            cr_assert_eq(ps_registry_hash(first), ps_registry_hash(second), "%s", step.text);
        }
        a = fixture_dump(first);
        b = fixture_dump(second);
        cr_assert_str_eq(a, b);
    }
}

/* A job's command that names only what it changes does what one does that names all. */
Test(registry_command, changes_of_a_job_are_as_good_as_all_of_it)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *changes = new_registry();
        PSD_AUTO(ps_registry_destroy) ps_registry_t *whole = new_registry();
        walk_t walks[2] = {{.rng = {seed}}, {.rng = {seed}}};

        for (uint64_t i = 0; i < 400; i++) {
            PSD_AUTO(ps_command_done) ps_command_t a = {0};
            PSD_AUTO(ps_command_done) ps_command_t b = {0};
            psd_status_t rc = walk_plan(&walks[0], changes, &a, NULL);

            if (rc == PSD_OK && a.kind == PS_COMMAND_JOB) {
                whole->cluster.sm_version = 3;
            }
            cr_assert_eq(walk_plan(&walks[1], whole, &b, NULL), rc);
            cr_assert_eq(a.kind, b.kind);
            if (rc != PSD_OK || a.kind == 0) {
                continue;
            }
            cr_assert_leq(a.job.n_workers, b.job.n_workers);
            cr_assert_eq(ps_registry_apply(changes, &a, i, err), PSD_OK);
            cr_assert_eq(ps_registry_apply(whole, &b, i, err), PSD_OK);
            whole->cluster.sm_version = changes->cluster.sm_version;
            cr_assert_eq(ps_registry_hash(changes), ps_registry_hash(whole), "%s", a.text);
        }
    }
}

/* Whatever changes is in the sum. */
Test(registry_command, no_change_leaves_the_hash)
{
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = new_registry();
    walk_t walk = {.rng = {5}};

    for (int i = 0; i < 600; i++) {
        PSD_AUTO(ps_command_done) ps_command_t step = {0};
        PSD_AUTO(ps_free_at) char *before = fixture_dump(registry);
        PSD_AUTO(ps_free_at) char *after = NULL;
        uint64_t hash = ps_registry_hash(registry);

        if (walk_plan(&walk, registry, &step, NULL) != PSD_OK || step.kind == 0) {
            continue;
        }
        cr_assert_eq(ps_registry_try(registry, &step, 1, err), PSD_OK);
        after = fixture_dump(registry);
        cr_assert_eq(ps_registry_hash(registry) == hash,
                     step.kind != PS_COMMAND_SESSIONS && strcmp(before, after) == 0, "%s",
                     step.text);
        ps_registry_undo(registry);
        cr_assert_eq(ps_registry_hash(registry), hash, "%s", step.text);
        cr_assert_eq(ps_registry_apply(registry, &step, 1, err), PSD_OK);
    }
}

/* What is not stored: what was heard, and what follows from it. */
static void add_volatile(const ps_registry_t *self, ps_buffer_t *bytes)
{
    bool ok = ps_buffer_append(bytes, &self->next_session, sizeof self->next_session) &&
              ps_buffer_append(bytes, &self->cluster.last_table, sizeof self->cluster.last_table) &&
              ps_buffer_append(bytes, &self->cluster.last_job, sizeof self->cluster.last_job) &&
              ps_buffer_append(bytes, &self->n_ended, sizeof self->n_ended);

    for (size_t i = 0; ok && i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];

        ok = ps_buffer_append(bytes, table->watches,
                              table->spec.n_partitions * sizeof *table->watches);
    }
    for (size_t i = 0; ok && i < self->n_nodes; i++) {
        const ps_node_t *node = &self->nodes[i];

        ok = ps_buffer_append(bytes, &node->up, sizeof node->up) &&
             ps_buffer_append(bytes, &node->suspect, sizeof node->suspect) &&
             ps_buffer_append(bytes, &node->last_seen_ms, sizeof node->last_seen_ms);
    }
    cr_assert(ok);
}

Test(registry_command, an_undone_one_leaves_nothing)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = new_registry();
        walk_t walk = {.rng = {seed}};

        for (int i = 0; i < 400; i++) {
            PSD_AUTO(ps_command_done) ps_command_t step = {0};
            PSD_AUTO(ps_free_at) char *before = NULL;
            PSD_AUTO(ps_free_at) char *undone = NULL;
            PSD_AUTO(ps_free_at) char *tried = NULL;
            PSD_AUTO(ps_free_at) char *kept = NULL;
            PSD_AUTO(ps_buffer_done) ps_buffer_t heard = {0};
            PSD_AUTO(ps_buffer_done) ps_buffer_t heard_undone = {0};
            ps_registry_t was;

            if (walk_plan(&walk, registry, &step, NULL) != PSD_OK || step.kind == 0) {
                continue;
            }
            before = fixture_dump(registry);
            add_volatile(registry, &heard);
            cr_assert_eq(ps_registry_try(registry, &step, 1, err), PSD_OK);
            tried = fixture_dump(registry);
            was = *registry;
            ps_registry_undo(registry);
            undone = fixture_dump(registry);
            cr_assert_str_eq(before, undone, "%s", step.text);
            add_volatile(registry, &heard_undone);
            cr_assert_eq(heard.size, heard_undone.size, "%s", step.text);
            cr_assert_arr_eq(heard.data, heard_undone.data, heard.size, "%s", step.text);
            cr_assert_eq(ps_registry_apply(registry, &step, 1, err), PSD_OK);
            kept = fixture_dump(registry);
            cr_assert_str_eq(tried, kept, "%s", step.text);
            cr_assert_eq(registry->next_session, was.next_session);
            cr_assert_eq(registry->cluster.last_table, was.cluster.last_table);
            cr_assert_eq(registry->cluster.last_job, was.cluster.last_job);
            cr_assert_eq(registry->n_ended, was.n_ended);
        }
    }
}

/* ---- bytes that are wrong ---- */

Test(registry_command, every_cut_is_refused)
{
    for (size_t i = 0; i < N_SAMPLE_COMMANDS; i++) {
        PSD_AUTO(ps_command_done) ps_command_t sample = command_sample(SAMPLE_COMMANDS[i]);
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        ps_command_t got = {0};

        cr_assert(ps_command_encode(&sample, &bytes));
        for (size_t size = 0; size < bytes.size; size++) {
            psd_error_clear(err);
            cr_assert_eq(ps_command_decode((ps_bytes_t){bytes.data, size}, &got, err), PSD_PROTO,
                         "%s at %zu", ps_command_name(sample.kind), size);
        }
        cr_assert(ps_buffer_append(&bytes, "", 1));
        psd_error_clear(err);
        cr_assert_eq(ps_command_decode(bytes_of(&bytes), &got, err), PSD_PROTO);
        cr_assert_not_null(strstr(psd_error_text(err), "1 bytes are left"));
    }
}

static void assert_refused(size_t at, uint8_t byte, psd_status_t status, const char *says)
{
    PSD_AUTO(ps_command_done) ps_command_t sample = command_sample(PS_COMMAND_COPIES);
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_command_t got = {0};

    cr_assert(ps_command_encode(&sample, &bytes));
    bytes.data[at < bytes.size ? at : bytes.size - (SIZE_MAX - at) - 1] = byte;
    psd_error_clear(err);
    cr_assert_eq(ps_command_decode(bytes_of(&bytes), &got, err), status, "%s", psd_error_text(err));
    cr_assert_not_null(strstr(psd_error_text(err), says), "%s", psd_error_text(err));
    cr_assert_eq(got.kind, 0);
}

Test(registry_command, what_is_no_command_is_named)
{
    assert_refused(0, 'x', PSD_PROTO, "it begins with other bytes");
    assert_refused(4, 1, PSD_VERSION, "version is 1; this psd knows 2");
    assert_refused(6, 16, PSD_VERSION, "setting has version 2; this psd knows 3");
    assert_refused(6, 99, PSD_PROTO, "kind is 99");
    assert_refused(7, 1, PSD_PROTO, "kind is 8, 1");
    assert_refused(48, 255, PSD_PROTO, "text is cut off");
    assert_refused(63 + 3, 255, PSD_PROTO, "changes is cut off");
    assert_refused(63 + 4 + 8, 2, PSD_PROTO, "rows_lost is cut off, or not of its type");
}

static psd_status_t there_and_back(void *fixture)
{
    PSD_AUTO(ps_command_done) ps_command_t got = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

    if (!ps_command_encode(fixture, &bytes)) {
        return PSD_NOMEM;
    }
    return ps_command_decode(bytes_of(&bytes), &got, NULL);
}

Test(registry_command, no_memory_is_said_and_nothing_leaks)
{
    for (size_t i = 0; i < N_SAMPLE_COMMANDS; i++) {
        PSD_AUTO(ps_command_done) ps_command_t sample = command_sample(SAMPLE_COMMANDS[i]);

        cr_assert_null(fail_alloc_sweep(there_and_back, &sample));
    }
}
