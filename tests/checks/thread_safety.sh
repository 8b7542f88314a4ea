#!/bin/sh
# Clang's analysis of locks over the sources that use sys/mutex.h, directly or by a header that includes it.
# Usage: thread_safety.sh CLANG SOURCE_FOLDER
set -eu
clang=$1
cd "$2"
headers="sys/mutex.h $(grep -rl '#include "sys/mutex.h"' --include='*.h' .)"
files=$(for header in $headers; do grep -rlF "#include \"${header#./}\"" --include='*.cc' . || true; done | sort -u)
[ -n "$files" ]
for file in $files; do
  "$clang" -std=c++23 -fsyntax-only -Wthread-safety -Werror=thread-safety -I. "$file"
done
echo "the locks of $(echo "$files" | wc -l) files are fine"
