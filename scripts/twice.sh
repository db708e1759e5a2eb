# shellcheck shell=bash
# twice.sh is sourced by the scripts that run tests.

# twice WORK FIRST ONE [FLAGS OF testreport] runs tests and prints what came of them. What fails beside other work on a busy machine and
# passes by itself is unsteady, and said to be; what fails twice has failed.
#
# FIRST runs all tests, and ONE PACKAGE PATTERN those of a package that the pattern finds; both write what `go test -json` does. WORK is a
# folder that holds testreport.
twice() {
	local work=$1 first=$2 one=$3
	shift 3
	true >"$work/again"
	if $first </dev/null | "$work/testreport" -again "$work/again" "$@"; then return 0; fi
	[[ -s $work/again ]] || return 1
	printf '\nOnce more, by themselves:\n'
	cat "$work/again"
	once_more "$one" <"$work/again" | "$work/testreport" || return 1
	printf '\nUnsteady: these failed beside the others and passed by themselves.\n'
	cat "$work/again"
}

# once_more runs what standard input names: a package and a pattern on each line.
once_more() {
	local package pattern status=0
	while read -r package pattern; do
		"$1" "$package" "$pattern" </dev/null || status=$?
	done
	return "$status"
}
