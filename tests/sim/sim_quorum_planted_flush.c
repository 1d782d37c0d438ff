/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a log is reported as flushed before it is. */
#include "sim_quorum_planted.h"

uint64_t __real_disk_flush(disk_t *self, uint64_t now, bool *ret_is_install);
uint64_t __wrap_disk_flush(disk_t *self, uint64_t now, bool *ret_is_install);

uint64_t __wrap_disk_flush(disk_t *self, uint64_t now, bool *ret_is_install)
{
    uint64_t op = __real_disk_flush(self, now, ret_is_install);

    for (size_t i = 0; i < self->n_writes && !*ret_is_install; i++) {
        if (self->writes[i].is_install) {
            return op;
        }
    }
    return *ret_is_install || self->n_writes == 0 ? op : self->writes[self->n_writes - 1].op;
}

int main(void)
{
    return quorum_planted_main("flushed before the flush");
}
