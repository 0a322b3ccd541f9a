"""`ragbench dev`: UI and daemon on the workspace, loopback only, behind the guard, for whoever holds the token.

An own launcher, because `dagster dev` hangs half alive on a busy port and leaves its webserver unguarded.
The private names work at the pinned Dagster version and stand only here; a smoke test starts it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace

STOP_S = 10  # seconds the daemon may take to stop


def bind(port: int) -> socket.socket:
    """The loopback socket, bound before Dagster is imported.

    Raises:
        UserError: the port is taken.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
        sock.listen(128)
    except OSError as fault:
        sock.close()
        raise UserError(f"port {port} cannot be used ({fault.strerror}); choose another with --port") from fault
    return sock


def serve(ws: Workspace, port: int, read_only: bool = False) -> int:
    """Serve until SIGINT or SIGTERM; returns the exit code 0.

    Raises:
        UserError: the port is taken, or the definitions do not load.
    """
    # uvicorn raises the captured signal again after its shutdown: with the default handlers that would kill
    # this process before the daemon is stopped. `cmd &` also hands down an ignored SIGINT; this cures it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sock = bind(port)
    port = sock.getsockname()[1]
    try:
        with sock:
            _serve(ws, sock, port, read_only)
    except KeyboardInterrupt:
        pass
    return 0


def _serve(ws: Workspace, sock: socket.socket, port: int, read_only: bool) -> None:
    import uvicorn
    from dagster._cli.proxy_server_manager import ProxyServerManager
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import ModuleTarget, WorkspaceFileTarget
    from dagster_shared.serdes import serialize_value
    from dagster_webserver.app import create_app_from_workspace_process_context

    from ragbench_dagster.orchestration.instance import open_instance
    from ragbench_dagster.orchestration.runs import LOCATION, MODULE
    from ragbench_dagster.orchestration.web_guard import Access, Guard, read_token

    instance = open_instance(ws)
    token = read_token(ws)
    target = ModuleTarget(MODULE, attribute=None, working_directory=os.getcwd(), location_name=LOCATION)
    with (
        tempfile.TemporaryDirectory() as folder,
        ProxyServerManager(instance, target, code_server_log_level="WARNING") as servers,
    ):
        file = Path(folder) / "workspace.yaml"
        file.write_text(yaml.safe_dump({"load_from": servers.get_code_server_specs()}), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "dagster._daemon",
            "run",
            "--workspace",
            str(file),
            "--log-level",
            "warning",
            "--instance-ref",  # DAGSTER_HOME names a folder, not which file in it holds the settings
            serialize_value(instance.get_ref()),
        ]
        # Schedules and sensors start runs: a server that only shows has no daemon.
        daemon = None if read_only else subprocess.Popen(command, start_new_session=True)
        try:
            with WorkspaceProcessContext(
                instance, WorkspaceFileTarget([str(file)]), version="", read_only=read_only
            ) as context:
                app = create_app_from_workspace_process_context(context, "", 2000)
                guarded = Guard(app, port, Access(token, port), read_only)
                kind = " to look at (read-only, no schedules)" if read_only else ""
                link = f"http://127.0.0.1:{port}/?token={token}"
                print(f"Ragbench is on {link}{kind} (stop with ctrl-C)", file=sys.stderr, flush=True)
                # No access log: its lines would hold the token of the link.
                config = uvicorn.Config(guarded, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
                uvicorn.Server(config).run(sockets=[sock])
        finally:
            if daemon is not None:
                _stop(daemon)


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    daemon.send_signal(signal.SIGINT)
    try:
        daemon.wait(STOP_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
