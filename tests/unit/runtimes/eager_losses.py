"""What PyTorch computes of the step that a page's example exports: run by the environment `torch`.

`python eager_losses.py FILE STEPS` runs the example as it stands, in the folder where one is, and
prints the losses of STEPS updates in float64 as JSON. PYTHONPATH is `src`.
"""

import copy
import json
import runpy
import sys

import torch


def main(file, steps):
    """Export, then train the module that was exported."""
    made = runpy.run_path(file)
    module, x, y = copy.deepcopy(made["module"]).double(), made["x"].double(), made["y"]
    optimiser = torch.optim.SGD(module.parameters(), made["optimiser"].param_groups[0]["lr"])
    losses = []
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(module(x), y)
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    print(json.dumps(losses))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
