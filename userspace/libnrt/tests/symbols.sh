#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# symbols.sh LIBRARY INCLUDE-DIR: the library exports exactly the functions that
# its public headers declare.
set -eu

exported=$(nm -D --defined-only "$1" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort)
others=$(nm -D --defined-only "$1" | awk '$2 != "T" && $2 != "A"')
declared=$(cat "$2"/nrt/*.h | tr '\n' ' ' | sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
	grep -oE '\b(nrt|nrta|nrtx)_[a-z0-9_]+\(' | tr -d '(' | sort -u)

if [ -n "$others" ]; then
	echo "exported, but not a function: $others" >&2
	exit 1
fi
if [ "$exported" != "$declared" ]; then
	echo "exported (left) and declared (right) differ:" >&2
	a=$(mktemp) b=$(mktemp)
	echo "$exported" >"$a"
	echo "$declared" >"$b"
	diff "$a" "$b" >&2 || true
	rm -f "$a" "$b"
	exit 1
fi
