/* The input tensors: `header.json` and the files that it names, in host memory. */

#ifndef TRANSECT_INPUTS_H
#define TRANSECT_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "dtypes.h"
#include "failure.h"

/* More axes than numpy has. */
enum { MOST_AXES = 64 };

struct text {
    const unsigned char *bytes;
    uint32_t size;
};

struct tensor {
    char *name;
    const struct dtype *dtype;
    size_t rank;
    int64_t shape[MOST_AXES];
    size_t elements;
    size_t row_elements; /* of one entry of the first axis; of all for a scalar */
    unsigned char *data; /* the file */
    struct text *texts;  /* strings: each within data */
};

struct inputs {
    size_t count;
    struct tensor *tensors;
    size_t batch; /* 0: the tensors are fed whole */
    size_t rows;  /* of every tensor, with a batch */
};

/* Reads `folder/header.json` and its files. A file's size is checked before room is made. */
bool inputs_read(const char *folder, struct inputs *inputs, struct failure *failure);

void inputs_free(struct inputs *inputs);

/* A run's share of the rows: `rows` from `first` on. Without a batch both are 0. */
struct cut {
    size_t first, rows;
};

size_t full_batches(const struct inputs *inputs);

/* The i-th full batch, in a circle. */
struct cut full_batch(const struct inputs *inputs, size_t i);

#endif
