#!/bin/sh
# Java for Spark, a browser and a PDF reader for the pages: installed where they are missing, this is a Debian and
# we may. Elsewhere the tests that need them say so.
set -eu
wanted=""
command -v java >/dev/null 2>&1 || wanted="$wanted openjdk-17-jre-headless"
command -v chromium >/dev/null 2>&1 || wanted="$wanted chromium"
command -v pdftotext >/dev/null 2>&1 || wanted="$wanted poppler-utils"
[ -n "$wanted" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $wanted >/dev/null ||
        echo "could not install:$wanted" >&2
else
    echo "not installed:$wanted; tests that need them are skipped" >&2
fi
