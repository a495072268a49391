#!/usr/bin/env bash
# Installs what `make spark` needs and this machine lacks: a Java runtime, and Spark for Python into .venv-spark.
set -euo pipefail

command -v java >/dev/null || {
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    command -v apt-get >/dev/null || { echo "spark: install a Java runtime (17 or 21), then try again" >&2; exit 1; }
    echo "spark: installing a Java runtime"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -y -qq -o Dpkg::Use-Pty=0 default-jre-headless
}
list=$(dirname "$0")/requirements-spark.txt
venv=$(dirname "$0")/../.venv-spark
if ! cmp -s "$list" "$venv/requirements.txt"; then
    echo "spark: installing PySpark into .venv-spark"
    python3 -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r "$list"
    cp "$list" "$venv/requirements.txt"
fi
