/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: the log is cut although partitions need the part after their snapshots. */
#include "sim_disk_planted.h"
#include "storage/log/shard_log.h"

uint64_t __wrap_ps_shard_log_segment_with(const ps_shard_log_t *self, uint32_t table,
                                          uint32_t partition, uint64_t lsn);

uint64_t __wrap_ps_shard_log_segment_with(const ps_shard_log_t *self, uint32_t table,
                                          uint32_t partition, uint64_t lsn)
{
    (void)self;
    (void)table;
    (void)partition;
    (void)lsn;
    return UINT64_MAX;
}

int main(void)
{
    return disk_planted_found("log cut too early");
}
