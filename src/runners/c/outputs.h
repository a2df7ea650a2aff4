/* The output tensors: `output-0.bin`, … and `header.json` in a folder. */

#ifndef TRANSECT_OUTPUTS_H
#define TRANSECT_OUTPUTS_H

#include "session.h"

/* Runs every row once, the last batch perhaps partial, and writes what comes out, batches joined
   along their first axis. The folder is made. */
bool outputs_write(struct session *session, const struct inputs *inputs, const char *folder,
                   struct failure *failure);

#endif
