#!/usr/bin/env bash
# Fills DIR with opendataval and what it needs beyond numpy, scipy, scikit-learn, torch and tqdm: for a machine
# without a network that has those. All of it is Python alone, under 1 MB.
# Usage: make_portable.sh DIR; then there: PYTHONPATH=DIR python run_opendataval_table.py value ROWS CELLS
set -euo pipefail
dir=${1:?usage: make_portable.sh DIR}
pip=${PIP:-python3 -m pip}
$pip install -q --no-deps --no-compile --target "$dir" opendataval==1.3.0 geomloss==0.2.6 tqdm==4.64.1
rm -rf "$dir"/{bin,share,test,LICENSE.txt} # scripts, and geomloss's own tests
