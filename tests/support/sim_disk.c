/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory, with all faults of disks; from a seed. */
#include "support/sim_disk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "support/sim_disk_state.h"

/* ---- operations ---------------------------------------------------------- */

static psd_status_t is_gone(const sim_disk_t *self, psd_error_t *err)
{
    return self->crashed ? psd_error_set(err, PSD_IO, "the disk is gone") : PSD_OK;
}

/* The fault that the next operation meets. */
static sim_disk_fault_t next_fault(sim_disk_t *self, bool is_flush)
{
    uint64_t op = self->n_ops++;

    if (op < self->first_fault || op >= self->end_fault || (self->only_flushes && !is_flush)) {
        return SIM_DISK_SOUND;
    }
    self->crashed = self->fault == SIM_DISK_CRASH;
    return self->fault;
}

static psd_status_t planned(const sim_disk_t *self, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO, "cannot %s: %s", what,
                         self->crashed ? "the disk is gone" : "Input/output error");
}

static psd_status_t sim_open(ps_disk_t *disk, const char *path, ps_disk_mode_t mode,
                             ps_disk_file_t **ret_file, psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;
    sim_disk_name_t *name = sim_disk_find(&self->now, path);
    sim_disk_node_t *node = name != NULL ? name->node : NULL;

    if (is_gone(self, err) != PSD_OK) {
        return PSD_IO;
    }
    if (node == NULL && mode == PS_DISK_READ) {
        return psd_error_set(err, PSD_IO, "cannot open %s: No such file or directory", path);
    }
    if (mode == PS_DISK_NEW || mode == PS_DISK_STREAM || node == NULL) {
        if (next_fault(self, false) != SIM_DISK_SOUND) {
            return planned(self, "open", err);
        }
        if (node == NULL) {
            node = sim_disk_new_node(self);
            sim_disk_change(self, NULL, path, node);
        }
        sim_disk_node_truncate(node, 0);
    }
    *ret_file = sim_disk_grown(NULL, sizeof **ret_file);
    (*ret_file)->node = node;
    return PSD_OK;
}

static void sim_close(ps_disk_t *disk, ps_disk_file_t **file_p)
{
    (void)disk;
    free(*file_p);
    *file_p = NULL;
}

static psd_status_t sim_write(ps_disk_t *disk, ps_disk_file_t *file, uint64_t offset,
                              const ps_bytes_t *spans, size_t n_spans, psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;
    sim_disk_fault_t fault = SIM_DISK_SOUND;
    uint64_t used = sim_disk_used(self);
    size_t room = 0;
    size_t size = 0;

    if (is_gone(self, err) != PSD_OK) {
        return PSD_IO;
    }
    fault = next_fault(self, false);
    for (size_t i = 0; i < n_spans; i++) {
        size += spans[i].size;
    }
    room = size;
    if (offset + size > file->node->now_size &&
        used + (offset + size - file->node->now_size) > self->capacity) {
        uint64_t more = used < self->capacity ? self->capacity - used : 0;

        room = (size_t)(file->node->now_size + more > offset ? file->node->now_size + more - offset
                                                             : 0);
    } else if (fault != SIM_DISK_SOUND) {
        room = (size_t)ps_rng_below(&self->rng, size + 1);
    }
    for (size_t i = 0, left = room; i < n_spans && left > 0; i++) {
        size_t part = spans[i].size < left ? spans[i].size : left;

        sim_disk_node_write(file->node, offset, spans[i].data, part);
        offset += part;
        left -= part;
    }
    if (fault != SIM_DISK_SOUND) {
        return planned(self, "write", err);
    }
    return room < size ? psd_error_set(err, PSD_LIMIT, "cannot write: No space left on device")
                       : PSD_OK;
}

static psd_status_t sim_read(ps_disk_t *disk, ps_disk_file_t *file, uint64_t offset,
                             uint8_t *ret_bytes, size_t size, size_t *ret_size, psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;
    sim_disk_node_t *node = file->node;
    size_t got = 0;

    if (is_gone(self, err) != PSD_OK) {
        return PSD_IO;
    }
    if (offset < node->now_size) {
        got = node->now_size - offset < size ? node->now_size - offset : size;
        if (got > 0) {
            memcpy(ret_bytes, node->now + offset, got);
        }
    }
    *ret_size = got;
    return PSD_OK;
}

static void sim_ahead(ps_disk_t *disk, ps_disk_file_t *file, uint64_t offset, uint64_t size)
{
    (void)disk;
    (void)file;
    (void)offset;
    (void)size;
}

static psd_status_t sim_size(ps_disk_t *disk, ps_disk_file_t *file, uint64_t *ret_bytes,
                             psd_error_t *err)
{
    *ret_bytes = file->node->now_size;
    return is_gone((sim_disk_t *)disk, err);
}

static psd_status_t sim_flush(ps_disk_t *disk, ps_disk_file_t *file, psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;

    if (is_gone(self, err) != PSD_OK) {
        return PSD_IO;
    }
    if (next_fault(self, true) != SIM_DISK_SOUND) {
        sim_disk_settle_node(self, file->node, false);
        return planned(self, "flush", err);
    }
    sim_disk_settle_node(self, file->node, true);
    return PSD_OK;
}

static psd_status_t sim_truncate(ps_disk_t *disk, ps_disk_file_t *file, uint64_t size,
                                 psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;

    if (is_gone(self, err) != PSD_OK) {
        return PSD_IO;
    }
    if (next_fault(self, false) != SIM_DISK_SOUND) {
        return planned(self, "truncate", err);
    }
    sim_disk_node_truncate(file->node, size);
    return PSD_OK;
}

static psd_status_t sim_rename(ps_disk_t *disk, const char *from, const char *to, psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;
    sim_disk_name_t *name = sim_disk_find(&self->now, from);
    sim_disk_fault_t fault = SIM_DISK_SOUND;

    if (is_gone(self, err) != PSD_OK) {
        return PSD_IO;
    }
    if (name == NULL) {
        return psd_error_set(err, PSD_IO, "cannot rename %s: no such file", from);
    }
    fault = next_fault(self, false);
    if (fault == SIM_DISK_SOUND || (fault == SIM_DISK_CRASH && sim_disk_coin(self))) {
        sim_disk_change(self, from, to, name->node);
    }
    return fault == SIM_DISK_SOUND ? PSD_OK : planned(self, "rename", err);
}

static psd_status_t sim_remove(ps_disk_t *disk, const char *path, psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;
    sim_disk_fault_t fault = SIM_DISK_SOUND;

    if (is_gone(self, err) != PSD_OK) {
        return PSD_IO;
    }
    if (sim_disk_find(&self->now, path) == NULL) {
        return PSD_OK;
    }
    fault = next_fault(self, false);
    if (fault == SIM_DISK_SOUND || (fault == SIM_DISK_CRASH && sim_disk_coin(self))) {
        sim_disk_change(self, path, NULL, NULL);
    }
    return fault == SIM_DISK_SOUND ? PSD_OK : planned(self, "remove", err);
}

static psd_status_t sim_list(ps_disk_t *disk, const char *dir, ps_disk_name_t *each, void *context,
                             psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;
    size_t length = strlen(dir);
    psd_status_t rc = is_gone(self, err);

    for (size_t i = 0; i < self->now.n && rc == PSD_OK; i++) {
        const char *path = self->now.items[i].path;

        if (strncmp(path, dir, length) == 0 && path[length] == '/' &&
            strchr(path + length + 1, '/') == NULL) {
            rc = each(context, path + length + 1, err);
        }
    }
    return rc;
}

static psd_status_t sim_flush_dir(ps_disk_t *disk, const char *dir, psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;

    (void)dir;
    if (is_gone(self, err) != PSD_OK) {
        return PSD_IO;
    }
    if (next_fault(self, true) != SIM_DISK_SOUND) {
        return planned(self, "flush the directory", err);
    }
    sim_disk_settle_names(self, self->n_changes);
    return PSD_OK;
}

static psd_status_t sim_make_dir(ps_disk_t *disk, const char *dir, psd_error_t *err)
{
    (void)dir;
    return is_gone((sim_disk_t *)disk, err);
}

static psd_status_t sim_room(ps_disk_t *disk, const char *dir, uint64_t *ret_bytes,
                             psd_error_t *err)
{
    sim_disk_t *self = (sim_disk_t *)disk;
    uint64_t used = sim_disk_used(self);

    (void)dir;
    *ret_bytes = used < self->capacity ? self->capacity - used : 0;
    return is_gone(self, err);
}

/* ---- the test's side ----------------------------------------------------- */

sim_disk_t *sim_disk_new(uint64_t seed)
{
    sim_disk_t *self = sim_disk_grown(NULL, sizeof *self);

    memset(self, 0, sizeof *self);
    self->rng.state = seed;
    self->capacity = UINT64_MAX;
    self->face = (ps_disk_t){
        .open = sim_open,
        .close = sim_close,
        .write = sim_write,
        .read = sim_read,
        .ahead = sim_ahead,
        .size = sim_size,
        .flush = sim_flush,
        .truncate = sim_truncate,
        .rename = sim_rename,
        .remove = sim_remove,
        .list = sim_list,
        .flush_dir = sim_flush_dir,
        .make_dir = sim_make_dir,
        .room = sim_room,
    };
    return self;
}

void sim_disk_destroy(sim_disk_t **self_p)
{
    sim_disk_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    sim_disk_settle_names(self, 0);
    sim_disk_names_clear(&self->now);
    sim_disk_names_clear(&self->safe);
    for (size_t i = 0; i < self->n_nodes; i++) {
        free(self->nodes[i]->now);
        free(self->nodes[i]->safe);
        free(self->nodes[i]->dirty);
        free(self->nodes[i]);
    }
    free(self->nodes);
    free(self->changes);
    free(self->now.items);
    free(self->safe.items);
    free(self);
    *self_p = NULL;
}

ps_disk_t *sim_disk_face(sim_disk_t *self)
{
    return &self->face;
}

uint64_t sim_disk_ops(const sim_disk_t *self)
{
    return self->n_ops;
}

void sim_disk_plan(sim_disk_t *self, uint64_t op, uint64_t times, sim_disk_fault_t fault)
{
    self->first_fault = op;
    self->end_fault = op + times;
    self->fault = fault;
}

void sim_disk_only_flushes(sim_disk_t *self, bool only)
{
    self->only_flushes = only;
}

uint64_t sim_disk_bytes(const sim_disk_t *self)
{
    return sim_disk_used(self);
}

void sim_disk_set_capacity(sim_disk_t *self, uint64_t bytes)
{
    self->capacity = bytes;
}

bool sim_disk_crashed(const sim_disk_t *self)
{
    return self->crashed;
}

void sim_disk_restart(sim_disk_t *self)
{
    sim_disk_settle_names(self, (size_t)ps_rng_below(&self->rng, self->n_changes + 1));
    for (size_t i = 0; i < self->n_nodes; i++) {
        sim_disk_node_t *node = self->nodes[i];

        sim_disk_settle_node(self, node, false);
        if (node->capacity > 0) {
            memcpy(node->now, node->safe, node->capacity);
        }
        node->now_size = node->safe_size;
    }
    sim_disk_names_clear(&self->now);
    for (size_t i = 0; i < self->safe.n; i++) {
        sim_disk_link(&self->now, self->safe.items[i].path, self->safe.items[i].node);
    }
    self->crashed = false;
    self->end_fault = 0;
}

static sim_disk_node_t *node_at(sim_disk_t *self, const char *path)
{
    sim_disk_name_t *name = sim_disk_find(&self->now, path);

    assert(name != NULL);
    return name->node;
}

void sim_disk_spoil(sim_disk_t *self, const char *path)
{
    node_at(self, path)->spoils = true;
}

ps_bytes_t sim_disk_content(sim_disk_t *self, const char *path)
{
    sim_disk_node_t *node = node_at(self, path);

    return (ps_bytes_t){node->now, node->now_size};
}

void sim_disk_flip(sim_disk_t *self, const char *path, uint64_t offset, uint8_t mask)
{
    sim_disk_node_t *node = node_at(self, path);

    assert(offset < node->now_size);
    node->now[offset] ^= mask;
    if (offset < node->safe_size) {
        node->safe[offset] ^= mask;
    }
}

void sim_disk_cut(sim_disk_t *self, const char *path, uint64_t size)
{
    sim_disk_node_t *node = node_at(self, path);

    sim_disk_node_truncate(node, size);
    sim_disk_settle_node(self, node, true);
}

bool sim_disk_has(sim_disk_t *self, const char *path)
{
    return sim_disk_find(&self->now, path) != NULL;
}

void sim_disk_drop(sim_disk_t *self, const char *path)
{
    sim_disk_unlink(&self->now, path);
    sim_disk_unlink(&self->safe, path);
}

size_t sim_disk_count(const sim_disk_t *self)
{
    return self->now.n;
}

const char *sim_disk_name(const sim_disk_t *self, size_t i)
{
    return self->now.items[i].path;
}
