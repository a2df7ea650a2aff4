/* The types of values, in words for people: sequence(map(int64,float32)). */

#ifndef TRANSECT_KINDS_H
#define TRANSECT_KINDS_H

#include "runtime.h"

/* Writes at most `size` bytes; what is longer is cut. */
bool kind_describe(const struct runtime *runtime, const OrtTypeInfo *type, char *text, size_t size,
                   struct failure *failure);

#endif
