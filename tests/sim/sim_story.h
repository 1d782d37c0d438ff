/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_story - the trace of a failing seed, or at least its end
 *
 * What     Runs a world again with a trace, and prints the last lines.
 */
#ifndef PS_TESTS_SIM_STORY_H
#define PS_TESTS_SIM_STORY_H

#include <stdio.h>

/* tell runs the world and writes what happens; context is the caller's. */
void sim_story_show(void (*tell)(void *context, FILE *trace), void *context);
#endif
