#!/usr/bin/env bash
# Makes one environment a peer under DIR, each with versions of its own.
# Usage: install.sh DIR [pydvl|opendataval|shap|shapiq|cleanlab ...]   (default: the first two, which is what the timings need)
# pyDVL, OpenDataVal, shap and cleanlab: Python 3.11. shapiq: Python 3.12 or later, taken from $PYTHON312.
set -euo pipefail
dir=${1:?usage: install.sh DIR [PEER ...]}
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || set -- pydvl opendataval

for peer in "$@"; do
  case $peer in
    pydvl | shap | opendataval | cleanlab) python3 -m venv "$dir/$peer" ;;
    shapiq) "${PYTHON312:-python3.12}" -m venv "$dir/$peer" ;;
    *) echo "install.sh: no such peer: $peer" >&2; exit 2 ;;
  esac
  pip=$dir/$peer/bin/pip
  case $peer in
    pydvl) "$pip" install -q pyDVL==0.10.0 ;;
    shap) "$pip" install -q shap==0.51.0 "numpy<2.4" ;; # its CoalitionExplainer fails on 2.4
    shapiq) "$pip" install -q shapiq==1.8.0 ;;
    cleanlab) "$pip" install -q cleanlab==2.9.0 ;;
    opendataval)
      # The wheel's own pins no longer resolve, hence --no-deps and the list beside this file.
      "$pip" install -q torch==2.13.0
      "$pip" install -q --no-deps opendataval==1.3.0
      "$pip" install -q --no-deps -r "$here/odv-requirements.txt"
      ;;
  esac
  echo "$peer ready: $dir/$peer/bin/python"
done
