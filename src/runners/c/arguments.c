#include "arguments.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

struct flag {
    const char *name;
    const char **text;
};

static bool read_whole(const char *name, const char *text, uint64_t least, uint64_t *number,
                       struct failure *failure)
{
    if (text == NULL)
        return true;
    errno = 0;
    char *end = NULL;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value < least ||
        value > INT32_MAX)
        return fail(failure, CAUSE_BAD_INPUT, "--%s '%s': expected a whole number >= %llu", name,
                    text, (unsigned long long)least);
    *number = value;
    return true;
}

static bool read_seconds(const char *name, const char *text, double *seconds,
                         struct failure *failure)
{
    if (text == NULL)
        return true;
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < 0)
        return fail(failure, CAUSE_BAD_INPUT, "--%s '%s': expected seconds >= 0", name, text);
    *seconds = value;
    return true;
}

/* The place of `text` in a list that ends with NULL; -1 and a failure when it is not there. */
static int choose(const char *name, const char *text, const char *const *choices,
                  struct failure *failure)
{
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(choices[i], text) == 0)
            return i;
    }
    char known[64] = "";
    for (int i = 0; choices[i] != NULL; i++) {
        size_t length = strlen(known);
        snprintf(known + length, sizeof known - length, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
    fail(failure, CAUSE_BAD_INPUT, "--%s '%s': expected one of %s", name, text, known);
    return -1;
}

/* Puts the value of every flag where it belongs. */
static bool collect(int argc, char **argv, const struct flag *flags, struct failure *failure)
{
    for (int i = 1; i < argc; i += 2) {
        const struct flag *flag = flags;
        while (flag->name != NULL && strcmp(argv[i], flag->name) != 0)
            flag++;
        if (flag->name == NULL)
            return fail(failure, CAUSE_BAD_INPUT, "unknown argument '%s'", argv[i]);
        if (i + 1 == argc)
            return fail(failure, CAUSE_BAD_INPUT, "%s: expected a value after it", argv[i]);
        if (*flag->text != NULL)
            return fail(failure, CAUSE_BAD_INPUT, "%s is there twice", argv[i]);
        *flag->text = argv[i + 1];
    }
    return true;
}

/* The value of `--record`, however wrong the others are. */
static const char *find_record(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--record") == 0 && argv[i + 1][0] != '\0')
            return argv[i + 1];
    }
    return NULL;
}

static bool needs(const struct arguments *given, const char *name, const char *text,
                  struct failure *failure)
{
    if (text != NULL && text[0] != '\0')
        return true;
    return fail(failure, CAUSE_BAD_INPUT, "--mode %s needs --%s", given->mode_name, name);
}

/* The numbers that mode `train` needs are checked where they are read. */
static bool complete_training(const struct arguments *given, struct failure *failure)
{
    return needs(given, "step", given->step, failure) &&
           needs(given, "inputs", given->inputs, failure) &&
           needs(given, "order", given->order, failure) &&
           needs(given, "checkpoint", given->checkpoint, failure) &&
           (given->state == NULL || needs(given, "state", given->state, failure));
}

static bool complete(const struct arguments *given, struct failure *failure)
{
    if (!needs(given, "record", given->record, failure) ||
        !needs(given, "library", given->library, failure))
        return false;
    if (!is_file(given->library))
        return fail(failure, CAUSE_BAD_INPUT, "--library %s: no such file", given->library);
    if (given->mode == MODE_CASES)
        return needs(given, "cases", given->cases, failure);
    if (given->mode == MODE_TRAIN)
        return complete_training(given, failure);
    if (!needs(given, "model", given->model, failure) ||
        !needs(given, "inputs", given->inputs, failure) ||
        !needs(given, "outputs", given->outputs, failure))
        return false;
    if (!is_file(given->model))
        return fail(failure, CAUSE_BAD_INPUT, "%s: no such model file", given->model);
    return given->mode != MODE_LOAD || needs(given, "arrivals", given->arrivals, failure);
}

bool arguments_read(int argc, char **argv, struct arguments *given, struct failure *failure)
{
    static const char *const modes[] = {"latency", "load", "cases", "train", NULL};
    static const char *const providers[] = {"cpu", "cuda", NULL};
    const char *warmup = NULL, *min_runs = NULL, *seconds = NULL, *sessions = NULL, *skip = NULL;
    const char *batch = NULL, *until = NULL, *every = NULL, *accumulate = NULL, *seed = NULL;
    *given = (struct arguments){.warmup = 20, .min_runs = 100, .sessions = 1, .max_seconds = 1,
                                .accumulate = 1};
    const struct flag flags[] = {
        {"--mode", &given->mode_name},  {"--model", &given->model},
        {"--inputs", &given->inputs},   {"--outputs", &given->outputs},
        {"--options", &given->options}, {"--provider", &given->provider_name},
        {"--library", &given->library}, {"--record", &given->record},
        {"--profile", &given->profile}, {"--arrivals", &given->arrivals},
        {"--cases", &given->cases},     {"--warmup", &warmup},
        {"--min-runs", &min_runs},      {"--max-seconds", &seconds},
        {"--sessions", &sessions},      {"--skip", &skip},
        {"--step", &given->step},       {"--order", &given->order},
        {"--state", &given->state},     {"--checkpoint", &given->checkpoint},
        {"--schedule", &given->schedule}, {"--checkpoint-every", &every},
        {"--batch", &batch},            {"--until", &until},
        {"--accumulate", &accumulate},  {"--seed", &seed},
        {NULL, NULL},
    };
    bool known = collect(argc, argv, flags, failure);
    given->record = find_record(argc, argv);
    if (!known)
        return false;
    if (given->mode_name == NULL)
        given->mode_name = modes[MODE_LATENCY];
    if (given->provider_name == NULL)
        given->provider_name = providers[PROVIDER_CPU];
    int mode = choose("mode", given->mode_name, modes, failure);
    int provider = mode < 0 ? -1 : choose("provider", given->provider_name, providers, failure);
    if (provider < 0)
        return false;
    given->mode = (enum mode)mode;
    given->provider = (enum provider)provider;
    return read_whole("warmup", warmup, 0, &given->warmup, failure) &&
           read_whole("min-runs", min_runs, 1, &given->min_runs, failure) &&
           read_whole("sessions", sessions, 1, &given->sessions, failure) &&
           read_whole("skip", skip, 0, &given->skip, failure) &&
           read_seconds("max-seconds", seconds, &given->max_seconds, failure) &&
           read_whole("batch", batch, 1, &given->batch, failure) &&
           read_whole("until", until, 0, &given->until, failure) &&
           read_whole("checkpoint-every", every, 0, &given->checkpoint_every, failure) &&
           read_whole("accumulate", accumulate, 1, &given->accumulate, failure) &&
           read_whole("seed", seed, 0, &given->seed, failure) &&
           (given->mode != MODE_TRAIN || (needs(given, "batch", batch, failure) &&
                                          needs(given, "until", until, failure))) &&
           complete(given, failure);
}
