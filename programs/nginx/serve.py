"""nginx on one port, with a congestion control of the kernel.

`serve.py PORT CONTROL FOLDER [ROOT]` serves the files below ROOT, and in any case `/zeros`, a file of zeros
without end, until SIGTERM. nginx has no setting for the congestion control: it inherits its socket from here,
as it does from an older nginx that it replaces, and its connections have that of the socket. It is Debian's
with its defaults, except for one worker, answers that pages of any origin may read, and answers that browsers
do not cache. Requests are in FOLDER/requests.ndjson; no other output of nginx remains.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

NGINX = "/usr/sbin/nginx"
#: Longer than any run at any rate.
ENDLESS = 1 << 40
CONFIGURATION = """\
daemon off;
# Without a master it can't inherit sockets (it crashes).
user root;
worker_processes 1;
pid {scratch}/pid;
error_log stderr;
events {{ worker_connections 256; }}
http {{
  log_format requests escape=json '{{"time_s": $msec, "path": "$uri", "status": $status,'
    ' "bytes": $bytes_sent, "took_s": $request_time, "rtt_us": "$tcpinfo_rtt",'
    ' "cwnd_packets": "$tcpinfo_snd_cwnd"}}';
  access_log {folder}/requests.ndjson requests;
  client_body_temp_path {scratch}/body;
  proxy_temp_path {scratch}/proxy;
  fastcgi_temp_path {scratch}/fastcgi;
  uwsgi_temp_path {scratch}/uwsgi;
  scgi_temp_path {scratch}/scgi;
  types {{ application/dash+xml mpd; video/mp4 mp4 m4s; }}
  default_type application/octet-stream;
  add_header Access-Control-Allow-Origin *;
  add_header Timing-Allow-Origin *;
  add_header Cache-Control no-store;
  server {{
    listen 0.0.0.0:{port};
    root {root};
    location = /zeros {{ alias /proc/self/fd/{zeros}; }}
  }}
}}
"""


def listening(port: int, control: str) -> socket.socket:
    """A socket that listens on a port, with a congestion control. Raises `OSError`."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    except FileNotFoundError:
        raise OSError(f"the kernel has no congestion control {control}") from None
    except PermissionError:
        allowed = "net.ipv4.tcp_allowed_congestion_control"
        raise OSError(f"the congestion control {control} is not among those of {allowed}") from None
    made.bind(("0.0.0.0", port))
    made.listen(511)
    return made


def serve(port: int, control: str, folder: Path, root: str) -> int:
    """Runs nginx until a stop is requested; returns its exit code."""
    zeros = os.memfd_create("zeros", 0)
    os.ftruncate(zeros, ENDLESS)
    with listening(port, control) as made, tempfile.TemporaryDirectory(dir=folder) as scratch:
        text = CONFIGURATION.format(
            port=port, folder=folder, root=root or scratch, scratch=scratch, zeros=zeros
        )
        path = Path(scratch) / "nginx.conf"
        path.write_text(text)
        told: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
        command = [NGINX, "-p", scratch, "-c", str(path), "-e", "stderr"]
        inherited = {**os.environ, "NGINX": f"{made.fileno()};"}
        with subprocess.Popen(command, env=inherited, pass_fds=(made.fileno(), zeros)) as process:
            # The signal goes to the whole group: once nginx runs, it receives it as well.
            if told:
                process.terminate()
            return process.wait()


def main(words: list[str]) -> int:
    """Reads the command line; returns the exit code."""
    if len(words) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    port, control, folder = words[:3]
    try:
        return serve(int(port), control, Path(folder).resolve(), words[3] if len(words) > 3 else "")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
