# The front door to Meson. `make help` says what there is.
PREFIX = /usr/local
DESTDIR =
SOAK_FACTOR = 60
FUZZ_SECONDS = 60

.PHONY: all run test install bench soak check-style asan tsan fuzz clean help example-chat

all:
	@tools/configure build
	@ninja -C build

run:
	@tools/setup run
	@tools/configure build
	@ninja -C build --quiet src/cli/baton src/guardian/baton-guardian
	@build/src/cli/baton demo

example-chat:
	@tools/setup run
	@tools/configure build examples=true
	@ninja -C build --quiet src/cli/baton examples/example-chat-room \
		examples/example-chat-client
	@examples/chat/demo.py build

test:
	@tools/setup test
	@tools/run-tests

asan tsan:
	@tools/setup test
	@tools/run-tests $@

soak:
	@tools/setup test
	@BATON_SOAK=1 tools/run-tests -- -t $(SOAK_FACTOR)

fuzz:
	@tools/setup test
	@tools/run-fuzz $(FUZZ_SECONDS)

check-style:
	@tools/setup test
	@tools/configure build tests=true
	@BATON_SOAK=1 tools/check-style --build build

bench:
	@tools/setup bench
	@tools/configure build-bench bench=true buildtype=release
	@bench/get-peers build-bench/peers
	@BATON_BENCH_PEERS='$(CURDIR)/build-bench/peers' ninja -C build-bench --quiet bench

install:
	@tools/configure build prefix='$(PREFIX)'
	@ninja -C build --quiet
	@case '$(DESTDIR)' in \
	'' | /*) stage='$(DESTDIR)' ;; \
	*) stage='$(CURDIR)/$(DESTDIR)' ;; \
	esac; DESTDIR="$$stage" meson install -C build --no-rebuild
	@test -n '$(DESTDIR)' || ldconfig 2>/dev/null || true

clean:
	rm -rf build build-asan build-tsan build-bench

help:
	@echo 'make              builds the library and the program, optimised, in build/'
	@echo 'make run          installs what is missing, builds, and plays baton demo'
	@echo 'make example-chat plays examples/chat: a room moves when its process is killed'
	@echo 'make test         installs what is missing and runs every test and check there is'
	@echo 'make asan, tsan   only the tests under AddressSanitizer, under ThreadSanitizer'
	@echo 'make soak         the tests in their long versions'
	@echo 'make fuzz         the fuzz targets, FUZZ_SECONDS=$(FUZZ_SECONDS) each'
	@echo 'make check-style  only the format and the linters'
	@echo 'make bench        the measurements'
	@echo 'make install      installs under PREFIX=$(PREFIX), staged in DESTDIR'
	@echo 'make clean        removes all build directories'
	@echo 'SETUP=no skips the installation of packages.'
