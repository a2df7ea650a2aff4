#!/bin/bash
# Torch once more would be 5 GB: the environment that has it is put on this one's path.
set -euo pipefail
python="$1/bin/python"
"$python" -m pip install --disable-pip-version-check --no-input --quiet --no-deps \
    onnx2torch==1.5.15 torchvision==0.28.0
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$TRANSECT_NEEDS_TORCH/${site#"$1/"}" > "$site/torch.pth"
