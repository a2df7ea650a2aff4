/* What the program leaves in `out`, and how it ends: docs/runner-contract.md. */

#ifndef TRANSECT_RESULT_H
#define TRANSECT_RESULT_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cause {
    CAUSE_CRASH,
    CAUSE_MISSING_DEPENDENCY,
    CAUSE_OUT_OF_MEMORY,
    CAUSE_BAD_INPUT,
    CAUSE_UNSUPPORTED, /* A value that this program cannot give or take. */
    CAUSE_NO_PROVIDER,
};

struct failure {
    enum cause cause;
    char message[4096];
};

/* Where a failure goes instead of ending the program: a case that fails is not the last one. */
struct trap {
    jmp_buf place;
    struct failure failure;
};

/* A file that is written, or the program fails in the system's words. */
struct file {
    FILE *stream;
    char path[4096];
};

void result_open(const char *out);

/* Ends the program, or jumps into the trap. Any thread may fail. */
__attribute__((format(printf, 2, 3)))
_Noreturn void fail(enum cause cause, const char *format, ...);
void set_trap(struct trap *trap); /* NULL: none */

/* A fact of the line that comes next: where to write its JSON value. */
FILE *fact(const char *name);
void fact_text(const char *name, const char *text);
void fact_number(const char *name, int64_t number);

/* Writes a line: its first members, then the facts until now. */
__attribute__((format(printf, 1, 2)))
void say(const char *members, ...);

struct file file_open(const char *folder, const char *name);
void file_write(struct file *file, const void *bytes, size_t size);
void file_close(struct file *file);
_Noreturn void file_failed(const struct file *file);

/* A file of numbers in `out`. */
void write_array(const char *name, const void *bytes, size_t size);

/* What the kernel says of this process now. */
void write_conditions(void);

/* Zeroed memory for at least one entry. */
void *reserve(size_t count, size_t size);

#endif
