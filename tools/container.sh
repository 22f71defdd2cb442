#!/bin/sh
# Build the image and check what docs/how-to/container.md promises. Needs docker or podman.
#   IMAGE       its name (reconpriv)
#   BUILD_ARGS  more options for the build, such as --build-arg BASE=...
#   RUN_ARGS    more options for every run
set -eu
cd "$(dirname "$0")/.."
image="${IMAGE:-reconpriv}"

builder=""
for candidate in docker podman; do
    # A docker without its daemon can do nothing.
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" info >/dev/null 2>&1; then
        builder="$candidate"
        break
    fi
done
if [ -z "$builder" ]; then
    echo "Neither docker nor podman works here: no image was built, and nothing was checked." >&2
    exit 2
fi

# shellcheck disable=SC2086 # options are words
"$builder" build ${BUILD_ARGS:-} -t "$image" .

work="$(mktemp -d)"
studio=""
cleanup() {
    [ -z "$studio" ] || "$builder" rm -f "$studio" >/dev/null 2>&1 || true
    # What the container's user wrote, only that user may remove.
    run --network none -v "$work:/data" --entrypoint rm "$image" -rf /data/release >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap cleanup EXIT
chmod 777 "$work"

failed() {
    echo "container: $1" >&2
    exit 1
}
# shellcheck disable=SC2086
run() {
    "$builder" run --rm --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
        ${RUN_ARGS:-} "$@"
}

# The version is that of the sources.
version="$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/reconpriv/_version.py)"
[ "$(run --network none "$image" --version)" = "reconpriv $version" ] || failed "it has another version"

# It is not root, and can write nothing but /tmp and what is mounted.
[ "$(run --network none --entrypoint id "$image" -u)" = 10001 ] || failed "it runs as root"
if run --network none --entrypoint touch "$image" /opt/reconpriv/x 2>/dev/null; then
    failed "the root file system can be written to"
fi

# Without a network, it publishes into the mounted folder and answers from there.
run --network none -v "$work:/data" "$image" \
    publish example:adult release -s occupation --public age,sex,race --missing value --test-key >/dev/null
[ -s "$work/release/datapackage.json" ] || failed "there is no release"
run --network none -v "$work:/data:ro" "$image" \
    query release "SELECT count(*) FROM release WHERE occupation = 'Sales'" >/dev/null
run --network none -v "$work:/data:ro" "$image" doctor >/dev/null

# The studio listens on the container's own loopback address, unless told otherwise.
# Asked from inside the container: http.client is in every Python.
ask='import http.client, sys
address, path = sys.argv[1], sys.argv[2]
connection = http.client.HTTPConnection(address, 8123, timeout=10)
connection.request("GET", path, headers={"Host": "127.0.0.1:8123"})
print(connection.getresponse().status)'
status() {
    "$builder" exec "$studio" python3 -c "$ask" "$1" "$2" 2>/dev/null || echo none
}
start() {
    # shellcheck disable=SC2086
    studio="$("$builder" run -d --read-only --tmpfs /tmp --cap-drop ALL \
        --security-opt no-new-privileges ${RUN_ARGS:-} "$image" studio --no-browser --port 8123 "$@")"
    tries=0
    until "$builder" logs "$studio" 2>&1 | grep -q "token="; do
        tries=$((tries + 1))
        [ "$tries" -lt 60 ] || failed "the studio did not start"
        sleep 1
    done
    path="$("$builder" logs "$studio" 2>&1 | sed -n 's#^Studio: http://127.0.0.1:8123\(/.*\)#\1#p')"
}
stop() {
    "$builder" stop -t 20 "$studio" >/dev/null
    "$builder" logs "$studio" 2>&1 | grep -q "Studio closed" || failed "the studio was not closed in order"
    "$builder" rm -f "$studio" >/dev/null
    studio=""
}
# Another address of the loopback network stands for "not 127.0.0.1"; it needs no second machine.
start
[ "$(status 127.0.0.2 /)" = none ] || failed "the studio listens on more than 127.0.0.1"
[ "$(status 127.0.0.1 /)" = 403 ] || failed "the studio lets in somebody without its token"
[ "$(status 127.0.0.1 "$path")" = 200 ] || failed "the studio does not open"
stop
start --listen 0.0.0.0
[ "$(status 127.0.0.2 /)" = 403 ] || failed "the studio does not listen where it was told to"
[ "$(status 127.0.0.2 "$path")" = 200 ] || failed "the studio does not open"
stop
echo "container: $image was built with $builder and checked: not root, read-only, loopback unless told."
