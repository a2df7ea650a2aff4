/* What the program leaves in `out`, and how it ends: docs/runner-contract.md. */

#ifndef TRANSECT_RESULT_H
#define TRANSECT_RESULT_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Unsupported: a value that this program cannot give or take. */
enum cause {
    CAUSE_CRASH, CAUSE_MISSING_DEPENDENCY, CAUSE_OUT_OF_MEMORY, CAUSE_BAD_INPUT, CAUSE_UNSUPPORTED,
    CAUSE_NO_PROVIDER,
};

/* The last one. */
extern struct failure {
    enum cause cause;
    char message[4096];
} failure;

/* Where a failure goes instead of ending the program, or NULL: a case is not the only one. */
extern jmp_buf *trap;

/* A file that is written, or the program fails in the system's words. */
struct file {
    FILE *stream;
    char path[4096];
};

void result_open(const char *out);

/* Ends the program, or jumps into the trap. Any thread may fail. */
__attribute__((format(printf, 2, 3)))
_Noreturn void fail(enum cause cause, const char *format, ...);

/* A member of the line that comes next: where to write its JSON value. */
FILE *fact(const char *name);
void fact_text(const char *name, const char *text);
void fact_number(const char *name, int64_t number);
void say(void); /* writes the line */

struct file file_open(const char *folder, const char *name);
void file_write(struct file *file, const void *bytes, size_t size);
void file_close(struct file *file);
_Noreturn void file_failed(const struct file *file);
void write_array(const char *name, const void *bytes, size_t size);

/* What the kernel says of this process now. */
void write_conditions(void);

/* Zeroed memory for at least one entry. */
void *reserve(size_t count, size_t size);

#endif
