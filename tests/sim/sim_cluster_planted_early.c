/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a row that changes before an image has handed it out goes into
 * the image with the later value. */
#include "sim_cluster_planted.h"

void __wrap_ps_image_before_push(ps_store_t *self, const ps_slice_t *slice,
                                 const ps_payload_t *payload);

void __wrap_ps_image_before_push(ps_store_t *self, const ps_slice_t *slice,
                                 const ps_payload_t *payload)
{
    (void)self;
    (void)slice;
    (void)payload;
}

int main(void)
{
    return cluster_planted_main("no early rows");
}
