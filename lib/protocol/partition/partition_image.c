/* SPDX-License-Identifier: Apache-2.0 */
/* When the image of a partition begins, and which requests wait for it. */
#include "model/store/store_image.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"

#define STEP_BYTES ((size_t)64 << 10) /* of an image; requests wait so long */

uint64_t ps_partition_closed(const ps_partition_t *self, uint32_t job)
{
    const ps_job_place_t *place = ps_partition_find_place(self, job);

    if (place == NULL) {
        return 0;
    }
    return ps_gate_is_bsp(place->gate) ? place->applied : ps_gate_closed(place->gate);
}

uint64_t ps_partition_highest(const ps_partition_t *self, uint32_t job)
{
    const ps_gate_t *gate = ps_partition_gate(self, job);

    return gate == NULL ? 0 : ps_gate_highest(gate);
}

/* The image wants rows changed after this version; 0: all. */
static uint64_t since_here(const ps_partition_t *self)
{
    const ps_image_since_t *since = &self->image.since;

    return ps_store_has_versions(self->store) &&
                   ps_epochs_have(&self->epochs, since->lsn, since->epoch)
               ? since->version
               : 0;
}

/* True when its clock is closed, or no worker is left to close it. */
static bool may_begin(const ps_partition_t *self)
{
    const ps_partition_image_t *image = &self->image;
    const ps_gate_t *gate = ps_partition_gate(self, image->job);

    if (image->in_turn) {
        return false;
    }
    return image->job == 0 || ps_partition_closed(self, image->job) >= image->clock ||
           (gate != NULL && ps_gate_is_deserted(gate));
}

/* The clock whose pushes, and no others of BSP, are in the rows; 0: of none. */
static uint64_t clock_of_rows(const ps_partition_t *self, uint32_t job)
{
    const ps_gate_t *gate = ps_partition_gate(self, job);

    return gate != NULL && ps_gate_is_settled(gate) ? ps_partition_closed(self, job) : 0;
}

bool ps_partition_image_holds(const ps_step_t *step, const ps_partition_t *self,
                              const ps_request_t *request)
{
    const ps_partition_image_t *image = &self->image;
    const ps_gate_t *gate = ps_partition_gate(self, request->job);
    bool marks = ps_request_marks(request);

    if (marks && image->hold_ms > step->now_ms) {
        return true;
    }
    if (!image->exact || image->view.state != PS_IMAGE_PENDING || request->job != image->job ||
        gate == NULL) {
        return false;
    }
    if (marks && ps_request_finishes(request) > image->clock) {
        return true;
    }
    /* BSP keeps pushes of a clock out of the rows until it closes anyway. */
    return request->kind == PS_KIND_PUSH && !ps_gate_is_bsp(gate) && request->clock >= image->clock;
}

void ps_partition_image_try(const ps_step_t *step, ps_partition_t *self)
{
    ps_partition_image_t *image = &self->image;
    const ps_image_args_t args = {
        .since = since_here(self), .early_bytes = image->early_bytes, .step_bytes = STEP_BYTES};
    uint64_t clock = clock_of_rows(self, image->job);

    if (image->view.state != PS_IMAGE_PENDING || !may_begin(self)) {
        return;
    }
    if (!ps_partition_may_answer(step, self)) {
        image->view.state = PS_IMAGE_NONE; /* another copy may have rows that it lacks */
        return;
    }
    if (ps_partition_is_restoring(self)) {
        image->view.state = PS_IMAGE_RESTORING;
        return;
    }
    if (ps_store_image_begin(self->store, &args, NULL) != PSD_OK) {
        image->view.state = PS_IMAGE_FAILED;
        return;
    }
    image->view = (ps_image_view_t){.state = PS_IMAGE_BEGUN,
                                    .lsn = self->lsn,
                                    .lsn_epoch = self->lsn_epoch,
                                    .since = args.since,
                                    .epoch = self->epoch,
                                    .version = self->version,
                                    .clock = clock,
                                    .exact = image->exact && clock == image->clock &&
                                             ps_partition_highest(self, image->job) <= clock};
}
