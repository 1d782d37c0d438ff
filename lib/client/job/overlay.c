/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a worker has a relay: what the environment asks for. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "client/connection/own_address.h"
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

static psd_status_t not_yet(const ps_environment_t *said, const char *name, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "%s makes %s \"%.40s\"; psd supports only PSD_OVERLAY=tree and auto "
                         "so far: unset it",
                         said->origin, name, said->text);
}

/* What is not there yet is not taken in silence. */
static psd_status_t check_off(const char *const *names, size_t n, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        ps_environment_t said;

        rc = read(names[i], "off", &said, err);
        if (rc == PSD_OK && strcmp(said.text, "off") != 0) {
            rc = not_yet(&said, names[i], err);
        }
    }
    return rc;
}

static psd_status_t check_others(psd_error_t *err)
{
    static const char *const NAMES[] = {"PSD_OVERLAY_BETWEEN", "PSD_OVERLAY_WITHIN"};

    return check_off(NAMES, sizeof NAMES / sizeof *NAMES, err);
}

/* The same of what says nothing while the overlay is off. */
static psd_status_t check_details(psd_error_t *err)
{
    static const char *const NAMES[] = {"PSD_OVERLAY_FILE", "PSD_OVERLAY_GREED"};

    return check_off(NAMES, sizeof NAMES / sizeof *NAMES, err);
}

/* What a worker's environment asks for. */
typedef struct choice {
    bool up;      /* deltas go from worker to worker … */
    bool down;    /* … rows, too … */
    bool is_auto; /* … where psd finds that it pays */
} choice_t;

static psd_status_t choose(const ps_wish_t *wish, choice_t *ret, psd_error_t *err)
{
    ps_environment_t said;
    ps_environment_t up = {.text = "on"};
    ps_environment_t down = {.text = "off"};
    ps_environment_t links = {.text = "complete"};
    psd_status_t rc = read("PSD_OVERLAY", "off", &said, err);

    *ret = (choice_t){.up = false};
    if (rc != PSD_OK || strcmp(said.text, "off") == 0) {
        return rc;
    }
    ret->is_auto = strcmp(said.text, "auto") == 0;
    if (strcmp(said.text, "tree") != 0 && !ret->is_auto) {
        return not_yet(&said, "PSD_OVERLAY", err);
    }
    if (wish->max_delay != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "%s makes PSD_OVERLAY \"%s\", which needs max_delay 0; it is %d",
                             said.origin, said.text, wish->max_delay);
    }
    rc = check_details(err);
    if (rc == PSD_OK) {
        rc = read("PSD_OVERLAY_LINKS", "complete", &links, err);
    }
    if (rc == PSD_OK && strcmp(links.text, "listed") == 0) {
        return not_yet(&links, "PSD_OVERLAY_LINKS", err);
    }
    if (rc == PSD_OK) {
        rc = read("PSD_OVERLAY_UP", "on", &up, err);
    }
    if (rc == PSD_OK) {
        rc = read("PSD_OVERLAY_DOWN", "off", &down, err);
    }
    ret->up = rc == PSD_OK && strcmp(up.text, "off") != 0 && strcmp(links.text, "star") != 0;
    ret->down = ret->up && strcmp(down.text, "on") == 0;
    return rc;
}

/* Where the others reach this worker: at the address that its host has on the way to psd.
 * *ret_here: psd is on this host, so deltas pass no link that could be slow. */
static void find_listen(const psd_client_t *client, char ret_listen[LISTEN_SIZE], bool *ret_here)
{
    char own[PS_ADDRESS_SIZE];
    char port[LISTEN_SIZE];
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();

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

static psd_status_t open_relay(const psd_client_t *client, const choice_t *choice,
                               const char *listen, ps_relay_thread_t **ret_relay, psd_error_t *err)
{
    const ps_relay_wish_t wish = {
        .listen = listen, .rows_go_on = choice->down, .encrypts = client->encrypts};
    psd_status_t rc =
        ps_relay_thread_open(client->endpoint, &client->options, &CALLS, &wish, ret_relay, err);

    if (rc == PSD_OK && *ret_relay != NULL && choice->is_auto) {
        ps_desk_set_auto(ps_relay_thread_desk(*ret_relay));
    }
    return rc;
}

psd_status_t ps_overlay_open(const psd_client_t *client, const ps_wish_t *wish,
                             ps_relay_thread_t **ret_relay, psd_error_t *err)
{
    ps_environment_t listen;
    char found[LISTEN_SIZE];
    choice_t choice = {.up = false};
    bool here = false;
    psd_status_t rc = check_others(err);

    if (rc == PSD_OK) {
        rc = choose(wish, &choice, err);
    }
    if (rc != PSD_OK || !choice.up) {
        return rc;
    }
    rc = read("PSD_OVERLAY_LISTEN", NULL, &listen, err);
    if (rc == PSD_OK && listen.text == NULL) {
        find_listen(client, found, &here);
        listen.text = found;
        if (choice.is_auto && here) {
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
