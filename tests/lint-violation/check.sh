#!/usr/bin/env bash
# Lints the crate that breaks the rules of core/clippy.toml: the lint must refuse every line of it.
set -euo pipefail
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-../../target}/lint-violation"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if cargo clippy --quiet -- -D warnings >"$log" 2>&1; then
    echo "tests/lint-violation passed the lint: core/clippy.toml has stopped to bite" >&2
    exit 1
fi
for rule in Instant::now SystemTime::now thread::spawn UdpSocket fs::read HashMap std::println; do
    if ! grep -q "disallowed .*\`[a-z_:]*$rule\`" "$log"; then
        echo "core/clippy.toml does not forbid $rule; the lint said:" >&2
        cat "$log" >&2
        exit 1
    fi
done
echo "lint: every rule of core/clippy.toml bites"
