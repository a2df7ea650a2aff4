"""Read the RO-Crate in a folder with rocrate and hold it to a profile, with roc-validator and without a network.

`ro_crate_standard.py FOLDER PROFILE`, with the Python of `envs/ro-crate`. Prints as JSON what rocrate finds (`main`,
`entities`), and the validator's count of `checks` and its `issues`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["ROCRATE_VALIDATOR_AUTO_WARM"] = "0"

import rocrate
from rocrate.rocrate import ROCrate
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.utils.http import HttpRequester


class _Page:
    """An answer of the web."""

    status_code = 200
    headers: dict[str, str] = {"Content-Type": "application/ld+json"}  # noqa: RUF012

    def __init__(self, terms: dict[str, Any]) -> None:
        self._terms = terms

    def json(self) -> dict[str, Any]:
        return {"@context": self._terms}

    @property
    def text(self) -> str:
        return json.dumps(self.json())


def _contexts() -> dict[str, dict[str, Any]]:
    """Return the terms of the two contexts that a crate names.

    rocrate brings those of RO-Crate 1.3; 1.1 has another address for workflows.
    """
    newer = json.loads((Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld").read_text())["@context"]
    return {
        "https://w3id.org/ro/crate/1.1/context": newer
        | {"ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow"},
        "https://w3id.org/ro/terms/workflow-run/context": {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
    }


def main(folder: str, profile: str) -> None:
    """Print what both say."""
    contexts = _contexts()
    HttpRequester.get = lambda _, url, **__: _Page(contexts[url])
    crate = ROCrate(folder)
    settings = ValidationSettings(
        rocrate_uri=folder, profile_identifier=profile, requirement_severity=Severity.REQUIRED
    )
    result = services.validate(settings)
    print(
        json.dumps(
            {
                "main": crate.mainEntity.id,
                "entities": len(crate.get_entities()),
                "checks": len(result.executed_checks),
                "issues": [issue.message for issue in result.get_issues()],
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
