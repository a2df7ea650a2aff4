#include "result.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *out;
static struct file lines;
static struct trap *trap;
/* The facts of the next line. */
static FILE *facts;
static char *facts_text;
static size_t facts_size;

void result_open(const char *folder)
{
    out = folder;
    facts = open_memstream(&facts_text, &facts_size);
    if (facts == NULL)
        fail(CAUSE_OUT_OF_MEMORY, "no memory for what is said");
    snprintf(lines.path, sizeof lines.path, "%s/result.jsonl", folder);
    lines.stream = fopen(lines.path, "a");
    if (lines.stream == NULL)
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
    fprintf(facts, ", \"%s\": ", name);
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

void say(const char *members, ...)
{
    va_list values;
    va_start(values, members);
    fputc('{', lines.stream);
    vfprintf(lines.stream, members, values);
    va_end(values);
    fflush(facts);
    fprintf(lines.stream, "%.*s}\n", (int)facts_size, facts_text);
    rewind(facts);
    if (fflush(lines.stream) != 0)
        file_failed(&lines);
}

static _Noreturn void end(const struct failure *failure)
{
    static const char *const words[] = {"crash", "missing-dependency", "out-of-memory",
                                        "bad-input", "bad-input"};
    static const int codes[] = {1, 1, 1, 2, 2, 3};
    bool skipped = failure->cause == CAUSE_NO_PROVIDER;
    fputs(skipped ? "c: skipped: " : "c: ", stderr);
    for (const char *c = failure->message; *c != '\0'; c++)
        fputc(isspace((unsigned char)*c) ? ' ' : *c, stderr);
    fputc('\n', stderr);
    if (lines.stream != NULL) {
        if (skipped)
            fputs("{\"status\": \"skipped\", \"reason\": ", lines.stream);
        else
            fprintf(lines.stream, "{\"status\": \"failed\", \"cause\": \"%s\", \"message\": ",
                    words[failure->cause]);
        put_text(lines.stream, failure->message);
        fputs("}\n", lines.stream);
        fflush(lines.stream);
    }
    /* Without the destructors of libraries, which other threads may be using. */
    _exit(codes[failure->cause]);
}

void fail(enum cause cause, const char *format, ...)
{
    static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
    struct failure failure = {.cause = cause};
    va_list values;
    va_start(values, format);
    vsnprintf(failure.message, sizeof failure.message, format, values);
    va_end(values);
    if (trap != NULL) {
        trap->failure = failure;
        longjmp(trap->place, 1);
    }
    /* The first one ends it. */
    pthread_mutex_lock(&ending);
    end(&failure);
}

void set_trap(struct trap *to)
{
    trap = to;
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
    struct file file = file_open(NULL, name);
    FILE *source = fopen(from, "r");
    char bytes[8192];
    size_t size;
    while (source != NULL && (size = fread(bytes, 1, sizeof bytes, source)) > 0)
        file_write(&file, bytes, size);
    if (source != NULL)
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
