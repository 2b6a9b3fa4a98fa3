#!/bin/sh
# The main job on real input: three tasks are onboarded with their reports, then fetched and used.
set -eu
cd "$(dirname "$0")/.."
run() { printf '\n$ %s\n' "$*"; "$@"; }

for task in reviews tickets paws; do
    run onboard submit --dataset "examples/$task.jsonl" --test "examples/$task-test.jsonl" --init auto --wait
done
run onboard tasks list
run onboard fetch reviews --output "$ONBOARD_HOME/fetched"
run onboard predict reviews --text "The handle broke on day two and nobody answers my mails."
run onboard predict tickets --text "You charged my card twice for the same month, please refund one of them."
run onboard predict sst2 --text "A warm, funny and surprisingly honest film."

printf '\nThe reports as pages, made by: onboard jobs show TASK --report FILE\n'
for task in reviews tickets paws; do
    onboard jobs show "$task" --report "$ONBOARD_HOME/$task.html" >/dev/null
done
