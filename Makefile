# SPDX-License-Identifier: Apache-2.0
# make            build/release/portcullis; make V=1 shows the commands
# make MODE=asan  also tsan, cov, dev; each beside the others in build/MODE
# make run        install what is missing, build, run the gateway on its own profile
# make install    prefix=/usr/local, DESTDIR and others: see below; make uninstall
# make test       the same for all tests; make lint | format | fuzz | bench | chaos | manual

Q = $(if $(V),,@echo '  $@' &&)
MODE ?= release
B := build/$(MODE)
JOBS := $(shell nproc)
CC := gcc
PYTHON := /usr/bin/python3

# libgrpc's pkg-config names every absl library; a C program needs these two only.
LIBS := -lgrpc -lgpr -lnghttp2 -lprotobuf-c -lyaml -luv -lmicrohttpd -lgnutls -lcurl -lrdkafka -lzstd -ldeflate -lisal -lsnappy -llz4 -lssl -lcrypto -lcrypt \
	-lpcre2-8 -lxxhash -llmdb -ldw -lelf -lpthread -lm -ldl

OURS := -std=gnu11 -D_GNU_SOURCE -I. -I$(B)/proto -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wwrite-strings -Wvla -Wno-missing-field-initializers -Wno-override-init -Wno-format-truncation -g -fno-omit-frame-pointer \
	-fvisibility=hidden -MMD -MP $(if $(WERROR),-Werror)
LINK :=
ifeq ($(MODE),release)
OURS += -O2 -DRELEASE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection -fPIE
LINK += -pie -Wl,-z,relro,-z,now
# Every object has its landing pads, but Debian's Scrt1.o has none: the program as a whole can only declare shadow stacks.
ifeq ($(shell uname -m),x86_64)
OURS += -fcf-protection=full
LINK += -Wl,-z,shstk
endif
else ifeq ($(MODE),dev)
OURS += -O1
else ifeq ($(MODE),asan)
OURS += -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
LINK += -fsanitize=address,undefined
else ifeq ($(MODE),tsan)
OURS += -O1 -fsanitize=thread
LINK += -fsanitize=thread
else ifeq ($(MODE),cov)
OURS += -O0 --coverage
LINK += --coverage
else ifeq ($(MODE),fuzz)
CC := clang
OURS += -w -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
LINK += -fsanitize=fuzzer,address,undefined
else
$(error MODE must be release, dev, asan, tsan, cov or fuzz)
endif

LAYERS := base profile config net pipeline receivers processors exporters connectors extensions
PROTOS := $(wildcard proto/*.proto)
PROTO_C := $(PROTOS:proto/%.proto=$(B)/proto/%.pb-c.c)
SOURCES := $(filter-out gateway/main.c,$(sort $(shell find $(LAYERS) gateway -name "*.c")))
OBJECTS := $(SOURCES:%.c=$(B)/%.o) $(PROTO_C:.c=.o)
UNIT_TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(sort $(shell find tests -name "test_*.c" 2>/dev/null)))
TEST_TOOLS := $(patsubst tests/%.c,$(B)/tests/%,$(sort $(shell find tests -name "*_tool.c" -o -name "*_serve.c")) \
	$(wildcard tests/bench/*.c tests/bench/peers/*.c))
TEST_PRELOADS := $(patsubst tests/%.c,$(B)/tests/%.so,$(wildcard tests/support/preload/*.c))
TEST_HELP := $(patsubst %.c,$(B)/%.o,$(filter-out %_tool.c,$(wildcard tests/support/*.c)))
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
TEST_PROTO_C := $(patsubst tests/proto/%.proto,$(B)/tests/proto/%.pb-c.c,$(wildcard tests/proto/*.proto))
PYTHON_PROTO := build/python/made
PYTEST := MODE=$(MODE) $(PYTHON) -m pytest -q -p no:cacheprovider

all: $(B)/portcullis

# The release's debug info is a file beside it, portcullis.debug; symbols stay, so that its own profile has names without.
ifeq ($(MODE),release)
$(B)/portcullis: $(B)/portcullis.full
	$(Q)objcopy --only-keep-debug $< $@.debug && objcopy --strip-debug --add-gnu-debuglink=$@.debug $< $@

$(B)/portcullis.full: $(B)/gateway/main.o $(B)/build_info.o $(B)/libportcullis.a
else
$(B)/portcullis: $(B)/gateway/main.o $(B)/build_info.o $(B)/libportcullis.a
endif
	$(Q)$(CC) $(LINK) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# Written again only when the commit has changed.
$(B)/build_info.c: FORCE
	@mkdir -p $(@D) && docker/build-info.sh >$@.new && if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(B)/build_info.o: $(B)/build_info.c
	$(Q)$(CC) $(OURS) $(CFLAGS) -c -o $@ $<

$(B)/libportcullis.a: $(OBJECTS)
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/%.o: %.c | $(PROTO_C)
	@mkdir -p $(@D)
	$(Q)$(CC) $(OURS) $(CFLAGS) -c -o $@ $<

$(B)/proto/%.pb-c.c: proto/%.proto
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(B)/proto -Iproto $<

$(B)/proto/%.pb-c.o: $(B)/proto/%.pb-c.c
	$(Q)$(CC) $(OURS) -w $(CFLAGS) -c -o $@ $<

# ---- tests

# The oracle's messages, for C and for python: never linked into the program.
$(B)/tests/proto/%.pb-c.c: tests/proto/%.proto
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(@D) -Itests/proto $<

$(B)/tests/proto/%.pb-c.o: $(B)/tests/proto/%.pb-c.c $(TEST_PROTO_C)
	$(Q)$(CC) $(OURS) -w -I$(B)/tests/proto $(CFLAGS) -c -o $@ $<

$(B)/tests/support/%.o: tests/support/%.c $(TEST_PROTO_C)
	@mkdir -p $(@D)
	$(Q)$(CC) $(OURS) -I$(B)/tests/proto $(CFLAGS) -c -o $@ $<

$(B)/liboracle.a: $(TEST_PROTO_C:.c=.o)
	$(Q)rm -f $@ && ar rcs $@ $^

$(PYTHON_PROTO): $(wildcard tests/proto/*.proto tests/interop/proto/*.proto)
	@mkdir -p $(@D)
	$(Q)protoc --python_out=$(@D) -Itests/proto -Itests/interop/proto $^ && touch $@

$(B)/tests/%: tests/%.c $(TEST_HELP) $(B)/libportcullis.a $(B)/liboracle.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(OURS) -I$(B)/tests/proto $(LINK) $(CFLAGS) $(LDFLAGS) -o $@ $< $(TEST_HELP) \
		$(B)/libportcullis.a $(B)/liboracle.a $(LIBS) -lcmocka

$(B)/replay/%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(B)/libportcullis.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(OURS) $(LINK) $(CFLAGS) $(LDFLAGS) -o $@ $< tests/fuzz/replay.c $(B)/libportcullis.a $(LIBS)

$(B)/tests/%.so: tests/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(OURS) -fPIC -shared -o $@ $<

# Tests alone need it: the JSON tokens are compared with it.
$(B)/tests/base/test_json_yajl $(B)/replay/tokens $(B)/fuzzers/tokens: LIBS += -lyajl

# What tests in python start; what else there is to run of tests in C.
build-tools: $(B)/portcullis $(TEST_TOOLS) $(TEST_PRELOADS) $(PYTHON_PROTO)
build-unit: $(UNIT_TESTS)
build-tests: build-tools build-unit $(FUZZERS:%=$(B)/replay/%)

unit: $(UNIT_TESTS)
	@set -e; for t in $(UNIT_TESTS); do echo "== $$t"; timeout 300 $$t; done

replay: $(FUZZERS:%=$(B)/replay/%)
	@set -e; for f in $(FUZZERS); do timeout 600 $(B)/replay/$$f tests/fuzz/seeds/$$f/*; done

# File by file, as many at once as there are cores; then, one by one, the tests that measure what others would disturb.
# python-counted: those that count instructions, memory or descriptors, which only the optimised build shows.
python: build-tests
python: TESTS := tests
python-counted: build-tools
python-counted: TESTS := $(addprefix tests/,$(addprefix e2e/test_,binary.py durable_queue.py expanded_secrets.py front_door.py \
	main_job.py memory.py peers.py quotas.py small.py) chaos/test_18_memory_ceiling.py exporters/test_grpc_attacks.py \
	net/h2/test_rpc_server.py processors/test_pii_cost.py)
python python-counted:
	$(PYTEST) -n $(JOBS) --dist loadfile -m "not alone" $(TESTS)
	$(PYTEST) -m alone $(TESTS)

# Everything, on a fresh machine: optimised for what is counted (memory too), ASan+UBSan for what is hostile, TSan where threads meet.
test: install-test
	$(MAKE) -j$(JOBS) MODE=release build-tools
	$(MAKE) -j$(JOBS) MODE=asan build-tests
	$(MAKE) MODE=asan unit replay
	$(MAKE) MODE=asan python
	$(MAKE) MODE=release python-counted
	$(MAKE) MODE=release manual-check
	$(MAKE) tsan

TSAN := TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1
tsan:
	$(MAKE) -j$(JOBS) MODE=tsan build-tools build-unit
	$(TSAN) $(MAKE) MODE=tsan unit
	$(TSAN) MODE=tsan $(PYTHON) -m pytest -q -p no:cacheprovider -n $(JOBS) --dist loadfile -m "threads and not alone" tests
	$(TSAN) MODE=tsan $(PYTHON) -m pytest -q -p no:cacheprovider -m "threads and alone" tests

lint: install-test
	$(PYTHON) tests/lint/lint.py
	shellcheck docker/*.sh .ci/run

format: install-test
	clang-format-14 -i $$(git ls-files '*.c' '*.h')

# The end of docs/POLICY.md, from the mark on, is measured (make bench-pii) and stays.
MEASURED := ^<!-- measured:
manual: $(B)/portcullis
	$(B)/portcullis manual >docs/manual/reference.md
	{ $(B)/portcullis manual pii | sed '/$(MEASURED)/q'; sed '1,/$(MEASURED)/d' docs/POLICY.md; } >$(B)/POLICY.md
	cp $(B)/POLICY.md docs/POLICY.md

manual-check: $(B)/portcullis
	$(B)/portcullis manual | diff -u docs/manual/reference.md - || { echo "docs/manual/reference.md is stale: make manual"; exit 1; }
	sed '/$(MEASURED)/q' docs/POLICY.md >$(B)/POLICY.md
	$(B)/portcullis manual pii | sed '/$(MEASURED)/q' | diff -u $(B)/POLICY.md - || { echo "docs/POLICY.md is stale: make manual"; exit 1; }

# The bill of materials: what the program is linked with here, as SPDX. The image has one of its own (docker/stage.sh).
sbom: $(B)/portcullis.spdx.json
$(B)/portcullis.spdx.json: $(B)/portcullis docker/sbom.sh
	$(Q)docker/sbom.sh $< >$@.new && mv $@.new $@

FUZZ_FLAGS ?= -runs=10000000
$(B)/fuzzers/%: tests/fuzz/fuzz_%.c $(B)/libportcullis.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(OURS) $(LINK) -o $@ $< $(B)/libportcullis.a $(LIBS)

fuzzers: $(FUZZERS:%=$(B)/fuzzers/%)

# Explores: ten million inputs for each parser of foreign bytes, or what FUZZ_FLAGS says; as many at once as there are cores.
fuzz: install-test
	$(MAKE) -j$(JOBS) MODE=fuzz fuzzers
	$(MAKE) -j$(JOBS) -k MODE=fuzz $(FUZZERS:%=explore-%)

explore-%: build/fuzz/fuzzers/%
	@mkdir -p build/fuzz/corpus/$*
	@touch build/fuzz/$*.begun
	@FUZZ_RECORD=build/fuzz/$*-most-expensive $< $(FUZZ_FLAGS) -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix=build/fuzz/$*-found- build/fuzz/corpus/$* \
		tests/fuzz/seeds/$* >build/fuzz/$*.log 2>&1 && e=0 || e=$$?; \
		echo "== $*"; grep -v '^#[0-9#]\|# Uses: \|NEW_FUNC' build/fuzz/$*.log | tail -n 80; \
		find build/fuzz -maxdepth 1 -name '$*-found-*' -newer build/fuzz/$*.begun -print -exec base64 {} \;; exit $$e

bench: install-test
	$(MAKE) -j$(JOBS) MODE=release build-tests
	$(PYTHON) tests/bench/bench.py

# Beside the Collector, and with a failing destination; each writes its section of docs/BENCHMARKS.md, bench-pii of docs/POLICY.md. QUICK=1: a first look.
BENCH_PEERS := $(B)/portcullis $(B)/tests/bench/peers/load $(B)/tests/bench/peers/sink $(B)/tests/bench/peers/sink_http \
	$(B)/tests/support/pprof_tool $(B)/tests/support/kafka_tool
bench-peers bench-leak bench-failing bench-push bench-durable bench-soak bench-fleet bench-pii: bench-%: install-test
	$(MAKE) -j$(JOBS) MODE=release build-bench
	$(PYTHON) tests/bench/$*/bench_$*.py

$(B)/tests/bench/peers/load: LIBS += -lnghttp2

build-bench: $(BENCH_PEERS) $(PYTHON_PROTO)

# Beside real peers (tests/interop). What cannot be had is skipped, with the reason. INTEROP_NEWEST=1: of each peer the newest
# only. INTEROP_TESTS="tests/interop/test_otlp.py ...": only these, and only their peers are built. The results are merged
# into docs/interop.json and docs/INTEROP.md; INTEROP_TABLE= leaves them alone.
INTEROP_TABLE ?= docs

interop: install-test install-interop
	$(MAKE) -j$(JOBS) MODE=release build-tools
	$(if $(INTEROP_TESTS),,$(PYTHON) -m tests.interop.run build)
	INTEROP_TABLE=$(INTEROP_TABLE) MODE=release $(PYTHON) -m pytest -q -p no:cacheprovider \
		$(or $(INTEROP_TESTS),tests/interop)

# The failures of tests/chaos, as a table that it prints and writes to docs/RELIABILITY.md. LONG=1: for as long as each should last.
chaos: install-test
	$(MAKE) -j$(JOBS) MODE=release build-tools
	CHAOS_TABLE=docs/RELIABILITY.md MODE=release $(PYTHON) -m pytest -q -p no:cacheprovider tests/chaos

# ---- installation

prefix ?= /usr/local
bindir ?= $(prefix)/bin
mandir ?= $(prefix)/share/man
sysconfdir ?= /etc
unitdir ?= $(prefix)/lib/systemd/system
debugdir ?= /usr/lib/debug
completionsdir ?= $(prefix)/share/bash-completion/completions
zshdir ?= $(prefix)/share/zsh/site-functions
fishdir ?= $(prefix)/share/fish/vendor_completions.d
INSTALL ?= install

INSTALLED_CONFIG := $(DESTDIR)$(sysconfdir)/portcullis/gateway.yaml
AS_INSTALLED := sed 's|@bindir@|$(bindir)|; s|/etc/portcullis|$(sysconfdir)/portcullis|'

# The program without debug info, the man page, completion for shells, the systemd unit, and a configuration where there is none yet.
install: $(B)/portcullis
	$(INSTALL) -D -m 755 $< $(DESTDIR)$(bindir)/portcullis
	$(INSTALL) -d $(DESTDIR)$(mandir)/man1 $(DESTDIR)$(unitdir) $(DESTDIR)$(completionsdir) $(DESTDIR)$(zshdir) $(DESTDIR)$(fishdir)
	$< completion bash >$(DESTDIR)$(completionsdir)/portcullis
	$< completion zsh >$(DESTDIR)$(zshdir)/_portcullis
	$< completion fish >$(DESTDIR)$(fishdir)/portcullis.fish
	$< man | $(AS_INSTALLED) >$(DESTDIR)$(mandir)/man1/portcullis.1
	$(AS_INSTALLED) systemd/portcullis.service.in >$(DESTDIR)$(unitdir)/portcullis.service
	test -e $(INSTALLED_CONFIG) || $(INSTALL) -D -m 644 docker/image.yaml $(INSTALLED_CONFIG)

# The release's debug info, where gdb and elfutils look for it.
install-debug: $(B)/portcullis
	$(INSTALL) -D -m 644 $<.debug $(DESTDIR)$(debugdir)$(bindir)/portcullis.debug

# A configuration that was changed stays.
uninstall:
	rm -f $(DESTDIR)$(bindir)/portcullis $(DESTDIR)$(mandir)/man1/portcullis.1 $(DESTDIR)$(unitdir)/portcullis.service \
		$(DESTDIR)$(completionsdir)/portcullis $(DESTDIR)$(zshdir)/_portcullis $(DESTDIR)$(fishdir)/portcullis.fish \
		$(DESTDIR)$(debugdir)$(bindir)/portcullis.debug
	! cmp -s docker/image.yaml $(INSTALLED_CONFIG) || rm -f $(INSTALLED_CONFIG)
	! test -d $(dir $(INSTALLED_CONFIG)) || rmdir --ignore-fail-on-non-empty $(dir $(INSTALLED_CONFIG))

# ---- for a stranger

install-build:
	@docker/install.sh build
install-test:
	@docker/install.sh build test
install-interop:
	@docker/install.sh interop

run: install-build
	$(MAKE) -j$(JOBS) MODE=release all
	docker/quickstart.sh build/release/portcullis

clean:
	rm -rf build out

.PHONY: FORCE all build-tools build-unit build-tests unit replay python python-counted test tsan lint format manual manual-check sbom fuzz fuzzers bench bench-peers bench-leak bench-failing bench-push bench-durable bench-soak bench-fleet bench-pii build-bench interop chaos install install-debug uninstall install-build install-test install-interop run clean
.SECONDARY: $(PROTO_C) $(TEST_PROTO_C)
.INTERMEDIATE: $(B)/portcullis.full
-include $(shell find $(B) -name '*.d' 2>/dev/null)
