/* State files of a portable training step: safetensors. */

#ifndef TRANSECT_STATE_H
#define TRANSECT_STATE_H

#include "step.h"

/* A state in host memory: for each tensor of the step where its bytes are. */
struct state {
    unsigned char *file; /* what was read: the tensors lie within */
    unsigned char **data;
};

/* Room for the places alone. */
bool state_open(const struct step *step, struct state *state, struct failure *failure);

/* Reads any valid safetensors file that holds this step's state, all of it finite. */
bool state_read(const char *path, const struct step *step, struct state *state,
                struct failure *failure);
void state_free(struct state *state);

/* The name of the first tensor with a number that is not finite; NULL when there is none. */
const char *state_not_finite(const struct step *step, const struct state *state);

/* Writes the one canonical form, at once or not at all, also when power goes. */
bool state_write(const char *path, const struct step *step, const struct state *state,
                 struct failure *failure);

/* Removes temporary files of this checkpoint that killed runs left; of runs that go on they stay. */
void state_remove_left(const char *path);

#endif
