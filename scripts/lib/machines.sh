# What scripts/test says and writes about processors: machines.py. Source it after common.sh.
# shellcheck shell=bash disable=SC2154

# machines <argument>...: machines.py. Tests that passed stay passed if it fails, so that is only said.
machines() { "$repository/scripts/lib/machines.py" "$@" || echo "scripts/lib/machines.py $1 failed (status $?)"; }

# state_before <argument for ctest>...: the commit whose tests are about to run, or why no record of them may be made.
state_before() {
  if [ $# -gt 0 ]; then echo "not recorded: arguments for ctest choose among the tests: $*" && return; fi
  machines state
}

# summary_last <file> <command>...: runs ctest, and holds its summary back in the file, to be the last thing printed.
summary_last() {
  "${@:2}" 2>&1 | sed -u -n -e "/^[0-9]*% tests passed/,\$w $1" -e '/^[0-9]*% tests passed/,$!p'
}
