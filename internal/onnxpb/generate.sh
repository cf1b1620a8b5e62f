#!/bin/sh
# Rebuilds onnx.textproto and onnx.pb.go from the descriptor inside the PyPI
# package onnx. Needs python3 with venv, and go; writes only beside itself.
# To follow a new ONNX release, change ONNX_VERSION and run `go generate`.
set -eu

ONNX_VERSION=1.23.2

cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet "onnx==$ONNX_VERSION"
"$scratch/venv/bin/python" generate.py
