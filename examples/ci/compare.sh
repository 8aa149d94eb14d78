#!/usr/bin/env bash
# What the action does, and what other CI systems can call. Reads SCENARIO, HEAD, BASE, PAIR, WHERE and FAIL_ON from
# the environment; exits as narrows does: 5 when an expectation fails or a limit is broken, 6 when runs are invalid.
set -euo pipefail
out=${RUNNER_TEMP:-$(mktemp -d)}
PATH=$out/narrows/bin:$PATH
markdown=$out/narrows.md
status=0
options() { # The words of an option string, with quotes understood.
    python3 -c 'import shlex, sys; print("\0".join(shlex.split(sys.argv[1])), end="")' "$1"
}
run() { # FOLDER OPTIONS
    local words=()
    [[ -z $2 ]] || mapfile -d '' -t words < <(options "$2")
    narrows run "$SCENARIO" --where "${WHERE:-simulate}" --no-report -o "$1" "${words[@]}"
}
run "$out/head" "${HEAD:-}" || status=$?
[[ $status == 0 || $status == 5 || $status == 6 ]] || exit "$status"
if [[ -n ${BASE:-} ]]; then
    run "$out/base" "$BASE" >/dev/null || [[ $? == 5 || $? == 6 ]]
    limits=()
    [[ -z ${PAIR:-} ]] || limits+=(--pair "$PAIR")
    while IFS= read -r limit; do
        [[ -z $limit ]] || limits+=(--fail-on "$limit")
    done <<< "${FAIL_ON:-}"
    narrows compare "$out/base" "$out/head" --markdown "${limits[@]}" > "$markdown" || status=$?
else
    { echo '```'; narrows show "$out/head"; echo '```'; } > "$markdown"
fi
[[ -z ${GITHUB_STEP_SUMMARY:-} ]] || cat "$markdown" >> "$GITHUB_STEP_SUMMARY"
[[ -z ${GITHUB_OUTPUT:-} ]] || echo "markdown=$markdown" >> "$GITHUB_OUTPUT"
cat "$markdown"
exit "$status"
