/* SPDX-License-Identifier: Apache-2.0 */
/* What psd answers to heartbeats of workers that take turns (pairs): a plan by what they have
 * measured, and nothing but a reason to one whose settings are not those of the others. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "support/control.h"

/* The version of the plan in an answer; 0: there is none. */
static uint64_t plan_of(const control_t *c)
{
    const char *at = strstr(c->reply, "\"plan\":");

    return at == NULL ? 0 : strtoull(at + strlen("\"plan\":"), NULL, 10);
}

/* A heartbeat of a worker that takes turns with another one. */
typedef struct turns {
    const char *job;
    int worker;
    uint64_t plan;
    const char *greed;
    int clock;
    int us; /* that 1 MB to the other one took since the last one; 0: it has sent nothing */
} turns_t;

static bool turns_beat(control_t *c, const turns_t *said, const char *part)
{
    char link[80] = "";
    char fields[400];

    if (said->us > 0) {
        (void)snprintf(link, sizeof link, "{\"worker\":%d,\"bytes\":1000000,\"us\":%d}",
                       1 - said->worker, said->us);
    }
    (void)snprintf(fields, sizeof fields,
                   ",\"job\":\"%s\",\"worker\":%d,\"clock\":%d,\"joins\":1,\"plan\":%" PRIu64
                   ",\"relay\":\"tcp://127.0.0.1:%d\",\"overlay\":{\"policy\":\"pairs\","
                   "\"clock\":%d,\"ago_us\":0,\"bytes\":%d,\"links\":[%s],\"num\":0,\"ratio\":0.1,"
                   "\"expiry\":1000000,\"greed\":%s,\"rows\":false}",
                   said->job, said->worker, said->clock, said->plan, 1 + said->worker, said->clock,
                   said->clock * 1000000, link, said->greed);
    return control_ask(c, "heartbeat", fields, part);
}

static bool turns_join(control_t *c, const char *job)
{
    for (int i = 0; i < 2; i++) {
        char fields[80];

        (void)snprintf(fields, sizeof fields,
                       ",\"job\":\"%s\",\"worker\":%d,\"workers\":2,\"max_delay\":0", job, i);
        CHECK(control_ask(c, "job_join", fields, "\"OK\""));
    }
    return true;
}

/* It may have one of another registry member, where it came first. */
static bool a_worker_that_wants_something_else_loses_its_plan(daemon_t *d)
{
    const char *why =
        "\"relay_refused\":\"PSD_OVERLAY_GREED of worker 1 is 1, and that of worker 0 "
        "is 0.5; allowed: the same for all workers of a job\"";
    control_t a = {.fd = -1};

    CHECK(control_open(&a, d, 98));
    CHECK(turns_join(&a, "op"));
    CHECK(turns_beat(&a, &(turns_t){"op", 0, 0, "0.5", 0, 0}, "\"parents\":[0]"));
    CHECK(turns_beat(&a, &(turns_t){"op", 1, 0, "1", 0, 0}, why));
    CHECK(plan_of(&a) == 0);
    CHECK(turns_beat(&a, &(turns_t){"op", 1, 7, "1", 0, 0}, why));
    CHECK(plan_of(&a) == 8 && strstr(a.reply, "\"workers\":[]") != NULL);
    CHECK(turns_beat(&a, &(turns_t){"op", 1, 8, "1", 0, 0}, why));
    CHECK(plan_of(&a) == 0);
    CHECK(turns_beat(&a, &(turns_t){"op", 1, 8, "0.5", 0, 0}, "\"parents\":["));
    CHECK(plan_of(&a) > 8 && strstr(a.reply, "relay_refused") == NULL);
    CHECK(control_ask(&a, "job_stop", ",\"job\":\"op\"", "\"OK\""));
    control_close(&a);
    return true;
}

/* One tree goes each way at first, as nothing is known; 1 MB takes worker 0 1 s, and worker 1 10
 * ms. Their clocks go on until the plan is another one, 2 s later, whatever the expiry is. */
static bool a_slow_way_is_left(daemon_t *d)
{
    const struct timespec step = {.tv_nsec = 50000000};
    control_t a = {.fd = -1};
    uint64_t plan = 0;

    CHECK(control_open(&a, d, 99));
    CHECK(turns_join(&a, "os"));
    CHECK(turns_beat(&a, &(turns_t){"os", 0, 0, "1", 0, 0}, "\"parents\":[0]"));
    CHECK(turns_beat(&a, &(turns_t){"os", 1, 0, "1", 0, 0}, "\"parents\":[2,0,0,1]"));
    plan = plan_of(&a);
    CHECK(turns_beat(&a, &(turns_t){"os", 0, plan, "1", 1, 1000000}, "\"OK\""));
    CHECK(turns_beat(&a, &(turns_t){"os", 1, plan, "1", 1, 10000}, "\"OK\""));
    CHECK(plan_of(&a) == 0);
    for (int clock = 2; clock < 1200 && plan_of(&a) == 0; clock++) {
        CHECK(turns_beat(&a, &(turns_t){"os", 1, plan, "1", clock, 0}, "\"OK\""));
        CHECK(turns_beat(&a, &(turns_t){"os", 0, plan, "1", clock, 0}, "\"OK\""));
        (void)nanosleep(&step, NULL);
    }
    CHECK(plan_of(&a) > plan && strstr(a.reply, "\"parents\":[0,1,0,1]") != NULL);
    CHECK(control_ask(&a, "job_inspect", ",\"job\":\"os\"",
                      "{\"from\":1,\"to\":0,\"bytes\":1000000,\"bytes_s\":100000000,"));
    CHECK(control_ask(&a, "job_stop", ",\"job\":\"os\"", "\"OK\""));
    control_close(&a);
    return true;
}

int main(void)
{
    daemon_t d = {.pid = 0};
    bool good = daemon_start(&d, "shards: 2\nworkers: {heartbeat_ms: 50, lost_after_ms: 60000}\n");

    RUN(a_worker_that_wants_something_else_loses_its_plan(&d));
    RUN(a_slow_way_is_left(&d));
    RUN(daemon_end(&d, SIGTERM));
    daemon_drop(&d, !good);
    return good ? 0 : 1;
}
