#!/bin/sh
# Builds its program in the setup, beside itself.
here=$(dirname "$0")
case "$1" in
run_first) echo receiver ;;
deps) ;;
setup) cp "$here/receiver_first.py" "$here/built.py" ;;
setup_after_reboot) echo again > "$here/rebooted" ;;
*) exec python3 "$here/built.py" "$@" ;;
esac
