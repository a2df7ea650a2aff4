/* Turns with other programs, each of which waits while another runs: docs/runner-contract.md. */

#ifndef TRANSECT_TURNS_H
#define TRANSECT_TURNS_H

#include <stdint.h>

enum { NO_TURNS = -1 };

/* The connection to who gives the turns, or NO_TURNS where none are to be taken. */
int turns_join(void);

/* Says 'r', ready, or 'd', done, and waits; returns the iterations of the next turn, 0: no more. */
int64_t turns_next(int turns, char said);

#endif
