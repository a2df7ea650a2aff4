#include "result.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct failure failure;
jmp_buf *trap;

static const char *out;
static struct file lines;
static FILE *facts; /* of the next line */
static char *facts_text;
static size_t facts_size;
static bool ended;

void result_open(const char *folder)
{
    out = folder;
    facts = open_memstream(&facts_text, &facts_size);
    snprintf(lines.path, sizeof lines.path, "%s/result.jsonl", folder);
    lines.stream = fopen(lines.path, "a");
    if (facts == NULL || lines.stream == NULL)
        file_failed(&lines);
}

/* A JSON text; bytes that are no UTF-8 are the reader's matter. */
static void put_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20)
            fprintf(to, "\\u%04x", byte);
        else
            fprintf(to, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
    }
    fputc('"', to);
}

FILE *fact(const char *name)
{
    fprintf(facts, "%s\"%s\": ", ftello(facts) > 0 ? ", " : "", name);
    return facts;
}

void fact_text(const char *name, const char *text)
{
    put_text(fact(name), text);
}

void fact_number(const char *name, int64_t number)
{
    fprintf(fact(name), "%lld", (long long)number);
}

void say(void)
{
    fflush(facts);
    fprintf(lines.stream, "{%.*s}\n", (int)facts_size, facts_text);
    rewind(facts);
    if (fflush(lines.stream) != 0 && !ended)
        file_failed(&lines);
}

/* The last line, and the one on standard error. */
static _Noreturn void end(void)
{
    static const char *const words[] = {"crash", "missing-dependency", "out-of-memory",
                                        "bad-input", "bad-input"};
    static const int codes[] = {1, 1, 1, 2, 2, 3};
    bool skipped = failure.cause == CAUSE_NO_PROVIDER;
    fputs(skipped ? "c: skipped: " : "c: ", stderr);
    for (const char *c = failure.message; *c != '\0'; c++)
        fputc(isspace((unsigned char)*c) ? ' ' : *c, stderr);
    fputc('\n', stderr);
    if (lines.stream != NULL) {
        rewind(facts);
        fact_text("status", skipped ? "skipped" : "failed");
        if (!skipped)
            fact_text("cause", words[failure.cause]);
        fact_text(skipped ? "reason" : "message", failure.message);
        ended = true;
        say();
    }
    /* Without the destructors of libraries, which other threads may be using. */
    _exit(codes[failure.cause]);
}

void fail(enum cause cause, const char *format, ...)
{
    static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;
    va_list values;
    /* Of threads, the first one ends it. */
    pthread_mutex_lock(&failing);
    failure.cause = cause;
    va_start(values, format);
    vsnprintf(failure.message, sizeof failure.message, format, values);
    va_end(values);
    if (trap == NULL)
        end();
    pthread_mutex_unlock(&failing);
    longjmp(*trap, 1);
}

void file_failed(const struct file *file)
{
    fail(CAUSE_CRASH, "%s: cannot be written: %s", file->path, strerror(errno));
}

struct file file_open(const char *folder, const char *name)
{
    struct file file;
    snprintf(file.path, sizeof file.path, "%s/%s", folder == NULL ? out : folder, name);
    file.stream = fopen(file.path, "wb");
    if (file.stream == NULL)
        file_failed(&file);
    return file;
}

void file_write(struct file *file, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, file->stream) != size)
        file_failed(file);
}

void file_close(struct file *file)
{
    if (fclose(file->stream) != 0)
        file_failed(file);
}

void write_array(const char *name, const void *bytes, size_t size)
{
    struct file file = file_open(NULL, name);
    file_write(&file, bytes, size);
    file_close(&file);
}

static void copy_of(const char *from, const char *name)
{
    FILE *source = fopen(from, "r");
    char bytes[8192];
    size_t size;
    if (source == NULL)
        return;
    struct file file = file_open(NULL, name);
    while ((size = fread(bytes, 1, sizeof bytes, source)) > 0)
        file_write(&file, bytes, size);
    fclose(source);
    file_close(&file);
}

void write_conditions(void)
{
    copy_of("/proc/self/status", "status.txt");
    copy_of("/proc/self/maps", "maps.txt");
}

void *reserve(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL)
        fail(CAUSE_OUT_OF_MEMORY, "no memory for %zu entries of %zu bytes", count, size);
    return memory;
}
