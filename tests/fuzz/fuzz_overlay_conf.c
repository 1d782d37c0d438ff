/* SPDX-License-Identifier: Apache-2.0 */
/* Settings files of an overlay from random bytes. What is accepted keeps its bounds, and
 * every refusal has a text with the place. The first byte says how many workers there are. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/overlay/overlay_conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void check_conf(const ps_overlay_conf_t *conf, uint32_t n_workers)
{
    check(conf->n_edges <= PS_OVERLAY_EDGES_MAX);
    check(conf->ratio.value >= 0 && conf->ratio.value <= 1);
    check(conf->expiry.value >= 1);
    ps_overlay_rules_t rules = {.policy = PS_POLICY_PAIRS};

    ps_overlay_conf_fill(conf, &rules);
    for (uint32_t i = 1; i <= 5; i++) {
        uint32_t n = ps_overlay_rules_batch(&rules, i);
        ps_may_t may;

        ps_overlay_conf_may(conf, i, &may);
        check(n >= 1 && n <= i);
        check(!ps_may_has(&may, i));
    }
    for (size_t i = 0; i < conf->n_edges && n_workers > 0; i++) {
        check(conf->edges[i].from < n_workers && conf->edges[i].to < n_workers);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(ps_overlay_conf_done) ps_overlay_conf_t conf;
    psd_error_t *err = psd_error_new();

    ps_overlay_conf_init(&conf);
    if (size == 0 || err == NULL) {
        psd_error_destroy(&err);
        return 0;
    }
    if (ps_overlay_conf_read(&conf, (const char *)data + 1, size - 1, "file", data[0] % 9, err) ==
        PSD_OK) {
        check_conf(&conf, data[0] % 9);
    } else {
        check(strncmp(psd_error_text(err), "file:", 5) == 0);
    }
    psd_error_destroy(&err);
    return 0;
}
