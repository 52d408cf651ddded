"""Opening a chapter in JupyterLab is no change of it: `make lab` keeps the reader's version of Python out of the file.

JupyterLab writes the kernel's `language_info`, with the exact version of Python, into every notebook that it opens.
"""

import copy

from ipykernel.ipkernel import IPythonKernel
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

KEY = "language_info"


class Chapters(AsyncLargeFileManager):
    """Shows a notebook with the `language_info` of this Python, and saves it with that of its file."""

    async def get(self, path: str, content: bool = True, type: str | None = None, **options: object) -> dict:
        """Return a file or folder."""
        model = await super().get(path, content=content, type=type, **options)
        if content and model["type"] == "notebook":
            about = model["content"]["metadata"]
            if about.get("kernelspec", {}).get("name") == "python3":
                about[KEY] = copy.deepcopy(IPythonKernel.language_info)
        return model

    async def save(self, model: dict, path: str = "") -> dict:
        """Save a file or folder."""
        if model["type"] == "notebook" and await self.file_exists(path):
            kept = (await super().get(path, type="notebook"))["content"]["metadata"].get(KEY)
            about = {key: value for key, value in model["content"]["metadata"].items() if key != KEY}
            model = model | {"content": {**model["content"], "metadata": about | ({KEY: kept} if kept else {})}}
        return await super().save(model, path)
