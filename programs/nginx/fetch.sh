#!/bin/sh
# Fetches the endless file of serve.py for a time: fetch.sh ADDRESS PORT SECONDS. Prints what curl tells of it as JSON, which
# it does not if a signal ends it: so it takes none, and ends with its time or with nginx.
trap '' TERM
curl --silent --show-error --max-time "$3" --output /dev/null --write-out '%{json}' "http://$1:$2/zeros"
# 28: the time is over; 18 and 56: nginx was stopped before.
case $? in 0 | 18 | 28 | 56) exit 0 ;; *) exit 1 ;; esac
