/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a worker has a relay, and by which rules: what the environment asks for. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/discovery/own_address.h"
#include "client/connection/rank_server.h"
#include "client/job/job.h"
#include "transport/environment/environment.h"

#define LEAVE_MS 500 /* to pass on what it has */
#define LISTEN_SIZE (PS_ADDRESS_SIZE + sizeof "tcp://[]:*")

static psd_status_t read(const char *name, const char *fallback, ps_environment_t *ret_said,
                         psd_error_t *err)
{
    psd_status_t rc = ps_environment_read(name, ret_said, err);

    if (rc == PSD_OK && ret_said->text != NULL) {
        return ps_env_check(ps_env_setting(name), ret_said->text, ret_said->origin, err);
    }
    ret_said->text = fallback;
    return rc;
}

/* What a worker's environment asks for. */
typedef struct choice {
    bool up;   /* deltas go from worker to worker … */
    bool down; /* … rows, too */
    ps_overlay_rules_t rules;
    ps_environment_t site;  /* PSD_SITE */
    ps_overlay_conf_t conf; /* owned */
} choice_t;

static void choice_done(choice_t *self)
{
    ps_overlay_conf_done(&self->conf);
}

static psd_status_t read_conf(const ps_environment_t *said, uint32_t n_workers,
                              ps_overlay_conf_t *conf, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *text = ps_alloc_raw(1, PS_OVERLAY_CONF_BYTES);
    size_t length = 0;
    psd_status_t rc = PSD_OK;

    if (text == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", said->text);
    }
    rc = ps_environment_file(said->text, text, PS_OVERLAY_CONF_BYTES, &length, err);
    if (rc == PSD_OK) {
        rc = ps_overlay_conf_read(conf, text, length, said->text, n_workers, err);
    }
    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "%s", said->origin);
}

/* A file, and greed: what pairs and queue go by. */
static psd_status_t choose_turns(const ps_wish_t *wish, choice_t *ret, psd_error_t *err)
{
    ps_environment_t said;
    double greed = 0;
    psd_status_t rc = read("PSD_OVERLAY_GREED", "0.5", &said, err);

    if (rc == PSD_OK && ps_text_f64(said.text, &greed)) {
        ret->rules.greed = greed;
        rc = read("PSD_OVERLAY_FILE", NULL, &said, err);
    }
    if (rc == PSD_OK && said.text == NULL && ret->rules.is_listed) {
        return psd_error_set(err, PSD_INVALID,
                             "PSD_OVERLAY_LINKS is \"listed\", and PSD_OVERLAY_FILE, which lists "
                             "them, is not set; set both");
    }
    if (rc == PSD_OK && said.text != NULL) {
        rc = read_conf(&said, wish->n_workers, &ret->conf, err);
    }
    ps_overlay_conf_fill(&ret->conf, &ret->rules);
    return rc;
}

/* The others do not know them, and would not do what they say. */
static psd_status_t check_no_turns(const choice_t *choice, psd_error_t *err)
{
    static const char *const NAMES[] = {"PSD_OVERLAY_FILE", "PSD_OVERLAY_GREED"};
    const char *policy = ps_policy_name(choice->rules.policy);
    ps_environment_t said;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < sizeof NAMES / sizeof *NAMES; i++) {
        rc = read(NAMES[i], NULL, &said, err);
        if (rc == PSD_OK && said.text != NULL) {
            return psd_error_set(err, PSD_INVALID,
                                 "%s makes %s \"%.40s\", and PSD_OVERLAY is \"%s\"; allowed with: "
                                 "pairs, queue",
                                 said.origin, NAMES[i], said.text, policy);
        }
    }
    if (rc == PSD_OK && choice->rules.is_listed) {
        rc = read("PSD_OVERLAY_LINKS", NULL, &said, err);
    }
    return rc == PSD_OK && choice->rules.is_listed
               ? psd_error_set(err, PSD_INVALID,
                               "%s makes PSD_OVERLAY_LINKS \"listed\", and PSD_OVERLAY is \"%s\"; "
                               "allowed with: pairs, queue",
                               said.origin, policy)
               : rc;
}

/* Which ways there are. */
static psd_status_t choose_ways(choice_t *ret, psd_error_t *err)
{
    ps_environment_t up = {.text = "on"};
    ps_environment_t down = {.text = "on"};
    ps_environment_t links = {.text = "complete"};
    psd_status_t rc = read("PSD_OVERLAY_LINKS", "complete", &links, err);

    if (rc == PSD_OK) {
        rc = read("PSD_OVERLAY_UP", "on", &up, err);
    }
    if (rc == PSD_OK) {
        ret->up = strcmp(up.text, "off") != 0 && strcmp(links.text, "star") != 0;
        ret->rules.is_listed = strcmp(links.text, "listed") == 0;
        rc = read("PSD_OVERLAY_DOWN", ret->rules.is_listed ? "off" : "on", &down, err);
    }
    if (rc == PSD_OK) {
        ret->down = ret->up && strcmp(down.text, "on") == 0;
        ret->rules.both_ways = ret->down;
    }
    return rc;
}

/* ---- sites ---- */

/* What the three variables of policies say; text NULL: nothing. */
typedef struct policies {
    ps_environment_t all;
    ps_environment_t within;
    ps_environment_t between;
} policies_t;

static bool says(const ps_environment_t *said, const char *word)
{
    return said->text != NULL && strcmp(said->text, word) == 0;
}

static bool is_on(const ps_environment_t *said)
{
    return said->text != NULL && !says(said, "off");
}

static psd_status_t read_policies(policies_t *ret, psd_error_t *err)
{
    psd_status_t rc = read("PSD_OVERLAY", NULL, &ret->all, err);

    if (rc == PSD_OK) {
        rc = read("PSD_OVERLAY_WITHIN", NULL, &ret->within, err);
    }
    return rc == PSD_OK ? read("PSD_OVERLAY_BETWEEN", NULL, &ret->between, err) : rc;
}

/* The one that holds for all: PSD_OVERLAY, or what is said of sites alone. */
static const ps_environment_t *find_policy(const policies_t *said)
{
    if (said->all.text != NULL) {
        return &said->all;
    }
    return is_on(&said->within) ? &said->within : &said->between;
}

/* One plan has one policy, within sites and between them. */
static psd_status_t check_policy(const ps_environment_t *said, const char *name,
                                 const ps_environment_t *policy, psd_error_t *err)
{
    if (!is_on(said) || strcmp(said->text, policy->text) == 0) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "%s makes %s \"%s\", and %s makes the overlay \"%s\"; allowed with it: off"
                         "%s%s",
                         said->origin, name, said->text, policy->origin, policy->text,
                         strcmp(policy->text, "auto") == 0 ? "" : ", ",
                         strcmp(policy->text, "auto") == 0 ? "" : policy->text);
}

/* Where workers are, and what that changes. */
static psd_status_t choose_sites(const policies_t *said, const ps_wish_t *wish, choice_t *ret,
                                 psd_error_t *err)
{
    const ps_environment_t *policy = find_policy(said);
    ps_site_t site;
    psd_status_t rc = check_policy(&said->within, "PSD_OVERLAY_WITHIN", policy, err);

    if (rc == PSD_OK) {
        rc = check_policy(&said->between, "PSD_OVERLAY_BETWEEN", policy, err);
    }
    ret->rules.apart = says(&said->within, "off");
    ret->rules.between = is_on(&said->between);
    if (rc == PSD_OK && ret->rules.apart && ret->rules.between) {
        return psd_error_set(err, PSD_INVALID,
                             "%s makes PSD_OVERLAY_BETWEEN \"%s\", and PSD_OVERLAY_WITHIN is "
                             "\"off\": what is added up between sites are the sums of each; "
                             "allowed: off for both, or not for PSD_OVERLAY_WITHIN",
                             said->between.origin, said->between.text);
    }
    if (rc == PSD_OK) {
        rc = read("PSD_SITE", NULL, &ret->site, err);
    }
    return rc == PSD_OK ? ps_site_find(ret->site.text, ret->site.origin, wish->worker, &site, err)
                        : rc;
}

/* ---- all of it ---- */

static psd_status_t choose(const ps_wish_t *wish, choice_t *ret, psd_error_t *err)
{
    policies_t said;
    const ps_environment_t *policy = NULL;
    psd_status_t rc = read_policies(&said, err);

    policy = rc == PSD_OK ? find_policy(&said) : NULL;
    if (policy == NULL || !is_on(policy) || !ps_policy_find(policy->text, &ret->rules.policy)) {
        return rc; /* off */
    }
    if (wish->max_delay != 0 && ret->rules.policy != PS_POLICY_TREE) {
        return psd_error_set(err, PSD_INVALID,
                             "%s makes PSD_OVERLAY \"%s\", which needs max_delay 0; it is %d; "
                             "allowed with it: tree, off",
                             policy->origin, policy->text, wish->max_delay);
    }
    rc = choose_sites(&said, wish, ret, err);
    if (rc == PSD_OK) {
        rc = choose_ways(ret, err);
    }
    /* rows of one moment are not those of the next: nobody can share them */
    ret->down = ret->down && wish->max_delay == 0;
    ret->rules.both_ways = ret->down;
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_policy_has_turns(ret->rules.policy) ? choose_turns(wish, ret, err)
                                                  : check_no_turns(ret, err);
}

/* Where the others reach this worker: at the address that its host has on the way to psd.
 * *ret_here: psd is on this host, so deltas pass no link that could be slow. */
static void find_listen(const psd_client_t *client, char ret_listen[LISTEN_SIZE], bool *ret_here)
{
    char own[PS_ADDRESS_SIZE];
    char port[LISTEN_SIZE];
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();

    if (ps_rank_server_name(own, ret_here)) {
        (void)snprintf(ret_listen, LISTEN_SIZE, "tcp://%s:*", own);
        return;
    }
    /* Where it is not found the others push and pull without this worker. */
    if (ps_own_address_to(client->endpoint, own, why) != PSD_OK) {
        (void)snprintf(own, sizeof own, "127.0.0.1");
    }
    (void)snprintf(ret_listen, LISTEN_SIZE,
                   strchr(own, ':') == NULL ? "tcp://%s:*" : "tcp://[%s]:*", own);
    (void)snprintf(port, sizeof port, strchr(own, ':') == NULL ? "tcp://%s:" : "tcp://[%s]:", own);
    *ret_here = ps_address_is_local(own) || strstr(client->endpoint, port) != NULL;
}

/* Who has a key sends nothing in the clear over tcp: it goes on without a relay, and pushes to the
 * nodes itself. */
static bool can_have_relay(const psd_client_t *client)
{
    bool can = client->encrypts || !client->has_keys;

    if (!can) {
        ps_log(PS_LOG_WARN, "overlay_off",
               "reason=\"PSD_KEY_FILE is set, and psd does not say that it is at security.level "
               "encrypt: relays would send in the clear\" hint=\"unset PSD_KEY_FILE, or upgrade "
               "psd\"");
    }
    return can;
}

static const ps_relay_calls_t CALLS = {.connect = ps_client_connect, .close = psd_close};

static psd_status_t open_relay(const psd_client_t *client, choice_t *choice, const char *listen,
                               ps_relay_thread_t **ret_relay, psd_error_t *err)
{
    ps_environment_t trace;
    ps_environment_t verify;
    ps_relay_wish_t wish = {
        .listen = listen, .rows_go_on = choice->down, .encrypts = client->encrypts};
    psd_status_t rc = read("PSD_OVERLAY_TRACE", NULL, &trace, err);

    if (rc == PSD_OK) {
        rc = read("PSD_OVERLAY_VERIFY", "off", &verify, err);
    }
    if (rc == PSD_OK) {
        wish.trace = trace.text;
        wish.verifies = strcmp(verify.text, "on") == 0;
        rc =
            ps_relay_thread_open(client->endpoint, &client->options, &CALLS, &wish, ret_relay, err);
    }
    if (rc == PSD_OK && *ret_relay != NULL) {
        rc = ps_relay_thread_follow(*ret_relay, &choice->rules, choice->site.text, &choice->conf,
                                    err);
    }
    return rc;
}

psd_status_t ps_overlay_open(const psd_client_t *client, ps_wish_t *wish,
                             ps_relay_thread_t **ret_relay, psd_error_t *err)
{
    ps_environment_t listen;
    char found[LISTEN_SIZE];
    PSD_AUTO(choice_done) choice_t choice = {.up = false};
    bool here = false;
    psd_status_t rc = PSD_OK;

    ps_overlay_conf_init(&choice.conf);
    rc = choose(wish, &choice, err);
    wish->has_overlay = rc == PSD_OK && choice.up;
    if (!wish->has_overlay) {
        return rc;
    }
    rc = read("PSD_OVERLAY_LISTEN", NULL, &listen, err);
    if (rc == PSD_OK && listen.text == NULL) {
        find_listen(client, found, &here);
        listen.text = found;
        if (choice.rules.policy == PS_POLICY_AUTO && here) {
            return PSD_OK;
        }
    }
    return rc == PSD_OK && can_have_relay(client)
               ? open_relay(client, &choice, listen.text, ret_relay, err)
               : rc;
}

void ps_overlay_end(psd_client_t *client)
{
    ps_membership_t *self = client->membership;

    if (self == NULL || self->relay == NULL) {
        return;
    }
    client->desk = NULL;
    if (client->n_links > 0 && client->links[0].socket != NULL) {
        ps_socket_wake_by(client->links[0].socket, -1);
    }
    ps_relay_thread_stop(&self->relay, LEAVE_MS);
}
