/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's process: jobs, their workers, their work queue. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_cluster.h"

#define QUEUE "q"

static ps_registry_t *machine_of(const cluster_t *self)
{
    return self->registry->machine;
}

#define CLOCKS 1 /* the only question that is asked */

static void answer(cluster_t *self, const cluster_letter_t *question, cluster_letter_t *letter)
{
    letter->from = CLUSTER_REGISTRY;
    letter->to = question->from;
    letter->number = question->number;
    letter->joins = question->joins;
    cluster_post(self, letter);
}

static void say(cluster_t *self, const cluster_letter_t *question, cluster_letter_kind_t kind)
{
    answer(self, question, &(cluster_letter_t){.kind = kind});
}

/* ---- stored state ---- */

static void note_workers(cluster_t *self, const ps_job_t *job)
{
    cluster_facts_t *facts = &self->facts;

    self->job = job->id;
    for (size_t i = 0; i < job->n_workers; i++) {
        const ps_worker_t *worker = &job->workers[i];
        uint32_t rank = worker->worker;

        facts->runs[rank] = worker->state == PS_WORKER_RUNNING ? worker->joins : 0;
        if (worker->state == PS_WORKER_LOST && facts->lost[rank] < worker->joins) {
            facts->lost[rank] = worker->joins;
            facts->n_lost++;
            cluster_check_doubt(self, rank);
        }
    }
}

static void note_given(cluster_t *self, const ps_work_hold_t *hold)
{
    cluster_facts_t *facts = &self->facts;
    uint32_t holder = facts->holder[hold->slice];
    uint32_t joins = facts->joins[hold->slice];

    if (hold->epoch != facts->epoch || facts->counted[hold->epoch][hold->slice] != 0 ||
        (joins != 0 && facts->runs[holder] == joins)) {
        cluster_fail(self,
                     "slice %u of epoch %" PRIu64 " is given to worker %u, in "
                     "epoch %" PRIu64 "; counted %u times, worker %u has it",
                     hold->slice, hold->epoch, hold->worker, facts->epoch,
                     facts->counted[hold->epoch][hold->slice], holder);
    }
    facts->holder[hold->slice] = hold->worker;
    facts->joins[hold->slice] = hold->joins;
}

static void note_counted(cluster_t *self, const ps_work_hold_t *hold)
{
    cluster_facts_t *facts = &self->facts;

    if (hold->epoch != facts->epoch || facts->counted[hold->epoch][hold->slice]++ != 0 ||
        facts->holder[hold->slice] != hold->worker || facts->joins[hold->slice] != hold->joins ||
        facts->runs[hold->worker] != hold->joins) {
        cluster_fail(self,
                     "slice %u of epoch %" PRIu64 " is counted for worker %u, "
                     "in epoch %" PRIu64 "; %u times, worker %u had it",
                     hold->slice, hold->epoch, hold->worker, facts->epoch,
                     facts->counted[hold->epoch][hold->slice], facts->holder[hold->slice]);
    }
    facts->joins[hold->slice] = 0;
    facts->n_counted++;
}

static void note_work(cluster_t *self, const ps_work_t *work)
{
    cluster_facts_t *facts = &self->facts;

    for (size_t i = 0; i < work->n_holds && !self->failed; i++) {
        if (work->holds[i].kind == PS_WORK_GIVEN) {
            note_given(self, &work->holds[i]);
        } else {
            note_counted(self, &work->holds[i]);
        }
    }
    if (work->turns != (facts->n_counted == CLUSTER_SLICES)) {
        cluster_fail(self, "epoch %" PRIu64 " %s with %" PRIu64 " slices", facts->epoch,
                     work->turns ? "ends" : "does not end", facts->n_counted);
    }
    if (work->turns) {
        facts->epoch++;
        facts->n_counted = 0;
    }
}

void cluster_job_note(cluster_t *self, const ps_command_t *command)
{
    if (command->kind == PS_COMMAND_JOB) {
        note_workers(self, &command->job);
    } else if (command->kind == PS_COMMAND_QUEUE) {
        self->facts.epoch = command->work.epoch;
    } else if (command->kind == PS_COMMAND_WORK) {
        note_work(self, &command->work);
    }
}

/* ---- start ---- */

static ps_join_t join_of(const cluster_t *self, uint32_t worker)
{
    uint32_t n = self->plan.n_expected;

    return (ps_join_t){.job = "j",
                       .worker = worker,
                       .n_workers = n < self->plan.n_clients ? n : self->plan.n_clients,
                       .max_delay = self->plan.max_delay};
}

void cluster_job_begin(cluster_t *self)
{
    for (uint32_t i = 0; !self->plan.comes && i < self->plan.n_clients; i++) {
        PSD_AUTO(ps_command_done) ps_command_t command = {0};
        const ps_join_t join = join_of(self, i);

        cluster_need(ps_registry_plan_join(machine_of(self), &join, self->now_ms, &command, NULL) ==
                         PSD_OK,
                     "a worker that joins");
        (void)!cluster_registry_commit(self, &command);
        cluster_need(ps_registry_plan_start(machine_of(self), self->job, i, NULL, NULL, 0,
                                            self->now_ms, &command, NULL) == PSD_OK,
                     "a worker that starts");
        (void)!cluster_registry_commit(self, &command);
    }
}

/* ---- join ---- */

static bool has_ended(const cluster_t *self)
{
    return self->job != 0 &&
           strcmp(ps_registry_job_state(machine_of(self), self->job), "running") != 0;
}

static bool open_all(cluster_t *self)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};

    cluster_need(ps_registry_plan_job_table(machine_of(self), self->job, self->table, self->now_ms,
                                            &command, NULL) == PSD_OK,
                 "a table of the job");
    if (!cluster_registry_commit(self, &command)) {
        return false;
    }
    cluster_need(ps_registry_plan_queue(machine_of(self), self->job, QUEUE, CLUSTER_SLICES,
                                        CLUSTER_EPOCHS, self->now_ms, &command, NULL) == PSD_OK,
                 "a work queue");
    return cluster_registry_commit(self, &command);
}

/* A node's answer says that it has every earlier update. */
static void ask(cluster_t *self, cluster_joining_t *joining, uint32_t job)
{
    cluster_need(ps_overseer_ask(self->registry->overseer, CLOCKS, job, "", joining, self->now_ms,
                                 NULL) == PSD_OK,
                 "memory for a question");
    joining->asked = true;
}

/* A worker that already runs, because its answer was lost, counts as lost first. */
static void hear_enter(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_joining_t *joining = &self->registry->joining[letter->from];
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_join_t join = join_of(self, letter->from);

    if (joining->number != 0) {
        return;
    }
    if (has_ended(self)) {
        say(self, letter, CLUSTER_OVER);
        return;
    }
    if (ps_registry_plan_join(machine_of(self), &join, self->now_ms, &command, NULL) != PSD_OK) {
        return;
    }
    cluster_trace(self, "registry: %s", command.text);
    if (!cluster_registry_commit(self, &command) || !open_all(self)) {
        return;
    }
    *joining = (cluster_joining_t){.number = letter->number};
    ask(self, joining, self->job);
}

static bool agree(cluster_t *self, uint32_t rank)
{
    cluster_joining_t *joining = &self->registry->joining[rank];
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    uint32_t ranks[CLUSTER_WORKERS_MAX];

    for (uint32_t i = 0; i < CLUSTER_WORKERS_MAX; i++) {
        ranks[i] = i;
    }
    if (ps_registry_plan_start(machine_of(self), self->job, rank, ranks, joining->clocks,
                               CLUSTER_WORKERS_MAX, self->now_ms, &command, NULL) != PSD_OK) {
        joining->number = 0; /* it was lost meanwhile */
        return true;
    }
    cluster_trace(self, "registry: %s", command.text);
    if (!cluster_registry_commit(self, &command)) {
        return false;
    }
    joining->started = true;
    ask(self, joining, 0);
    return true;
}

static void let_in(cluster_t *self, uint32_t rank)
{
    cluster_joining_t *joining = &self->registry->joining[rank];
    const ps_job_t *job = ps_registry_job_by_id(machine_of(self), self->job);
    const ps_worker_t *worker = ps_job_worker(job, rank);

    cluster_post(self, &(cluster_letter_t){.kind = CLUSTER_ENTERED,
                                           .from = CLUSTER_REGISTRY,
                                           .to = rank,
                                           .number = joining->number,
                                           .joins = worker->joins,
                                           .clock = worker->start,
                                           .routes = cluster_registry_routes(self)});
    self->facts.n_joins++;
    joining->number = 0;
}

/* ---- leave ---- */

static bool lose_workers(cluster_t *self)
{
    bool more = true;

    while (more) {
        PSD_AUTO(ps_command_done) ps_command_t command = {0};

        cluster_need(ps_registry_plan_silent(machine_of(self), self->now_ms, self->now_ms, &command,
                                             NULL) == PSD_OK,
                     "workers that are lost");
        more = command.kind != 0;
        if (more) {
            cluster_trace(self, "registry: %s", command.text);
            if (!cluster_registry_commit(self, &command)) {
                return false;
            }
        }
    }
    return true;
}

/* The greatest clock of each worker that a shard knows. */
static void take_clocks(cluster_joining_t *joining, const ps_answers_t *answers)
{
    memset(joining->clocks, 0, sizeof joining->clocks);
    for (size_t i = 0; i < answers->n; i++) {
        for (size_t k = 0; k < answers->at[i].n_clocks; k++) {
            const ps_clock_info_t *info = &answers->at[i].clocks[k];
            uint64_t *clock = &joining->clocks[info->worker];

            *clock = info->max > *clock ? info->max : *clock;
        }
    }
}

/* Nodes have answered. Before the start is agreed, all nodes that count must
 * answer, also one that may still serve the job while silent. Then the
 * worker may join, whichever nodes have not answered, as in the control
 * part. */
void cluster_job_decide(cluster_t *self)
{
    ps_overseer_t *overseer = self->registry->overseer;
    ps_question_t *question = NULL;

    if (!lose_workers(self)) {
        return;
    }
    while ((question = ps_overseer_next_done(overseer)) != NULL) {
        cluster_joining_t *joining = question->context;
        uint32_t rank = (uint32_t)(joining - self->registry->joining);
        bool all = question->missing[0] == '\0';

        take_clocks(joining, &question->answers);
        ps_question_destroy(&question);
        joining->asked = false;
        if (joining->number != 0 && joining->started) {
            let_in(self, rank);
        } else if (joining->number != 0 && all && !agree(self, rank)) {
            return;
        }
    }
    for (uint32_t i = 0; i < self->plan.n_clients; i++) {
        cluster_joining_t *joining = &self->registry->joining[i];

        if (joining->number != 0 && !joining->asked) {
            ask(self, joining, self->job);
        }
    }
}

static void hear_exit(cluster_t *self, const cluster_letter_t *letter)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_job_t *job = ps_registry_job_by_id(machine_of(self), self->job);
    const ps_worker_t *worker = ps_job_worker(job, letter->from);
    psd_status_t rc = PSD_WORKER_LOST;

    if (worker->joins == letter->joins) {
        rc = ps_registry_plan_end(machine_of(self), self->job, letter->from, PS_WORKER_FINISHED,
                                  self->now_ms, &command, NULL);
    }
    if (rc == PSD_OK && command.kind != 0) {
        cluster_trace(self, "registry: %s", command.text);
        if (!cluster_registry_commit(self, &command)) {
            return;
        }
    }
    say(self, letter, rc == PSD_OK ? CLUSTER_EXITED : CLUSTER_LOST);
}

/* ---- the queue ---- */

static void hear_work(cluster_t *self, const cluster_letter_t *letter)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    cluster_letter_t reply = {.kind =
                                  letter->kind == CLUSTER_NEXT ? CLUSTER_SLICE : CLUSTER_COUNTED};
    const ps_work_ask_t asks = {.job = self->job,
                                .queue = QUEUE,
                                .worker = letter->from,
                                .joins = letter->joins,
                                .session = (uint64_t)letter->from + 1,
                                .number = letter->number,
                                .epoch = letter->work.epoch,
                                .slice = letter->work.slice};
    psd_status_t rc = PSD_OK;

    if (letter->kind == CLUSTER_NEXT) {
        rc = ps_registry_plan_work_next(machine_of(self), &asks, self->now_ms, &command,
                                        &reply.work, NULL);
    } else {
        rc = ps_registry_plan_work_done(machine_of(self), &asks, self->now_ms, &command, NULL);
    }
    if (rc == PSD_OK) {
        if (cluster_registry_commit(self, &command)) {
            answer(self, letter, &reply);
        }
    } else if (rc == PSD_WORKER_LOST) {
        say(self, letter, CLUSTER_LOST);
    } else {
        cluster_fail(self, "a question about work is refused: %s", psd_status_name(rc));
    }
}

void cluster_job_letter(cluster_t *self, const cluster_letter_t *letter)
{
    if (letter->kind == CLUSTER_ENTER) {
        hear_enter(self, letter);
    } else if (letter->kind == CLUSTER_EXIT) {
        hear_exit(self, letter);
    } else if (letter->kind == CLUSTER_ALIVE) {
        if (ps_registry_heartbeat(machine_of(self), self->job, letter->from, letter->joins,
                                  letter->clock, self->now_ms, NULL) == PSD_WORKER_LOST) {
            say(self, letter, CLUSTER_LOST);
        }
    } else {
        hear_work(self, letter);
    }
}
