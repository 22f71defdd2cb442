#!/bin/sh
# Java for Spark, a browser and a PDF reader for the pages, PostgreSQL's programs for databases, R and PSPP for the scripts
# of an export, and packages of R for our own package: installed where they are missing, this is a Debian and we may. Elsewhere the tests that need them say so.
set -eu
wanted=""
command -v java >/dev/null 2>&1 || wanted="$wanted openjdk-17-jre-headless"
command -v chromium >/dev/null 2>&1 || wanted="$wanted chromium"
command -v pdftotext >/dev/null 2>&1 || wanted="$wanted poppler-utils"
command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || wanted="$wanted postgresql"
# What these recommend is ten times their size, and not needed.
alone=""
command -v Rscript >/dev/null 2>&1 || alone="$alone r-base-core"
for package in jsonlite knitr markdown; do
    Rscript -e "quit(status = !requireNamespace('$package', quietly = TRUE))" >/dev/null 2>&1 ||
        alone="$alone r-cran-$package"
done
command -v pspp >/dev/null 2>&1 || alone="$alone pspp"
[ -n "$wanted$alone" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    # The tests start a server of their own; Debian need not make one that runs all the time.
    no_cluster=/etc/postgresql-common/createcluster.d/reconpriv-tests.conf
    case "$wanted" in *postgresql*)
        mkdir -p "${no_cluster%/*}" && echo "create_main_cluster = false" >"$no_cluster" ;;
    esac
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || true
    [ -z "$wanted" ] || apt-get install -y -qq $wanted >/dev/null || echo "could not install:$wanted" >&2
    [ -z "$alone" ] || apt-get install -y -qq --no-install-recommends $alone >/dev/null ||
        echo "could not install:$alone" >&2
    rm -f "$no_cluster"
else
    echo "not installed:$wanted$alone; tests that need them are skipped" >&2
fi
