/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a relay waits for who has its bundle without end. */
#include "sim_overlay_planted.h"

psd_status_t __real_ps_relay_new(const ps_relay_settings_t *settings, ps_relay_t **ret_relay,
                                 psd_error_t *err);
psd_status_t __wrap_ps_relay_new(const ps_relay_settings_t *settings, ps_relay_t **ret_relay,
                                 psd_error_t *err);

psd_status_t __wrap_ps_relay_new(const ps_relay_settings_t *settings, ps_relay_t **ret_relay,
                                 psd_error_t *err)
{
    ps_relay_settings_t patient = *settings;

    patient.patience_ms = UINT64_C(1) << 40;
    return __real_ps_relay_new(&patient, ret_relay, err);
}

int main(void)
{
    return overlay_planted_main("a relay has no patience's end");
}
