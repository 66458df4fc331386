#!/bin/sh
# Fail if a function of the core uses instructions beyond the baseline of x86-64, unless its name says so: such a
# function would end the program on an older processor. Arguments: objdump, and the core's library.
set -eu
found=$("$1" --disassemble --no-show-raw-insn "$2" | awk '
  /^[0-9a-f]+ <.*>:$/ { name = $2 }
  name !~ /_avx2|_avx512/ && /%[yz]mm|\t(popcnt|lzcnt|tzcnt|andn|bzhi|pdep|pext|mulx|sarx|shlx|shrx|v[a-z0-9]+) / {
    print name, $0
  }' | head -n 20)
[ -z "$found" ] || { echo "$found" >&2; exit 1; }
