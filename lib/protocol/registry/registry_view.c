/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the registry. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/registry_state.h"

const char *ps_registry_cluster(const ps_registry_t *self, ps_id_t *ret_uuid)
{
    if (!self->has_cluster) {
        return NULL;
    }
    if (ret_uuid != NULL) {
        *ret_uuid = self->cluster.uuid;
    }
    return self->cluster.name;
}

uint64_t ps_registry_epoch(const ps_registry_t *self)
{
    return self->epoch;
}

const ps_id_t *ps_registry_lineage(const ps_registry_t *self)
{
    return &self->cluster.lineage;
}

size_t ps_registry_n_nodes(const ps_registry_t *self)
{
    return self->n_nodes;
}

const ps_node_t *ps_registry_node_at(const ps_registry_t *self, size_t i)
{
    return i < self->n_nodes ? &self->nodes[i] : NULL;
}

ps_node_t *ps_registry_find_node(const ps_registry_t *self, const char *name)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (strcmp(self->nodes[i].name, name) == 0) {
            return &self->nodes[i];
        }
    }
    return NULL;
}

const ps_node_t *ps_registry_node(const ps_registry_t *self, const char *name)
{
    return ps_registry_find_node(self, name);
}

/* Incarnations of one node differ in their low bits, those of others in all. */
static uint64_t hash(uint64_t incarnation)
{
    return (incarnation * UINT64_C(0x9E3779B97F4A7C15)) >> 48;
}

/* Every copy of every partition names its node so. */
const ps_node_t *ps_registry_node_by_incarnation(const ps_registry_t *self, uint64_t incarnation)
{
    uint16_t *hint = &self->found[hash(incarnation) % PS_FOUND_MAX];

    if (*hint < self->n_nodes && self->nodes[*hint].incarnation == incarnation) {
        return &self->nodes[*hint];
    }
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (self->nodes[i].incarnation == incarnation) {
            *hint = i > UINT16_MAX ? 0 : (uint16_t)i;
            return &self->nodes[i];
        }
    }
    return NULL;
}

size_t ps_registry_n_tables(const ps_registry_t *self)
{
    return self->n_tables;
}

uint32_t ps_registry_last_job(const ps_registry_t *self)
{
    return self->cluster.last_job;
}

uint32_t ps_registry_last_table(const ps_registry_t *self)
{
    return self->cluster.last_table;
}

const ps_table_t *ps_registry_table_at(const ps_registry_t *self, size_t i)
{
    return i < self->n_tables ? &self->tables[i] : NULL;
}

const ps_table_t *ps_registry_table(const ps_registry_t *self, const char *name)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        if (strcmp(self->tables[i].spec.name, name) == 0) {
            return &self->tables[i];
        }
    }
    return NULL;
}

ps_table_t *ps_registry_find_table(const ps_registry_t *self, uint32_t id)
{
    size_t low = 0;
    size_t high = self->n_tables;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->tables[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < self->n_tables && self->tables[low].id == id ? &self->tables[low] : NULL;
}

const ps_table_t *ps_registry_table_by_id(const ps_registry_t *self, uint32_t id)
{
    return ps_registry_find_table(self, id);
}

size_t ps_registry_n_jobs(const ps_registry_t *self)
{
    return self->n_jobs;
}

const ps_job_t *ps_registry_job_at(const ps_registry_t *self, size_t i)
{
    return i < self->n_jobs ? &self->jobs[i].job : NULL;
}

ps_job_entry_t *ps_registry_find_job(const ps_registry_t *self, uint32_t id)
{
    size_t low = 0;
    size_t high = self->n_jobs;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->jobs[middle].job.id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < self->n_jobs && self->jobs[low].job.id == id ? &self->jobs[low] : NULL;
}

ps_job_entry_t *ps_registry_find_job_named(const ps_registry_t *self, const char *name)
{
    for (size_t i = self->n_jobs; i > 0; i--) {
        if (strcmp(self->jobs[i - 1].job.name, name) == 0) {
            return &self->jobs[i - 1];
        }
    }
    return NULL;
}

const ps_job_t *ps_registry_job(const ps_registry_t *self, const char *name)
{
    const ps_job_entry_t *entry = ps_registry_find_job_named(self, name);

    return entry == NULL ? NULL : &entry->job;
}

const ps_job_t *ps_registry_job_by_id(const ps_registry_t *self, uint32_t id)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, id);

    return entry == NULL ? NULL : &entry->job;
}

bool ps_registry_job_facts(const ps_registry_t *self, uint32_t job, uint32_t *ret_n_expected,
                           uint64_t *ret_created_unix_ms)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);

    if (entry == NULL) {
        return false;
    }
    *ret_n_expected = entry->n_expected;
    *ret_created_unix_ms = entry->created_unix_ms;
    return true;
}

bool ps_registry_job_changes(const ps_registry_t *self, uint32_t id, uint64_t since,
                             ps_job_t *ret_job)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, id);
    ps_job_t job = {0};
    size_t n = 0;

    if (entry == NULL) {
        return false;
    }
    for (size_t i = 0; i < entry->job.n_workers; i++) {
        n += entry->seen[i].version > since ? 1 : 0;
    }
    job = entry->job;
    job.n_workers = 0;
    job.workers = ps_alloc(n + 1, sizeof *job.workers);
    if (job.workers == NULL) {
        return false;
    }
    for (size_t i = 0; i < entry->job.n_workers; i++) {
        if (entry->seen[i].version > since) {
            job.workers[job.n_workers++] = entry->job.workers[i];
        }
    }
    *ret_job = job;
    return true;
}

size_t ps_registry_job_tables(const ps_registry_t *self, uint32_t job, const uint32_t **ret_tables)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);

    *ret_tables = entry == NULL ? NULL : entry->tables;
    return entry == NULL ? 0 : entry->n_tables;
}

uint64_t ps_registry_job_tables_version(const ps_registry_t *self, uint32_t job)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);

    return entry == NULL ? 0 : entry->tables_version;
}

static bool serves_table(const ps_table_t *table, uint64_t incarnation)
{
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        const ps_copies_t *copies = &table->copies[i];
        const ps_copy_t *primary = ps_copies_primary(copies);
        const ps_copy_t *own = ps_copies_on(copies, incarnation);

        if (own != NULL && (primary == NULL ? ps_copy_is_heir(own) : own == primary)) {
            return true;
        }
    }
    return false;
}

bool ps_registry_serves_job(const ps_registry_t *self, uint64_t incarnation, uint32_t job)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);

    for (size_t i = 0; entry != NULL && i < entry->n_tables; i++) {
        const ps_table_t *table = ps_registry_table_by_id(self, entry->tables[i]);

        if (table != NULL && serves_table(table, incarnation)) {
            return true;
        }
    }
    return false;
}

const char *ps_registry_job_state(const ps_registry_t *self, uint32_t job)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);

    if (entry == NULL) {
        return "?";
    }
    if (entry->job.stopped) {
        return "stopped";
    }
    if (entry->n_live > 0) {
        return "running";
    }
    for (size_t i = 0; i < entry->job.n_workers; i++) {
        if (entry->job.workers[i].state == PS_WORKER_LOST) {
            return "lost";
        }
    }
    return "finished";
}
