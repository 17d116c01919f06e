#!/usr/bin/env bash
# Runs every fuzz target for PTXGEN_FUZZ_SECONDS (default 5) seconds.
exec bash "$(dirname "$0")/../fuzz/run.sh" "${PTXGEN_FUZZ_SECONDS:-5}"
