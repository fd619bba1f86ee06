# SPDX-License-Identifier: Apache-2.0
# make            build/release/portcullis
# make MODE=asan  also tsan, cov, dev; each beside the others in build/MODE
# make run        install what is missing, build, run the gateway on its own profile
# make test       the same for all tests; make lint | fuzz | bench | manual

MODE ?= release
B := build/$(MODE)
CC := gcc
PYTHON := /usr/bin/python3

PACKAGES := grpc libprotobuf-c yaml-0.1 libuv libmicrohttpd libcurl libzstd libdeflate libcrypto libssl \
	libpcre2-8 libxxhash jansson libdw
# libgrpc's pkg-config names every absl library; a C program needs these two only.
LIBS := -lgrpc -lgpr -lprotobuf-c -lyaml -luv -lmicrohttpd -lgnutls -lcurl -lzstd -ldeflate -lssl -lcrypto \
	-lpcre2-8 -lxxhash -ljansson -ldw -lelf -lpthread -lm -ldl

OURS := -std=gnu11 -D_GNU_SOURCE -I. -I$(B)/proto -I$(B)/tests/proto -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wwrite-strings -Wvla -Wno-missing-field-initializers -Wno-override-init -Wno-format-truncation -g -fno-omit-frame-pointer -MMD -MP
LINK := -rdynamic
ifeq ($(MODE),release)
OURS += -O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE
LINK += -pie -Wl,-z,relro,-z,now
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
else
$(error MODE must be release, dev, asan, tsan or cov)
endif

LAYERS := base profile config net pipeline receivers processors exporters extensions
PROTOS := $(wildcard proto/*.proto)
PROTO_C := $(PROTOS:proto/%.proto=$(B)/proto/%.pb-c.c)
SOURCES := $(foreach d,$(LAYERS),$(wildcard $(d)/*.c))
OBJECTS := $(SOURCES:%.c=$(B)/%.o) $(PROTO_C:.c=.o)
GATEWAY := $(patsubst %.c,$(B)/%.o,$(filter-out gateway/main.c,$(wildcard gateway/*.c)))
UNIT_TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/*/test_*.c))
TEST_HELP := $(patsubst %.c,$(B)/%.o,$(wildcard tests/support/*.c))
# The oracle of the tests: whole OTLP by protobuf-c.
ORACLE_C := $(patsubst %,$(B)/tests/proto/otlp_%.pb-c.c,common resource profiles)
TEST_HELP += $(ORACLE_C:.c=.o)

all: $(B)/portcullis

$(B)/portcullis: $(B)/gateway/main.o $(GATEWAY) $(B)/libportcullis.a
	$(CC) $(LINK) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libportcullis.a: $(OBJECTS)
	rm -f $@ && ar rcs $@ $^

$(B)/%.o: %.c | $(PROTO_C) $(ORACLE_C)
	@mkdir -p $(@D)
	$(CC) $(OURS) $(CFLAGS) -c -o $@ $<

$(B)/proto/%.pb-c.c: proto/%.proto
	@mkdir -p $(@D)
	protoc-c --c_out=$(B)/proto -Iproto $<

$(B)/proto/%.pb-c.o: $(B)/proto/%.pb-c.c
	$(CC) $(OURS) -w $(CFLAGS) -c -o $@ $<

$(B)/tests/proto/%.pb-c.c: tests/proto/%.proto
	@mkdir -p $(@D)
	protoc-c --c_out=$(@D) -Itests/proto $<

$(B)/tests/proto/%.pb-c.o: $(B)/tests/proto/%.pb-c.c | $(ORACLE_C)
	$(CC) $(OURS) -w $(CFLAGS) -c -o $@ $<

$(B)/tests/%: tests/%.c $(TEST_HELP) $(GATEWAY) $(B)/libportcullis.a
	@mkdir -p $(@D)
	$(CC) $(OURS) $(LINK) $(CFLAGS) $(LDFLAGS) -o $@ $< $(TEST_HELP) $(GATEWAY) $(B)/libportcullis.a $(LIBS) -lcmocka

unit: $(UNIT_TESTS)
	@set -e; for t in $(UNIT_TESTS); do echo "== $$t"; timeout 300 $$t; done

clean:
	rm -rf build

.PHONY: all unit clean
.SECONDARY: $(PROTO_C) $(ORACLE_C)
-include $(shell find $(B) -name '*.d' 2>/dev/null)
