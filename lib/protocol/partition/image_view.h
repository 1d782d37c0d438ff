/* SPDX-License-Identifier: Apache-2.0 */
/* ps_image_view - what an image of a partition's rows is of. Units: versions,
 * clocks, lsn. Plain values; shard_image.h says how images are made. */
#ifndef PS_PROTOCOL_IMAGE_VIEW_H
#define PS_PROTOCOL_IMAGE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* An earlier image of a partition. */
typedef struct ps_image_since {
    uint64_t version; /* greatest of its rows; 0: there was none */
    uint64_t lsn;     /* of the last record in it … */
    uint64_t epoch;   /* … and under which that was made */
} ps_image_since_t;

typedef enum ps_image_state {
    PS_IMAGE_NONE = 0,    /* there is none, or it was taken away */
    PS_IMAGE_PENDING = 1, /* waits for its clock, or its turn */
    PS_IMAGE_BEGUN = 2,
    PS_IMAGE_FAILED = 3,   /* no memory when it was to begin */
    PS_IMAGE_RESTORING = 4 /* rows of a checkpoint are still to come */
} ps_image_state_t;

/* What an image is of. */
typedef struct ps_image_view {
    ps_image_state_t state;
    uint64_t lsn;       /* BEGUN: the last record in it, so the others */
    uint64_t lsn_epoch; /* under which that was made */
    uint64_t epoch;
    uint64_t version; /* greatest of its rows */
    uint64_t since;   /* only rows of a greater version are in it; 0: all. All
                         too where the table has no versions, and where the
                         records behind that earlier image were lost or are
                         too long ago: versions would not mean the same. */
    uint64_t clock;   /* of the job: closed; 0: of none. So it is also when the
                         job had no live worker left, as pushes of open clocks
                         are in the rows then, and when a worker has begun anew
                         behind what those before it had closed */
    bool exact;       /* it was wanted so, and is */
    uint64_t rows;    /* handed out */
} ps_image_view_t;
#endif
