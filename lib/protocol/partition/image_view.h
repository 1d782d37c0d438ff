/* SPDX-License-Identifier: Apache-2.0 */
/* ps_image_view - describes an image of a partition's rows. Units: versions,
 * clocks, lsn. Plain values; shard_image.h says how images are made. */
#ifndef PS_PROTOCOL_IMAGE_VIEW_H
#define PS_PROTOCOL_IMAGE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* An earlier image of a partition. */
typedef struct ps_image_since {
    uint64_t version; /* greatest of its rows; 0: no earlier image */
    uint64_t lsn;     /* of the last record in it … */
    uint64_t epoch;   /* … and the epoch of that record */
} ps_image_since_t;

typedef enum ps_image_state {
    PS_IMAGE_NONE = 0,    /* no image, or it was cancelled */
    PS_IMAGE_PENDING = 1, /* waits for its clock, or its turn */
    PS_IMAGE_BEGUN = 2,
    PS_IMAGE_FAILED = 3,   /* no memory at its start */
    PS_IMAGE_RESTORING = 4 /* rows of a checkpoint are still missing */
} ps_image_state_t;

/* The description of an image. */
typedef struct ps_image_view {
    ps_image_state_t state;
    uint64_t lsn;       /* BEGUN and later: the last record in it */
    uint64_t lsn_epoch; /* of that record */
    uint64_t epoch;
    uint64_t version; /* greatest of its rows */
    uint64_t since;   /* it has only rows of a greater version; 0: all. Also all if the table has no
                         versions, or if the records after that earlier image were lost or are too
                         old: versions would not be comparable. */
    uint64_t clock;   /* the closed clock of the job; 0: none. Also 0 when the job had no live
                         worker left, because the rows then contain pushes of open clocks, and when
                         a worker started again below the clocks that earlier workers closed */
    bool exact;       /* an exact image was wanted, and it is exact */
    uint64_t rows;    /* handed out */
} ps_image_view_t;
#endif
