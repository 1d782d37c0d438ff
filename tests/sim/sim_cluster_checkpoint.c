/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: the registry's letters, the nodes' images, and the check of their content. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "sim_cluster.h"

#define HOLD_MS 300     /* marks wait for the image to begin */
#define PATIENCE_MS 900 /* timeout, then the checkpoint is given up */
#define LEASE_MS 700    /* timeout of a node: the image is no longer wanted */
#define TURN_MS 15      /* between two pieces */
#define EARLY_BYTES 100000
#define PIECE_BYTES 300

static ps_registry_t *machine_of(const cluster_t *self)
{
    return self->registry->machine;
}

/* ---- the registry's part ---- */

static void tell_all(cluster_t *self, cluster_letter_kind_t kind)
{
    const cluster_checkpoint_t *checkpoint = &self->checkpoint;

    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        if (checkpoint->asked[i] != 0) {
            cluster_post(self, &(cluster_letter_t){.kind = kind,
                                                   .from = CLUSTER_REGISTRY,
                                                   .to = i,
                                                   .incarnation = checkpoint->asked[i],
                                                   .number = checkpoint->n,
                                                   .clock = checkpoint->clock,
                                                   .want = checkpoint->want});
        }
    }
}

static void give_up(cluster_t *self)
{
    cluster_trace(self, "registry: checkpoint %" PRIu64 " is given up", self->checkpoint.n);
    tell_all(self, CLUSTER_CEASE);
    self->checkpoint.works = false;
}

static bool job_runs(const cluster_t *self)
{
    return self->job != 0 &&
           strcmp(ps_registry_job_state(machine_of(self), self->job), "running") == 0;
}

static void begin(cluster_t *self)
{
    cluster_checkpoint_t *checkpoint = &self->checkpoint;

    checkpoint->n++;
    checkpoint->works = true;
    checkpoint->by = self->registry->at;
    checkpoint->fails = false;
    checkpoint->clock = 0;
    checkpoint->until_ms = self->now_ms + PATIENCE_MS;
    checkpoint->want = (cluster_want_t){.follows = job_runs(self),
                                        .changed = self->plan.versions && checkpoint->n % 2 == 0};
    checkpoint->want.exact = checkpoint->want.follows && cluster_below(self, 2) == 0;
    checkpoint->is_exact = checkpoint->want.exact;
    memset(checkpoint->done, 0, sizeof checkpoint->done);
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        char name[CLUSTER_NAME_SIZE];
        const ps_node_t *node = NULL;

        cluster_name(i, name);
        node = ps_registry_node(machine_of(self), name);
        checkpoint->asked[i] = node != NULL && node->up ? node->incarnation : 0;
        checkpoint->answered[i] = checkpoint->asked[i] == 0;
    }
    cluster_trace(self, "registry: checkpoint %" PRIu64 "%s%s", checkpoint->n,
                  checkpoint->want.exact ? ", exact" : "",
                  checkpoint->want.changed ? ", of what changed" : "");
    tell_all(self, CLUSTER_ARM);
}

void cluster_checkpoint_start(cluster_t *self)
{
    if (self->plan.checkpoint_ms > 0) {
        (void)cluster_at(self, self->now_ms + self->plan.checkpoint_ms, CLUSTER_CHECKPOINT, 0);
    }
}

void cluster_checkpoint_time(cluster_t *self)
{
    cluster_checkpoint_t *checkpoint = &self->checkpoint;

    if (checkpoint->works || self->now_ms < CLUSTER_CALM_MS) {
        (void)cluster_at(self, self->now_ms + self->plan.checkpoint_ms, CLUSTER_CHECKPOINT, 0);
    }
    if (machine_of(self) == NULL || (checkpoint->works && checkpoint->by != self->registry->at)) {
        return;
    }
    if (!checkpoint->works) {
        if (cluster_registry_is_settled(self)) {
            begin(self);
        }
    } else if (checkpoint->fails || self->now_ms > checkpoint->until_ms) {
        give_up(self);
    } else {
        tell_all(self, CLUSTER_LOOK);
    }
}

void cluster_checkpoint_forget(cluster_t *self)
{
    self->checkpoint.works = false;
}

/* A clock after every known finished one. false: some worker has not
 * reported yet. */
static bool next_clock(const cluster_t *self, uint64_t *clock)
{
    const ps_job_t *job = ps_registry_job_by_id(machine_of(self), self->job);

    for (size_t i = 0; i < job->n_workers; i++) {
        const ps_worker_t *worker = &job->workers[i];
        uint64_t seen_ms = 0;
        uint64_t finished = 0;

        if (worker->state != PS_WORKER_RUNNING) {
            continue;
        }
        if (!ps_registry_last_seen(machine_of(self), job->id, worker->worker, &seen_ms,
                                   &finished)) {
            return false;
        }
        *clock = finished > *clock ? finished : *clock;
    }
    ++*clock;
    return true;
}

/* All nodes hold back marks: the images begin. */
static void name_clock(cluster_t *self)
{
    cluster_checkpoint_t *checkpoint = &self->checkpoint;
    bool runs = job_runs(self); /* it may have begun since; pushes of its open
                                   clocks are in no rows */

    if (!cluster_registry_is_settled(self) ||
        (checkpoint->want.exact && !next_clock(self, &checkpoint->clock))) {
        give_up(self);
        return;
    }
    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        for (uint32_t row = 0; row < CLUSTER_ROWS; row++) {
            checkpoint->must[i][row] = self->pushed[i][row].acked && !runs;
        }
    }
    cluster_trace(self, "registry: checkpoint %" PRIu64 " at clock %" PRIu64, checkpoint->n,
                  checkpoint->clock);
    tell_all(self, CLUSTER_IMAGE);
}

void cluster_checkpoint_letter(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_checkpoint_t *checkpoint = &self->checkpoint;

    if (!checkpoint->works || checkpoint->by != self->registry->at ||
        letter->number != checkpoint->n || letter->incarnation != checkpoint->asked[letter->from] ||
        checkpoint->answered[letter->from]) {
        return;
    }
    checkpoint->answered[letter->from] = true;
    if (letter->clock > checkpoint->clock) {
        checkpoint->clock = letter->clock;
    }
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        if (!checkpoint->answered[i]) {
            return;
        }
    }
    name_clock(self);
}

/* ---- the content of an image ---- */

static void check_row(cluster_t *self, uint32_t partition, uint32_t row,
                      const ps_image_view_t *view, bool is_there)
{
    const cluster_checkpoint_t *checkpoint = &self->checkpoint;
    const cluster_pushed_t *push = &self->pushed[partition][row];
    bool before = push->started && push->clock < view->clock;
    bool at_most = view->clock > 0 && (self->plan.max_delay == 0 || view->exact);

    if (!checkpoint->want.follows) {
        if (!is_there && checkpoint->must[partition][row] && !push->voided) {
            cluster_fail(self,
                         "S2: partition %u row %u was acknowledged, and is not "
                         "in checkpoint %" PRIu64,
                         partition, row, checkpoint->n);
        }
    } else if (is_there ? at_most && !before : before && !push->doubtful) {
        cluster_fail(self,
                     "S2: partition %u row %u of clock %" PRIu64 " is%s in checkpoint %" PRIu64
                     " of clock %" PRIu64,
                     partition, row, push->clock, is_there ? "" : " not", checkpoint->n,
                     view->clock);
    }
}

/* Of a client that lost nothing, the image has all pushes up to one of them. */
static void check_order(cluster_t *self, uint32_t partition, uint32_t client,
                        const bool rows[CLUSTER_ROWS])
{
    uint32_t missing = CLUSTER_ROWS;

    for (uint32_t k = 0; k < CLUSTER_PUSHES_MAX; k++) {
        uint32_t row = client * CLUSTER_PUSHES_MAX + k;
        const cluster_pushed_t *push = &self->pushed[partition][row];

        if (push->doubtful || push->voided) {
            return;
        }
        if (rows[row] && missing < row) {
            cluster_fail(self, "S2: checkpoint %" PRIu64 " has partition %u row %u, not row %u",
                         self->checkpoint.n, partition, row, missing);
        }
        if (push->started && !rows[row] && missing == CLUSTER_ROWS) {
            missing = row;
        }
    }
}

static void check_image(cluster_t *self, uint32_t partition, const cluster_image_t *image)
{
    cluster_checkpoint_t *checkpoint = &self->checkpoint;
    cluster_kept_t *now = &checkpoint->now[partition];
    const cluster_kept_t *kept = &checkpoint->kept[partition];
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *rows = cluster_rows_of(image->rows, partition);

    *now = (cluster_kept_t){.at = {.version = image->view.version,
                                   .lsn = image->view.lsn,
                                   .epoch = image->view.lsn_epoch}};
    for (uint32_t row = 0; row < CLUSTER_ROWS; row++) {
        uint64_t value = ps_load_u64(rows->spans[0].data + (size_t)8 * row);

        if (value > (self->pushed[partition][row].started ? 1 : 0)) {
            cluster_fail(self,
                         "W1: checkpoint %" PRIu64 " has partition %u row %u %" PRIu64 " times",
                         checkpoint->n, partition, row, value);
        }
        now->rows[row] = value > 0 || (image->view.since > 0 && kept->rows[row]);
        check_row(self, partition, row, &image->view, now->rows[row]);
    }
    for (uint32_t i = 0; !self->plan.job && i < self->plan.n_clients; i++) {
        check_order(self, partition, i, now->rows);
    }
    checkpoint->is_exact = checkpoint->is_exact && image->view.exact;
    if (checkpoint->want.exact && image->view.exact && image->view.clock != checkpoint->clock) {
        cluster_fail(self,
                     "S2: an exact image of partition %u is of clock %" PRIu64 ", not %" PRIu64,
                     partition, image->view.clock, checkpoint->clock);
    }
}

/* The whole image was handed out. */
static void take(cluster_t *self, uint32_t partition, const cluster_image_t *image)
{
    cluster_checkpoint_t *checkpoint = &self->checkpoint;

    check_image(self, partition, image);
    checkpoint->done[partition] = true;
    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        if (!checkpoint->done[i]) {
            return;
        }
    }
    cluster_trace(self, "registry: checkpoint %" PRIu64 " is whole", checkpoint->n);
    memcpy(checkpoint->kept, checkpoint->now, sizeof checkpoint->kept);
    checkpoint->n_whole++;
    checkpoint->n_exact += checkpoint->is_exact ? 1 : 0;
    checkpoint->works = false;
}

/* ---- a node's part ---- */

void cluster_images_done(cluster_images_t *self)
{
    for (uint32_t i = 0; i < CLUSTER_PARTITIONS_MAX; i++) {
        ps_store_destroy(&self->of[i].rows);
    }
    *self = (cluster_images_t){0};
}

static void end_image(cluster_t *self, ps_shard_t *machine, const ps_image_step_t *step,
                      const void *order)
{
    (void)step;
    ps_shard_image_end(machine, self->table, *(const uint32_t *)order);
}

static void end_images(cluster_t *self, uint32_t node, uint32_t at)
{
    cluster_images_t *images = &self->nodes[node].shards[at].images;

    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        if (images->of[i].state != CLUSTER_NO_IMAGE) {
            cluster_node_work(self, node, at, end_image, &i);
        }
    }
    cluster_images_done(images);
}

typedef struct armed {
    ps_image_order_t order;
    uint64_t *clock; /* the greatest so far */
} armed_t;

static void arm_image(cluster_t *self, ps_shard_t *machine, const ps_image_step_t *step,
                      const void *order)
{
    const armed_t *armed = order;
    uint64_t clock = ps_shard_image_arm(machine, step, &armed->order, HOLD_MS);

    (void)self;
    *armed->clock = clock > *armed->clock ? clock : *armed->clock;
}

static ps_image_order_t order_of(const cluster_t *self, const cluster_letter_t *letter)
{
    return (ps_image_order_t){.table = self->table,
                              .job = letter->want.follows ? self->job : 0,
                              .clock = letter->clock,
                              .early_bytes = EARLY_BYTES,
                              .exact = letter->want.exact,
                              .in_turn = letter->number % 2 == 1};
}

static void arm(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_letter_t answer = {.kind = CLUSTER_ARMED,
                               .from = letter->to,
                               .to = CLUSTER_REGISTRY,
                               .incarnation = letter->incarnation,
                               .number = letter->number};
    const armed_t armed = {.order = order_of(self, letter), .clock = &answer.clock};

    for (uint32_t at = 0; at < self->plan.n_shards[letter->to]; at++) {
        end_images(self, letter->to, at);
        if (letter->want.follows) {
            cluster_node_work(self, letter->to, at, arm_image, &armed);
        }
    }
    cluster_post(self, &answer);
}

static void begin_image(cluster_t *self, ps_shard_t *machine, const ps_image_step_t *step,
                        const void *order)
{
    (void)self;
    ps_shard_image_begin(machine, step, order);
}

static void plan_turn(cluster_t *self, uint32_t node, uint32_t at)
{
    cluster_event_t *event =
        cluster_at(self, self->now_ms + 1 + cluster_below(self, TURN_MS), CLUSTER_IMAGE_TURN, node);

    event->b = at;
    event->incarnation = self->nodes[node].incarnation;
}

static void begin_images(cluster_t *self, const cluster_letter_t *letter, uint32_t at)
{
    cluster_shard_t *shard = &self->nodes[letter->to].shards[at];
    ps_image_order_t order = order_of(self, letter);
    ps_image_since_t since[CLUSTER_PARTITIONS_MAX];
    ps_table_spec_t spec;

    end_images(self, letter->to, at);
    shard->images.number = letter->number;
    shard->images.looked_ms = self->now_ms;
    cluster_spec_make(&self->plan, &spec);
    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        cluster_image_t *image = &shard->images.of[i];

        since[i] = self->checkpoint.kept[i].at;
        if (ps_shard_image_look(shard->machine, self->table, i, &image->view)) {
            image->state = CLUSTER_IMAGE_WAITS;
            cluster_need(ps_store_new(&spec, i, &image->rows, NULL) == PSD_OK,
                         "memory for an image");
        }
    }
    order.since = letter->want.changed ? since : NULL;
    cluster_node_work(self, letter->to, at, begin_image, &order);
    plan_turn(self, letter->to, at);
}

void cluster_images_letter(cluster_t *self, const cluster_letter_t *letter)
{
    if (letter->kind == CLUSTER_ARM) {
        arm(self, letter);
        return;
    }
    for (uint32_t at = 0; at < self->plan.n_shards[letter->to]; at++) {
        cluster_images_t *images = &self->nodes[letter->to].shards[at].images;

        if (letter->kind == CLUSTER_IMAGE) {
            begin_images(self, letter, at);
        } else if (images->number == letter->number) {
            images->looked_ms = self->now_ms;
            if (letter->kind == CLUSTER_CEASE) {
                end_images(self, letter->to, at);
            }
        }
    }
}

/* The next piece of an image that has begun. false: it fails. */
static bool walk(cluster_t *self, uint32_t node, uint32_t at, uint32_t partition)
{
    cluster_shard_t *shard = &self->nodes[node].shards[at];
    cluster_image_t *image = &shard->images.of[partition];
    PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
    uint64_t version = 0;
    bool is_last = false;

    if (ps_shard_image_next(shard->machine, self->table, partition,
                            1 + (size_t)cluster_below(self, PIECE_BYTES), &piece, &is_last,
                            NULL) != PSD_OK) {
        return false;
    }
    if (piece != NULL && ps_store_put(image->rows, piece->span, &version, NULL) != PSD_OK) {
        cluster_fail(self, "a piece of an image that does not fit");
    }
    if (is_last) {
        cluster_node_work(self, node, at, end_image, &partition);
        image->state = CLUSTER_NO_IMAGE;
        if (self->checkpoint.works && shard->images.number == self->checkpoint.n) {
            take(self, partition, image);
        }
    }
    return true;
}

static void take_turn(cluster_t *self, ps_shard_t *machine, const ps_image_step_t *step,
                      const void *partition)
{
    ps_shard_image_take_turn(machine, step, self->table, *(const uint32_t *)partition);
}

static bool go_on(cluster_t *self, uint32_t node, uint32_t at, uint32_t partition)
{
    cluster_shard_t *shard = &self->nodes[node].shards[at];
    cluster_image_t *image = &shard->images.of[partition];
    ps_image_view_t view = {0};

    if (image->state == CLUSTER_NO_IMAGE) {
        return true;
    }
    if (!ps_shard_image_look(shard->machine, self->table, partition, &view) ||
        (view.state != PS_IMAGE_PENDING && view.state != PS_IMAGE_BEGUN)) {
        return false;
    }
    if (view.state == PS_IMAGE_PENDING) {
        cluster_node_work(self, node, at, take_turn, &partition);
        return true;
    }
    if (image->state == CLUSTER_IMAGE_WAITS) {
        image->state = CLUSTER_IMAGE_WALKS;
        image->view = view;
    }
    return walk(self, node, at, partition);
}

void cluster_images_turn(cluster_t *self, uint32_t node, uint32_t at)
{
    cluster_images_t *images = &self->nodes[node].shards[at].images;
    bool goes = self->now_ms <= images->looked_ms + LEASE_MS;
    bool is_left = false;

    if (!self->nodes[node].alive || images->number == 0) {
        return;
    }
    for (uint32_t i = 0; goes && i < self->plan.n_partitions; i++) {
        goes = go_on(self, node, at, i);
        is_left = is_left || images->of[i].state != CLUSTER_NO_IMAGE;
    }
    if (!goes) {
        self->checkpoint.fails = self->checkpoint.fails || images->number == self->checkpoint.n;
        end_images(self, node, at);
    } else if (is_left) {
        plan_turn(self, node, at);
    }
}
