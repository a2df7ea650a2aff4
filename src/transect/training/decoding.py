"""Image files to arrays of bytes, in threads. Pillow is imported where it is needed."""

from __future__ import annotations

import io
import os
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    import PIL.Image

# A photograph has some megabytes; what is larger is not read into memory.
MAX_FILE_BYTES = 256 << 20

RESIZING = (
    "converted to RGB (alpha dropped, 16 bits cut to 8), EXIF orientation ignored, squeezed to a "
    "square by Pillow's bilinear filter with antialiasing; a JPEG file at least four times as large "
    "is first scaled down by a power of two in its cosine transform, to no less than twice the size"
)

Item = TypeVar("Item")
Made = TypeVar("Made")


class Unusable(ValueError):
    """A file is not an image that can be used; the message is the reason, without its name."""


def decoder() -> dict[str, str]:
    """Return the versions of what decodes. Raises ImportError where Pillow is not installed."""
    import PIL
    from PIL import features

    jpeg = features.version("libjpeg_turbo") or features.version("jpg")
    return {"pillow": PIL.__version__, "jpeg": str(jpeg)}


def read_bytes(path: Path) -> bytes:
    """Return a regular file's content. Raises Unusable with the reason when it cannot be read."""
    try:
        facts = path.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise Unusable("a folder, not a file")
        # A pipe or a device would be waited for.
        if not stat.S_ISREG(facts.st_mode):
            raise Unusable("not a regular file")
        if facts.st_size > MAX_FILE_BYTES:
            raise Unusable(f"{facts.st_size} bytes, more than {MAX_FILE_BYTES}")
        data = path.read_bytes()
    except OSError as error:
        raise Unusable(os.strerror(error.errno) if error.errno else str(error)) from None
    if not data:
        raise Unusable("empty")
    return data


def decode(data: bytes, size: int) -> np.ndarray:
    """Decode one JPEG or PNG file to uint8 (3, size, size); RESIZING says how.

    Raises Unusable when it is something else, damaged, or has more pixels than Pillow allows.
    """
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    try:
        # No other formats: some of Pillow's readers start programs.
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
            if limit is not None and image.width * image.height > limit:
                raise Unusable(f"{image.width} x {image.height} pixels, more than {limit}")
            if image.format != "PNG":
                image.draft(None, (2 * size, 2 * size))
            colours = _to_rgb(image)
        if colours.size != (size, size):
            colours = colours.resize((size, size), Image.Resampling.BILINEAR)
    except Unusable:
        raise
    except Image.UnidentifiedImageError:
        raise Unusable("neither a JPEG nor a PNG image") from None
    except Image.DecompressionBombError as error:
        raise Unusable(str(error)) from None
    except MemoryError:
        raise
    # Pillow raises whatever its readers stumble over: SyntaxError and struct.error among them.
    except Exception as error:
        raise Unusable(f"damaged: {type(error).__name__}: {error}") from None
    return np.ascontiguousarray(np.asarray(colours, np.uint8).transpose(2, 0, 1))


def _to_rgb(image: PIL.Image.Image) -> PIL.Image.Image:
    from PIL import Image

    image.load()
    # Pillow's own conversion of 16-bit grey clips at 255 instead of scaling.
    if image.mode.startswith("I"):
        grey = (np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8)
        return Image.fromarray(grey).convert("RGB")
    return image.convert("RGB")


def read_ahead(
    pool: Executor, make: Callable[[Item], Made], items: Iterable[Item], ahead: int
) -> Generator[Made, None, None]:
    """Yield make(item) in the items' order, with no more than `ahead` of them under way.

    When the iterator is closed, what has not begun is cancelled.
    """
    under_way: deque[Future[Made]] = deque()
    try:
        for item in items:
            under_way.append(pool.submit(make, item))
            if len(under_way) >= ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        for future in under_way:
            future.cancel()
