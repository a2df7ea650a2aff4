/* A trainer by docs/trainer-contract.md: linear layers with sigmoids, half the squared distance, SGD.
 *
 *     mlp PLAN.json
 *
 * One rank, float32, without any library. The plan's keys are found by their names, which are unique
 * where this program looks: no JSON parser is needed for so little.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LAYERS 8

typedef struct { char name[64], file[4096]; long offset; int shape[4]; int dimensions; } Entry;
typedef struct { int in, out; float *w, *b, *gw, *gb, *vw, *vb, *y, *g; } Layer;
typedef struct { char name[100]; long offset; int shape[2], dimensions; } Written;

static char out[4096], *plan;
static FILE *results;
static Written written[64];
static int writings;

static void fail(const char *cause, const char *what) {
    char path[4200];
    snprintf(path, sizeof path, "%s/rank-000.error.json", out);
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "{\"rank\": 0, \"cause\": \"%s\", \"message\": \"mlp.c: %s\"}\n", cause, what);
        fclose(file);
    }
    fprintf(stderr, "mlp.c: %s\n", what);
    exit(1);
}

/* Where the value of a key begins, from a place in the plan on. */
static const char *value(const char *from, const char *key) {
    char quoted[80];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *place = strstr(from, quoted);
    if (!place) fail("bad-input", quoted);
    place += strlen(quoted);
    return place + strspn(place, " \n");
}

static double number(const char *from, const char *key) { return atof(value(from, key)); }

static void string(const char *from, const char *key, char *into, size_t size) {
    const char *begin = value(from, key) + 1, *end = strchr(begin, '"');
    if ((size_t)(end - begin) >= size) fail("bad-input", key);
    memcpy(into, begin, end - begin);
    into[end - begin] = 0;
}

static Entry entry(const char *from) {
    Entry e = {0};
    char *place = (char *)value(from, "shape") + 1;
    while (*(place += strspn(place, " \n,")) != ']') e.shape[e.dimensions++] = strtol(place, &place, 10);
    string(from, "file", e.file, sizeof e.file);
    e.offset = (long)number(from, "offset");
    return e;
}

static void *numbers(Entry e, size_t size) {
    size_t count = 1;
    for (int i = 0; i < e.dimensions; i++) count *= e.shape[i];
    void *array = malloc(count * size);
    FILE *file = fopen(e.file, "rb");
    if (!file || fseek(file, e.offset, SEEK_SET) || fread(array, size, count, file) != count)
        fail("bad-input", e.file);
    fclose(file);
    return array;
}

static float *floats(Entry e) {
    double *wide = numbers(e, sizeof *wide);
    size_t count = 1;
    for (int i = 0; i < e.dimensions; i++) count *= e.shape[i];
    float *array = malloc(count * sizeof *array);
    for (size_t i = 0; i < count; i++) array[i] = (float)wide[i];
    free(wide);
    return array;
}

static double now(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void put(const char *name, const double *x, int rows, int columns) {
    Written *w = &written[writings++];
    snprintf(w->name, sizeof w->name, "%s", name);
    w->offset = ftell(results);
    w->dimensions = columns ? 2 : 1;
    w->shape[0] = rows;
    w->shape[1] = columns;
    fwrite(x, sizeof *x, (size_t)rows * (columns ? columns : 1), results);
}

static void put_floats(const char *name, const float *x, int rows, int columns) {
    int count = rows * (columns ? columns : 1);
    double *wide = malloc(count * sizeof *wide);
    for (int i = 0; i < count; i++) wide[i] = x[i];
    put(name, wide, rows, columns);
    free(wide);
}

static void forward(Layer *layers, int depth, const float *x) {
    for (int l = 0; l < depth; l++) {
        Layer *a = &layers[l];
        for (int o = 0; o < a->out; o++) {
            float sum = a->b[o];
            for (int i = 0; i < a->in; i++) sum += a->w[o * a->in + i] * x[i];
            a->y[o] = 1 / (1 + expf(-sum));
        }
        x = a->y;
    }
}

static void update(float *w, float *g, float *v, int count, float rate, float momentum, float decay) {
    for (int i = 0; i < count; i++) {
        v[i] = momentum * v[i] + g[i] + decay * w[i];
        w[i] -= rate * v[i];
        g[i] = 0;
    }
}

static char names[LAYERS][2][64];

static void put_weights(const char *group, Layer *layers, int depth) {
    char name[100];
    for (int l = 0; l < depth; l++) {
        snprintf(name, sizeof name, "%s/%.63s", group, names[l][0]);
        put_floats(name, layers[l].w, layers[l].out, layers[l].in);
        snprintf(name, sizeof name, "%s/%.63s", group, names[l][1]);
        put_floats(name, layers[l].b, layers[l].out, 0);
    }
}

/* The groups' entries as JSON: names are GROUP/NAME, groups one after another. */
static void print_arrays(FILE *file) {
    const char *groups[] = {"series", "weights", "checked"};
    fprintf(file, "\"arrays\": {");
    for (int g = 0; g < 3; g++) {
        size_t length = strlen(groups[g]);
        const char *comma = "";
        fprintf(file, "%s\"%s\": {", g ? ", " : "", groups[g]);
        for (int i = 0; i < writings; i++) {
            Written w = written[i];
            if (strncmp(w.name, groups[g], length) || w.name[length] != '/') continue;
            fprintf(file, "%s\"%s\": {\"dtype\": \"float64\", \"file\": \"rank-000.bin\", \"offset\": %ld, ",
                    comma, w.name + length + 1, w.offset);
            if (w.dimensions == 2) fprintf(file, "\"shape\": [%d, %d]}", w.shape[0], w.shape[1]);
            else fprintf(file, "\"shape\": [%d]}", w.shape[0]);
            comma = ", ";
        }
        fprintf(file, "}");
    }
    fprintf(file, "}");
}

int main(int count, char **arguments) {
    if (count != 2) return fprintf(stderr, "usage: mlp PLAN.json\n"), 2;
    FILE *file = fopen(arguments[1], "rb");
    if (!file) return perror(arguments[1]), 2;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    plan = calloc(size + 1, 1);
    if (fread(plan, 1, size, file) != (size_t)size) return 2;
    fclose(file);
    string(plan, "out", out, sizeof out);
    if (number(plan, "format") != 1) fail("bad-input", "this is not format 1 of the plan");

    Layer layers[LAYERS] = {0};
    int depth = 0;
    const char *place = value(plan, "weights"), *end = value(plan, "order");
    while ((place = strstr(place, "\"name\":")) && place < end) {
        Entry e = entry(place);
        Layer *a = &layers[depth];
        int bias = e.dimensions == 1;
        string(place, "name", names[depth][bias], 64);
        if (!bias) {
            a->out = e.shape[0], a->in = e.shape[1];
            a->w = floats(e), a->gw = calloc(a->out * a->in, 4), a->vw = calloc(a->out * a->in, 4);
        } else {
            a->b = floats(e), a->gb = calloc(a->out, 4), a->vb = calloc(a->out, 4);
            a->y = calloc(a->out, 4), a->g = calloc(a->out, 4);
            if (++depth == LAYERS) fail("bad-input", "too many layers");
        }
        place++;
    }

    double touched = now(CLOCK_MONOTONIC);
    const char *data = value(plan, "data"), *cell = value(plan, "cell"), *rule = value(plan, "parameters");
    Entry order_entry = entry(value(plan, "order")), x_test_entry = entry(value(data, "x_test"));
    int epochs = order_entry.shape[0], samples = order_entry.shape[1];
    int64_t *order = numbers(order_entry, 8);
    double *rates = numbers(entry(value(plan, "learning_rates")), 8);
    float *x_train = floats(entry(value(data, "x_train"))), *x_test = floats(x_test_entry);
    int64_t *y_train = numbers(entry(value(data, "y_train")), 8);
    int64_t *y_test = numbers(entry(value(data, "y_test")), 8);
    int tests = x_test_entry.shape[0], batch = (int)number(cell, "batch"), width = layers[0].in;
    int steps_per_epoch = samples / batch, steps = epochs * steps_per_epoch;
    int checked = (int)number(plan, "checked_steps");
    float momentum = number(rule, "momentum"), decay = number(rule, "weight_decay");
    Layer *last = &layers[depth - 1];

    char path[4200], facts[4200];
    snprintf(path, sizeof path, "%s/rank-000.bin", out);
    results = fopen(path, "wb");
    if (!results) fail("crash", path);
    double *loss = calloc(steps, 8), *time = calloc(steps, 8), *input = calloc(steps, 8);
    double *zero = calloc(steps, 8), *score = calloc(epochs, 8), *epoch_end = calloc(epochs, 8);
    double data_to_start = now(CLOCK_MONOTONIC) - touched;
    const char *began = getenv("TRANSECT_STARTED_AT");
    double startup = began ? now(CLOCK_REALTIME) - atof(began) : 0;
    printf("rank 0 of 1 begins to train\n");

    double start = now(CLOCK_MONOTONIC);
    for (int epoch = 0, step = 0; epoch < epochs; epoch++) {
        for (int s = 0; s < steps_per_epoch; s++, step++) {
            double t0 = now(CLOCK_MONOTONIC);
            for (int n = 0; n < batch; n++) {
                int64_t sample = order[(long)epoch * samples + s * batch + n];
                const float *x = &x_train[sample * width];
                forward(layers, depth, x);
                for (int o = 0; o < last->out; o++) {
                    float distance = last->y[o] - (o == y_train[sample]);
                    loss[step] += 0.5 * distance * distance / batch;
                    last->g[o] = distance / batch;
                }
                for (int l = depth - 1; l >= 0; l--) {
                    Layer *a = &layers[l];
                    const float *below = l ? layers[l - 1].y : x;
                    if (l) memset(layers[l - 1].g, 0, 4 * a->in);
                    for (int o = 0; o < a->out; o++) {
                        float g = a->g[o] * a->y[o] * (1 - a->y[o]);
                        a->gb[o] += g;
                        for (int i = 0; i < a->in; i++) {
                            a->gw[o * a->in + i] += g * below[i];
                            if (l) layers[l - 1].g[i] += g * a->w[o * a->in + i];
                        }
                    }
                }
            }
            for (int l = 0; l < depth; l++) {
                Layer *a = &layers[l];
                update(a->w, a->gw, a->vw, a->out * a->in, rates[step], momentum, decay);
                update(a->b, a->gb, a->vb, a->out, rates[step], momentum, decay);
            }
            time[step] = now(CLOCK_MONOTONIC) - t0;
            if (step + 1 == checked) put_weights("checked", layers, depth);
        }
        for (int n = 0; n < tests; n++) {
            forward(layers, depth, &x_test[(long)n * width]);
            int best = 0;
            for (int o = 1; o < last->out; o++) if (last->y[o] > last->y[best]) best = o;
            score[epoch] += best == y_test[n];
        }
        epoch_end[epoch] = now(CLOCK_MONOTONIC) - start;
    }

    put_weights("weights", layers, depth);
    put("series/loss", loss, steps, 0);
    put("series/step", time, steps, 0);
    put("series/compute", time, steps, 0);
    put("series/communication", zero, steps, 0);
    put("series/under_way", zero, steps, 0);
    put("series/input", input, steps, 0);
    put("series/score_sum", score, epochs, 0);
    put("series/epoch_end", epoch_end, epochs, 0);
    fflush(results);
    fsync(fileno(results));

    struct rusage usage;
    char host[256];
    getrusage(RUSAGE_SELF, &usage);
    gethostname(host, sizeof host);
    snprintf(path, sizeof path, "%s/.rank-000.json", out);
    snprintf(facts, sizeof facts, "%s/rank-000.json", out);
    file = fopen(path, "w");
    if (!file) fail("crash", path);
    fprintf(file, "{\"rank\": 0, \"host\": \"%s\", \"startup_s\": %.9g, \"data_to_start_s\": %.9g, ", host,
            startup, data_to_start);
    fprintf(file, "\"peak_memory_bytes\": %ld, \"libraries\": {\"c\": \"%s\"}, ", usage.ru_maxrss * 1024,
            __VERSION__);
    print_arrays(file);
    fprintf(file, "}\n");
    fflush(file);
    fsync(fileno(file));
    fclose(file);
    return rename(path, facts) ? 1 : 0;
}
