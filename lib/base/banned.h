/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that have a safer form. The build includes this file before every
 * source of ours, after the system headers that declare them. */
#ifndef PS_BASE_BANNED_H
#define PS_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strncat strtok atoi
#pragma GCC poison atol atof localtime gmtime asctime ctime usleep gets
#endif
