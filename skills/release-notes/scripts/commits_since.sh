#!/usr/bin/env bash
# Lists commits between two revisions as a Markdown draft, grouped by conventional type.
# Usage: commits_since.sh [FROM [TO]]   FROM: the last tag before TO; TO: HEAD
# Exit codes: 0 done, 1 nothing in the range, 2 usage or no repository.
set -euo pipefail

fail() {
    printf '%s\n' "$1" >&2
    exit 2
}

(($# <= 2)) || fail "usage: commits_since.sh [FROM [TO]]"
git rev-parse --git-dir >/dev/null 2>&1 || fail "this folder is in no git repository"

to=${2:-HEAD}
git rev-parse --quiet --verify "$to^{commit}" >/dev/null || fail "no such revision: $to"
if (($# >= 1)); then
    from=$1
    git rev-parse --quiet --verify "$from^{commit}" >/dev/null || fail "no such revision: $from"
else
    # The tag on TO itself is the release being described, so look from its parents.
    from=$(git describe --tags --abbrev=0 "$to^" 2>/dev/null || true)
fi

range=${from:+$from..}$to
breaking='' feat='' fix='' perf='' other='' count=0
pattern='^([a-zA-Z]+)(\(([^)]*)\))?(!)?:[[:space:]]*(.*)$'
footer='(^|'$'\n'')BREAKING[ -]CHANGE:'

while IFS=$'\x1f' read -r -d '' hash date subject body || [[ -n ${hash:-} ]]; do
    count=$((count + 1))
    type='' scope='' bang='' text=$subject
    if [[ $subject =~ $pattern ]]; then
        type=${BASH_REMATCH[1]} scope=${BASH_REMATCH[3]} bang=${BASH_REMATCH[4]} text=${BASH_REMATCH[5]}
    fi
    line="- ${scope:+**$scope:** }$text ($hash, $date)"$'\n'
    if [[ -n $bang || $body =~ $footer ]]; then
        breaking+=$line
        continue
    fi
    case $type in
        feat | Feat | feature) feat+=$line ;;
        fix | Fix | bugfix) fix+=$line ;;
        perf | Perf) perf+=$line ;;
        *) other+="- ${type:+$type: }${scope:+**$scope:** }$text ($hash, $date)"$'\n' ;;
    esac
done < <(git log --no-merges -z --format='%h%x1f%as%x1f%s%x1f%b' --end-of-options "$range" --)

if ((count == 0)); then
    printf 'no commits in %s\n' "$range" >&2
    exit 1
fi

printf '# %s (%d commits)\n' "$range" "$count"
section() {
    if [[ -n $2 ]]; then
        printf '\n## %s\n\n%s' "$1" "$2"
    fi
}
section 'Breaking' "$breaking"
section 'New' "$feat"
section 'Fixed' "$fix"
section 'Faster' "$perf"
section 'Other (read each)' "$other"
