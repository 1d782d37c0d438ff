/* SPDX-License-Identifier: Apache-2.0 */
/* One who asks the registry for a change after the other, each until it is
 * answered, and gets a session number with each answer. */
#include <inttypes.h>

#include "base/alloc.h"
#include "sim_cluster.h"

#define AGAIN_MS 90
#define SESSION 4000     /* its own: of no client */
#define SESSIONS_AHEAD 4 /* stored at a time */

void cluster_request_time(cluster_t *self)
{
    cluster_story_t *story = &self->story;

    if (story->request == 0) {
        story->request = 1;
    }
    cluster_post(self, &(cluster_letter_t){
                           .kind = CLUSTER_WISH, .to = CLUSTER_REGISTRY, .number = story->request});
    if (self->now_ms < CLUSTER_CALM_MS) {
        (void)cluster_at(self, self->now_ms + 1 + cluster_below(self, AGAIN_MS), CLUSTER_REQUEST,
                         0);
    }
}

/* As the control part does: a request that is repeated is not done again. */
static bool do_it(cluster_t *self, uint64_t request)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};

    if (ps_registry_answer(self->registry->machine, SESSION, request) != NULL) {
        return true;
    }
    command = ps_registry_plan_note(self->registry->machine, self->now_ms, "a change");
    command.session = SESSION;
    command.request = request;
    return cluster_registry_commit(self, &command);
}

/* 0: it leads no more. */
static uint64_t take_session(cluster_t *self)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};

    cluster_need(ps_registry_plan_sessions(self->registry->machine, SESSIONS_AHEAD, self->now_ms,
                                           &command, NULL) == PSD_OK,
                 "session numbers");
    return cluster_registry_commit(self, &command)
               ? ps_registry_take_session(self->registry->machine)
               : 0;
}

void cluster_request_letter(cluster_t *self, const cluster_letter_t *letter)
{
    uint64_t session = 0;

    if (!do_it(self, letter->number)) {
        return;
    }
    session = take_session(self);
    if (session == 0) {
        return;
    }
    cluster_need(session < CLUSTER_GIVEN_MAX, "fewer sessions");
    if (self->story.given[session]) {
        cluster_fail(self, "L5: session %" PRIu64 " is given twice", session);
    }
    self->story.given[session] = true;
    cluster_post(self, &(cluster_letter_t){.kind = CLUSTER_GRANT,
                                           .from = CLUSTER_REGISTRY,
                                           .number = letter->number,
                                           .clock = session});
}

void cluster_request_answer(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_story_t *story = &self->story;

    if (letter->number != story->request) {
        return;
    }
    if (story->done[letter->number] != 1) {
        cluster_fail(self, "L5: request %" PRIu64 " is answered, and was done %u times",
                     letter->number, story->done[letter->number]);
    }
    story->request++;
    cluster_need(story->request < CLUSTER_REQUESTS_MAX, "fewer requests");
}

void cluster_request_note(cluster_t *self, const ps_command_t *command)
{
    if (command->session == SESSION && ++self->story.done[command->request] > 1) {
        cluster_fail(self, "L5: request %" PRIu64 " is done twice", command->request);
    }
}
