/* SPDX-License-Identifier: Apache-2.0 */
/* temp_dir - a fresh directory for one test, and its removal with all in it */
#ifndef PS_TESTS_TEMP_DIR_H
#define PS_TESTS_TEMP_DIR_H

#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct temp_dir {
    char path[PATH_MAX];
} temp_dir_t;

/* Under $TMPDIR, else /tmp. false: could not be made. */
static inline bool temp_dir_make(temp_dir_t *self)
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(self->path, sizeof self->path, "%s/psd-test-XXXXXX",
                   base == NULL || base[0] == '\0' ? "/tmp" : base);
    return mkdtemp(self->path) != NULL;
}

static inline int temp_dir_remove_one(const char *path, const struct stat *status, int type,
                                      struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

/* Removes it; a temp_dir that was not made is ignored. */
static inline void temp_dir_drop(temp_dir_t *self)
{
    if (self->path[0] != '\0') {
        (void)nftw(self->path, temp_dir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
        self->path[0] = '\0';
    }
}
#endif
