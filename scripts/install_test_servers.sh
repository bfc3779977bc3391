#!/usr/bin/env bash
# Installs the servers that tests/stores/remote talks to: nginx and Redis (Debian), an S3 gateway and a GCS emulator
# (Go modules), Azurite (npm). Does nothing for what is there already. What cannot be installed is said at the end, and
# the tests that need it then fail with the same words.
#
#   scripts/install_test_servers.sh [directory]       default: build/test-servers
set -u
cd "$(dirname "$0")/.."
target="$(mkdir -p "${1:-build/test-servers}" && cd "${1:-build/test-servers}" && pwd)"
versitygw=github.com/versity/versitygw/cmd/versitygw@v1.8.0
fake_gcs=github.com/fsouza/fake-gcs-server@v1.56.1
azurite=azurite@3.37.0
missing=()

have() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

debian=()
have nginx || debian+=(nginx-light)
have redis-server || debian+=(redis-server)
if [ ${#debian[@]} -gt 0 ]; then
    # The packages would start their services; policy-rc.d says no.
    policy=/usr/sbin/policy-rc.d
    made_policy=
    if have apt-get; then
        [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null && as_root chmod +x "$policy" && made_policy=1; }
        { as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${debian[@]}"; } \
            >"$target/apt.log" 2>&1 || missing+=("${debian[*]} (see $target/apt.log)")
        [ -z "$made_policy" ] || as_root rm -f "$policy"
    else
        missing+=("${debian[*]} (no apt-get)")
    fi
fi

go_install() { # name module
    [ -x "$target/bin/$1" ] && return
    if ! have go; then missing+=("$1 (no go)"); return; fi
    GOBIN="$target/bin" go install "$2" >"$target/$1.log" 2>&1 || missing+=("$1 (see $target/$1.log)")
}
go_install versitygw "$versitygw"
go_install fake-gcs-server "$fake_gcs"

if [ ! -x "$target/node_modules/.bin/azurite-blob" ]; then
    if have npm; then
        npm install --prefix "$target" --no-fund --no-audit --no-save "$azurite" >"$target/azurite.log" 2>&1 \
            || missing+=("azurite (see $target/azurite.log)")
    else
        missing+=("azurite (no npm)")
    fi
fi

if [ ${#missing[@]} -gt 0 ]; then
    printf 'not installed: %s\n' "${missing[@]}" >&2
    exit 1
fi
echo "test servers are in $target"
