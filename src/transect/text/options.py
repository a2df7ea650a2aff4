"""Options of a plug-in as a study gives them: strictly checked, by one model for each plug-in."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from transect.domain.errors import BadInput

M = TypeVar("M", bound=BaseModel)


class Options(BaseModel):
    """No option, unless a plug-in's own class has some."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def checked(model: type[M], options: dict[str, Any], where: str) -> M:
    """Return the options as `model`. Raises BadInput naming the key below `where`, the value and what was expected."""
    try:
        return model.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, (where, *first["loc"])))
        known = ", ".join(model.model_fields) or "none"
        raise BadInput(f"{key}: {first['msg']}, given {first['input']!r:.80}. Known options: {known}") from None
