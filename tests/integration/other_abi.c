/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in made for another version of the interface. */
#include <psd_updater.h>

const psd_updater_t *psd_updater_plugin(void)
{
    static const psd_updater_t other = {.abi = PSD_UPDATER_ABI + 1};

    return &other;
}
