#!/bin/sh
# The ways in which Baton is built and tested: gcc, asan, tsan. Read with `.` from the top folder by
# the tools that need one; nothing else knows their directories, options and surroundings.

# Sanitizers of this age want less randomness in addresses than newer kernels give.
plain=
if setarch -R true 2>/dev/null; then
	plain='setarch -R'
fi

# What the caller sets comes last, and so counts.
stack=detect_stack_use_after_return=1
export ASAN_OPTIONS="$stack:strict_string_checks=1:allow_addr2line=1:${ASAN_OPTIONS-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:allow_addr2line=1:${TSAN_OPTIONS-}"

way_directory() {
	case $1 in
	gcc) echo build ;;
	*) echo "build-$1" ;;
	esac
}

# What is built for sanitizers is run once: line numbers are all that is wanted of the compiler.
sanitized='b_lundef=false optimization=1 c_args=-gline-tables-only'

# shellcheck disable=SC2086 # several words
way_configure() {
	where=$(way_directory "$1")
	case $1 in
	gcc) tools/configure "$where" tests=true werror=true ;;
	asan)
		CC=clang tools/configure "$where" tests=true werror=true fuzz=true \
			b_sanitize=address,undefined $sanitized
		;;
	tsan)
		CC=clang tools/configure "$where" tests=true werror=true \
			b_sanitize=thread $sanitized
		;;
	esac
}

way_build() {
	way_configure "$1" && ninja -C "$(way_directory "$1")" --quiet
}

# way_run WAY COMMAND...: runs what was built in that way, or what runs it.
way_run() {
	way=$1
	shift
	case $way in
	gcc) "$@" ;;
	*) $plain "$@" ;;
	esac
}
