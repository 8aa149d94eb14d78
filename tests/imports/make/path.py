"""Forwards frames between two interfaces with delay, loss and reordering, for kernels without netem.

path.py ONE OTHER DELAY_MS LOSS_EVERY LATE_EVERY: each frame is kept for DELAY_MS. Every LOSS_EVERY-th data
frame from ONE is dropped, and every LATE_EVERY-th is kept for 5 ms more, so that later frames overtake it (0:
none)."""

import heapq
import select
import socket
import sys
import time

LATE_S = 0.005
#: Smaller frames are acknowledgements.
DATA = 200


def main() -> None:
    """Forwards frames until it is killed."""
    one, other = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2))
    one.bind((sys.argv[1], 0))
    other.bind((sys.argv[2], 0))
    delay, loss, late = float(sys.argv[3]) / 1000, int(sys.argv[4]), int(sys.argv[5])
    waiting: list[tuple[float, int, socket.socket, bytes]] = []
    count = number = 0
    while True:
        pause = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
        for source in select.select([one, other], [], [], pause)[0]:
            frame, address = source.recvfrom(70_000)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            now, extra = time.monotonic(), 0.0
            if source is one and len(frame) > DATA:
                count += 1
                if loss and count % loss == 0:
                    continue
                extra = LATE_S if late and count % late == 0 else 0.0
            number += 1
            heapq.heappush(waiting, (now + delay + extra, number, other if source is one else one, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, target, frame = heapq.heappop(waiting)
            target.send(frame)


main()
