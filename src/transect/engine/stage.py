"""Who runs the cells of each stage, as its declaration says."""

from __future__ import annotations

import importlib

from transect.domain.errors import FAULTS, BadInput
from transect.engine.stage_helpers import OneProcess, StageRunner
from transect.planning.stage import STAGES


class _Runners:
    def get(self, name: str) -> StageRunner:
        """Make the runner of a stage. Raises BadInput for one that cannot be made: other stages do not suffer from it."""
        stage = STAGES.get(name)
        if not stage.runner:
            return OneProcess(stage)
        module, _, kind = stage.runner.partition(":")
        try:
            made: StageRunner = getattr(importlib.import_module(module), kind)(stage)
        except BadInput:
            raise
        except FAULTS as error:
            text = f"stage '{name}': its runner {stage.runner} cannot be made: {type(error).__name__}: {error}"
            raise BadInput(text) from error
        return made


RUNNERS = _Runners()
