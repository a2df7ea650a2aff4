/* Reads a deck and the options, times the kernel, writes energies and raw times: docs/docking.md. */
#define _GNU_SOURCE
#include "docking.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char MAGIC[8] = "TDECK 1\n";

static void end(int code, const char *word, const char *format, va_list given) {
    fflush(stdout);
    fprintf(stderr, "%s: ", word);
    vfprintf(stderr, format, given);
    fputc('\n', stderr);
    exit(code);
}

void refuse(const char *format, ...) {
    va_list given;
    va_start(given, format);
    end(2, "error", format, given);
}

void lacks(const char *format, ...) {
    va_list given;
    va_start(given, format);
    end(3, "lacks", format, given);
}

void tell(const char *key, const char *format, ...) {
    va_list given;
    va_start(given, format);
    printf("fact %s ", key);
    vprintf(format, given);
    putchar('\n');
    va_end(given);
}

static void *take(FILE *file, const char *path, size_t count) {
    /* Lanes are loaded whole: by 64 bytes, and to the end of the last one. */
    const size_t bytes = (count * 4 + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes ? bytes : 64);
    if (memory == NULL)
        refuse("no memory for %zu bytes of %s", bytes, path);
    memset(memory, 0, bytes);
    if (fread(memory, 4, count, file) != count)
        refuse("%s ends early: expected %zu more numbers", path, count);
    return memory;
}

static struct deck read_deck(const char *path) {
    struct deck deck;
    char magic[sizeof MAGIC];
    int32_t counts[4];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        refuse("%s cannot be opened", path);
    if (fread(magic, 1, sizeof magic, file) != sizeof magic || memcmp(magic, MAGIC, sizeof magic) != 0)
        refuse("%s is no prepared deck: expected it to begin with '%.7s'", path, MAGIC);
    if (fread(counts, 4, 4, file) != 4)
        refuse("%s ends early: expected four counts", path);
    for (int i = 0; i < 4; ++i)
        if (counts[i] < 1)
            refuse("%s: expected four counts from 1 on, found %d", path, (int)counts[i]);
    deck.ligand_atoms = counts[0];
    deck.protein_atoms = counts[1];
    deck.kinds = counts[2];
    deck.pose_count = counts[3];
    deck.ligand = take(file, path, 3 * (size_t)deck.ligand_atoms);
    deck.ligand_kinds = take(file, path, (size_t)deck.ligand_atoms);
    deck.protein = take(file, path, 3 * (size_t)deck.protein_atoms);
    deck.protein_kinds = take(file, path, (size_t)deck.protein_atoms);
    deck.table = take(file, path, (size_t)deck.kinds * (size_t)deck.kinds * ROW);
    deck.poses = take(file, path, POSE_ROWS * (size_t)deck.pose_count);
    if (fgetc(file) != EOF)
        refuse("%s goes on after its last pose", path);
    fclose(file);
    for (int i = 0; i < deck.ligand_atoms; ++i)
        if (deck.ligand_kinds[i] < 0 || deck.ligand_kinds[i] >= deck.kinds)
            refuse("%s: a ligand atom of kind %d, there are %d", path, (int)deck.ligand_kinds[i], (int)deck.kinds);
    for (int i = 0; i < deck.protein_atoms; ++i)
        if (deck.protein_kinds[i] < 0 || deck.protein_kinds[i] >= deck.kinds)
            refuse("%s: a protein atom of kind %d, there are %d", path, (int)deck.protein_kinds[i], (int)deck.kinds);
    return deck;
}

static int whole(const char *name, const char *text, int least) {
    char *rest;
    const long value = strtol(text, &rest, 10);
    if (*text == '\0' || *rest != '\0' || value < least || value > 1000000000)
        refuse("%s: expected a whole number from %d on, found '%s'", name, least, text);
    return (int)value;
}

static struct options read_options(int count, char **words) {
    struct options given = {NULL, NULL, "static", "cpu", 1, 64, 8, 2, 0, 64};
    for (int i = 1; i < count; i += 2) {
        const char *name = words[i], *value = words[i + 1];
        if (value == NULL)
            refuse("%s: expected a value", name);
        if (strcmp(name, "--deck") == 0)
            given.deck = value;
        else if (strcmp(name, "--energies") == 0)
            given.energies = value;
        else if (strcmp(name, "--schedule") == 0)
            given.schedule = value;
        else if (strcmp(name, "--device") == 0 && (strcmp(value, "cpu") == 0 || strcmp(value, "gpu") == 0))
            given.device = value;
        else if (strcmp(name, "--device") == 0)
            refuse("--device: expected cpu or gpu, found '%s'", value);
        else if (strcmp(name, "--threads") == 0)
            given.threads = whole(name, value, 1);
        else if (strcmp(name, "--ppwi") == 0)
            given.per_item = whole(name, value, 1);
        else if (strcmp(name, "--iterations") == 0)
            given.iterations = whole(name, value, 0);
        else if (strcmp(name, "--warm-ups") == 0)
            given.warm_ups = whole(name, value, 0);
        else if (strcmp(name, "--chunk") == 0)
            given.chunk = whole(name, value, 0);
        else if (strcmp(name, "--work-group") == 0)
            given.work_group = whole(name, value, 1);
        else
            refuse("%s: no such option", name);
    }
    if (given.deck == NULL || given.energies == NULL)
        refuse("expected --deck FILE and --energies FILE");
    return given;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double timed_run(float *energies, size_t poses) {
    /* What a run leaves out must not be what the run before it left. */
    for (size_t pose = 0; pose < poses; ++pose)
        energies[pose] = NAN;
    const double start = now();
    kernel_run(energies);
    return now() - start;
}

/* How many runs come next. By turns, where no number was given: whoever gives them says it, 0 at the end. */
static int next_runs(int iterations, int done) {
    int count;
    if (iterations > 0)
        return done == 0 ? iterations : 0;
    puts("turn");
    fflush(stdout);
    return scanf("%d", &count) == 1 ? count : 0;
}

int main(int count, char **words) {
#ifdef TRANSECT_NEEDS
    /* The kernel was compiled for the CPU of another machine, where the environment was made. */
    if (!__builtin_cpu_supports(TRANSECT_NEEDS))
        lacks("it was built for a CPU with %s, which this one has not got", TRANSECT_NEEDS);
#endif
    const struct options options = read_options(count, words);
    const struct deck deck = read_deck(options.deck);
    const size_t poses = (size_t)deck.pose_count;
    float *energies = malloc(poses * sizeof *energies);
    if (energies == NULL)
        refuse("no memory for %zu energies", poses);
    tell("kernel", "%s", kernel_name);
/* Where the kernel has another compiler than this file, it tells its own. */
#if defined __VERSION__ && !defined KERNEL_TELLS_COMPILER
    tell("compiled_by", "%s", __VERSION__);
#endif
    kernel_open(&deck, &options);
    for (int i = 0; i < options.warm_ups; ++i)
        printf("warm-up %d %.9f\n", i, timed_run(energies, poses));
    for (int done = 0, left; (left = next_runs(options.iterations, done)) > 0;)
        for (; left > 0; --left, ++done)
            printf("time %d %.9f\n", done, timed_run(energies, poses));
    kernel_close();
    FILE *file = fopen(options.energies, "wb");
    if (file == NULL || fwrite(energies, sizeof *energies, poses, file) != poses || fclose(file) != 0)
        refuse("%s cannot be written", options.energies);
    return 0;
}
