/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the page of the psd at an endpoint. */
#include "cli/run/silent.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "transport/sockets/reach.h"
#include "transport/threads/turns_look.h"

#define LATE_MAX 8
#define NAP_NS 30000000L
#define REACH_MS 300
#define TEXT_SIZE 400

/* Where packages keep the page. */
static const char *const DIRS[] = {"/run/psd", "/var/lib/psd", NULL};

/* "thread control has not turned for 1.2 s, thread …" */
static void print_late(const ps_late_t *late, size_t n, char ret_text[TEXT_SIZE])
{
    size_t size = 0;

    for (size_t i = 0; i < n && size < TEXT_SIZE; i++) {
        char one[128];
        int more = 0;

        ps_late_print(&late[i], one, sizeof one);
        more = snprintf(ret_text + size, TEXT_SIZE - size, "%s%s", i == 0 ? "" : ", ", one);
        size += more > 0 ? (size_t)more : 0;
    }
}

static ps_silence_t look_at_page(const char *endpoint, ps_turns_view_t *view, double until_s,
                                 psd_error_t *err)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    ps_late_t late[LATE_MAX];
    char text[TEXT_SIZE] = "";
    size_t n = ps_turns_late(view->page, late, LATE_MAX);

    while (n == 0 && ps_cli_now_s() < until_s) {
        (void)nanosleep(&nap, NULL);
        if (!ps_turns_view_read(view)) {
            break;
        }
        n = ps_turns_late(view->page, late, LATE_MAX);
    }
    if (n == 0) {
        return PS_SILENCE_TURNS;
    }
    print_late(late, n, text);
    (void)psd_error_set(err, PSD_FAILED, "%s does not answer; process %lld: %s", endpoint,
                        (long long)view->page->pid, text);
    return PS_SILENCE_NAMED;
}

static ps_silence_t look_at_port(const char *endpoint, uint64_t waited_ms, psd_error_t *err)
{
    char why[PS_REACH_TEXT];

    if (ps_reach_why(endpoint, REACH_MS, why) != PS_REACH_LISTENS) {
        return PS_SILENCE_NOBODY;
    }
    (void)psd_error_set(err, PSD_FAILED,
                        "%s is silent: it takes connections and has not "
                        "answered for %.1f s",
                        endpoint, (double)waited_ms / 1000.0);
    return PS_SILENCE_ELSEWHERE;
}

ps_silence_t ps_silent_look(const char *endpoint, uint64_t waited_ms, double until_s,
                            psd_error_t *err)
{
    PSD_AUTO(ps_turns_view_done) ps_turns_view_t view = {0};
    psd_status_t rc = PSD_OK;

    psd_error_clear(err);
    rc = ps_turns_view_find(endpoint, DIRS, &view, err);
    if (rc == PSD_OK) {
        return look_at_page(endpoint, &view, until_s, err);
    }
    if (rc == PSD_CLOSED) {
        return PS_SILENCE_NAMED;
    }
    psd_error_clear(err);
    return look_at_port(endpoint, waited_ms, err);
}
