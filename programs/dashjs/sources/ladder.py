"""The film that the player shows, in several qualities: `ladder.py FOLDER` writes it with ffmpeg, once.

FOLDER then has `film.mpd` (DASH) and, for each quality, its segments of 2 s. The picture is ffmpeg's test
pattern with noise, which without it needs a tenth of its rate. Half a minute is encoded, with one thread and
therefore alike each time, and repeated six times.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

#: Width, height and bit/s. Pictures are small: all processors that decode them are those of the emulator.
QUALITIES = (
    (256, 144, 300_000),
    (320, 180, 600_000),
    (480, 270, 1_200_000),
    (640, 360, 2_400_000),
    (640, 360, 4_800_000),
)
FRAME_RATE = 25
SEGMENT_S = 2
ENCODED_S = 30
REPEATED = 6
QUIET = ("ffmpeg", "-hide_banner", "-loglevel", "error", "-nostdin", "-y")


def encode(path: Path, width: int, height: int, rate: int) -> None:
    """Encodes one quality; each segment begins with a picture that needs no other."""
    pattern = f"testsrc2=size={width}x{height}:rate={FRAME_RATE}:duration={ENCODED_S}"
    picture = f"{pattern},noise=alls=30:all_seed=1:allf=t"
    length = str(FRAME_RATE * SEGMENT_S)
    control = ["-b:v", str(rate), "-minrate", str(rate), "-maxrate", str(rate), "-bufsize", str(rate)]
    pictures = ["-g", length, "-keyint_min", length, "-sc_threshold", "0", "-bf", "0", "-pix_fmt", "yuv420p"]
    encoder = ["-c:v", "libx264", "-preset", "veryfast", "-threads", "1", "-x264-params", "nal-hrd=cbr"]
    clean = ["-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1"]
    run([*QUIET, "-f", "lavfi", "-i", picture, *encoder, *control, *pictures, *clean, str(path)])


def pack(films: list[Path], folder: Path) -> None:
    """Cuts the films into segments, and writes the manifest."""
    inputs = [word for film in films for word in ("-stream_loop", str(REPEATED - 1), "-i", str(film))]
    maps = [word for number in range(len(films)) for word in ("-map", f"{number}:v")]
    cut = ["-f", "dash", "-seg_duration", str(SEGMENT_S), "-use_template", "1", "-use_timeline", "0"]
    names = [
        "-init_seg_name",
        "$RepresentationID$/init.mp4",
        "-media_seg_name",
        "$RepresentationID$/$Number$.m4s",
    ]
    sets = ["-adaptation_sets", "id=0,streams=v", "-fflags", "+bitexact"]
    for number in range(len(films)):
        (folder / str(number)).mkdir(parents=True)
    run([*QUIET, *inputs, *maps, "-c", "copy", *cut, *names, *sets, str(folder / "film.mpd")])


def run(command: list[str]) -> None:
    """Runs ffmpeg; raises `OSError` if it fails."""
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise OSError(f"error: ffmpeg ended with exit code {done.returncode}")


def main(words: list[str]) -> int:
    """Makes the film; returns the exit code."""
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory() as scratch:
            films = []
            for number, quality in enumerate(QUALITIES):
                films.append(Path(scratch) / f"{number}.mp4")
                encode(films[-1], *quality)
                print(f"encoded {quality[2] // 1000} kbit/s", flush=True)
            pack(films, Path(words[0]))
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
