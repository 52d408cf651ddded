"""A kernel that listens on no network port: files in a folder of its own stand in for them.

`python -m kscore.chapters.kernel` is that kernel. It differs from the usual one in a pipe for the output of forked
processes, which ipykernel opens on a port of the loopback address; the collection forks none.
"""

from jupyter_client import AsyncKernelManager
from traitlets.config import Config


class QuietKernelManager(AsyncKernelManager):
    """Starts the kernel of this module in the place of the usual one.

    Its log says what is critical and no more. Every kernel is interrupted when its chapter has ended, and would log
    that as an error; the errors of a chapter come as messages and not by the log.
    """

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """Return the command that starts a kernel."""
        usual = super().format_kernel_cmd(extra_arguments)
        return [
            *(__name__ if word == "ipykernel_launcher" else word for word in usual),
            "--IPKernelApp.log_level=CRITICAL",
        ]


def settings(folder: str) -> Config:
    """Return the settings with which papermill starts such a kernel, its sockets as files in a folder."""
    return Config(
        {
            "NotebookClient": {"kernel_manager_class": QuietKernelManager},
            "AsyncKernelManager": {"transport": "ipc", "ip": f"{folder}/s", "connection_file": f"{folder}/kernel.json"},
        }
    )


def main() -> None:
    """Be a kernel."""
    from ipykernel import kernelapp
    from ipykernel.iostream import IOPubThread

    kernelapp.IOPubThread = lambda socket, pipe, session: IOPubThread(socket, pipe=False, session=session)
    kernelapp.launch_new_instance()


if __name__ == "__main__":
    main()
