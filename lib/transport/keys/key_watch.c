/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at a file by its number and time. */
#include "transport/keys/key_watch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 500
#define MS_IN_S 1000
#define NS_IN_MS 1000000

static bool is_same(const ps_key_watch_t *self, const struct stat *file)
{
    return self->device == file->st_dev && self->inode == file->st_ino &&
           self->changed.tv_sec == file->st_mtim.tv_sec &&
           self->changed.tv_nsec == file->st_mtim.tv_nsec;
}

/* The file got its name that long ago, by the clock of its disk. */
static bool is_old(const struct stat *file, uint64_t unix_ms)
{
    uint64_t named_ms =
        (uint64_t)file->st_ctim.tv_sec * MS_IN_S + (uint64_t)file->st_ctim.tv_nsec / NS_IN_MS;

    return named_ms <= unix_ms && unix_ms - named_ms >= PS_KEY_SETTLE_MS;
}

/* Another file is there, and has been for a while. */
static bool has_settled(ps_key_watch_t *self, const struct stat *file, uint64_t now_ms,
                        uint64_t unix_ms)
{
    if (is_same(self, file)) {
        self->next_ms = 0;
        return false;
    }
    if (is_old(file, unix_ms)) { /* a program that made no call meanwhile */
        return true;
    }
    if (self->next_ms == 0 || self->next != file->st_ino) {
        self->next = file->st_ino;
        self->next_ms = now_ms;
    }
    return now_ms - self->next_ms >= PS_KEY_SETTLE_MS;
}

static void note(ps_key_watch_t *self, const struct stat *file)
{
    self->device = file->st_dev;
    self->inode = file->st_ino;
    self->changed = file->st_mtim;
}

void ps_key_watch_begin(ps_key_watch_t *self, const char *path)
{
    char folder[PATH_MAX] = "";
    bool is_whole = path[0] == '/';
    struct stat file;
    int n = 0;

    *self = (ps_key_watch_t){.look_ms = 0};
    if (stat(path, &file) != 0 || (!is_whole && getcwd(folder, sizeof folder) == NULL)) {
        return;
    }
    n = snprintf(self->path, sizeof self->path, "%s%s%s", folder, is_whole ? "" : "/", path);
    if (n < 0 || (size_t)n >= sizeof self->path) {
        self->path[0] = '\0';
    }
    note(self, &file);
}

bool ps_key_watch_look(ps_key_watch_t *self, uint64_t now_ms, uint64_t unix_ms, ps_key_pair_t *pair)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t next = {.name = ""};
    struct stat file;

    if (self->path[0] == '\0' || now_ms < self->look_ms) {
        return false;
    }
    self->look_ms = now_ms + LOOK_MS;
    if (stat(self->path, &file) != 0 || !has_settled(self, &file, now_ms, unix_ms) ||
        ps_key_file_read(self->path, &next, NULL) != PSD_OK) {
        return false; /* one that is being written is read next time */
    }
    note(self, &file);
    self->next_ms = 0;
    if (strcmp(next.public_key, pair->public_key) == 0) {
        return false;
    }
    *pair = next;
    return true;
}

void ps_key_watch_undo(ps_key_watch_t *self)
{
    self->inode = 0; /* as of no file */
}
