/* What went wrong, and the exit code and word that docs/runner-contract.md has for it. */

#ifndef TRANSECT_FAILURE_H
#define TRANSECT_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

enum cause {
    CAUSE_NONE,
    CAUSE_CRASH,
    CAUSE_MISSING_DEPENDENCY,
    CAUSE_OUT_OF_MEMORY,
    CAUSE_BAD_INPUT,
    /* A value that this runner cannot give or take: a case's verdict, otherwise bad input. */
    CAUSE_UNSUPPORTED,
    CAUSE_NO_PROVIDER,
    /* A number of a training is not finite: the record has what was before. */
    CAUSE_DIVERGED,
};

struct failure {
    enum cause cause;
    char message[4096];
};

/* Fills the failure, in valid UTF-8. Returns false, so that a function can end with it. */
__attribute__((format(printf, 3, 4)))
bool fail(struct failure *failure, enum cause cause, const char *format, ...);

int exit_code(enum cause cause);

/* The record's `cause`. */
const char *cause_word(enum cause cause);

/* Zeroed memory for at least one entry; NULL and a failure when there is none. */
void *reserve(size_t count, size_t size, struct failure *failure);

/* How many bytes the UTF-8 character takes that begins at `text`; 0 when none does. */
size_t utf8_character(const unsigned char *text, size_t left);

#endif
