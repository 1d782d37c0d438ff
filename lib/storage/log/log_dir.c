/* SPDX-License-Identifier: Apache-2.0 */
/* Names in the directory of a log. */
#include "storage/log/log_dir.h"

#include <string.h>

#include "storage/log/segment.h"

static bool is_between(const char *name, const char *first, const char *last)
{
    size_t length = strlen(name);
    size_t front = strlen(first);
    size_t back = strlen(last);

    return length > front + back && strncmp(name, first, front) == 0 &&
           strcmp(name + length - back, last) == 0;
}

bool ps_log_dir_fills(const char *name)
{
    return is_between(name, "log-", ".seg") || is_between(name, "snap-", ".rows") ||
           is_between(name, "table-", ".spec");
}

static psd_status_t take_name(void *context, const char *name, psd_error_t *err)
{
    ps_log_dir_t *self = context;

    (void)err;
    self->is_opened = self->is_opened || strcmp(name, PS_FLUSHED_NAME) == 0;
    self->is_filled = self->is_filled || ps_log_dir_fills(name);
    return PSD_OK;
}

psd_status_t ps_log_dir_look(ps_disk_t *disk, const char *dir, ps_log_dir_t *ret, psd_error_t *err)
{
    psd_status_t rc = disk->make_dir(disk, dir, err);

    *ret = (ps_log_dir_t){0};
    return rc == PSD_OK ? disk->list(disk, dir, take_name, ret, err) : rc;
}
