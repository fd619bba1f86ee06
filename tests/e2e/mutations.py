#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that tests fail when any single protection is taken away: test_leaks.py for those of the policy, and the tests that a
row names for the ledger, the records of the queue on disk, dead letters and repeated requests. Run by hand, from a built checkout:

    make MODE=dev all build-unit build/python/made && tests/e2e/mutations.py [PART OF A NAME]...

Copies the checkout into a temporary directory, and there, for each row: replaces the text, builds, runs the test, expects it
to fail by its own assertion, puts the text back. A row whose text is not found exactly once is an error: the code has moved on,
and the row must follow it. Prints a table, and what each loss showed; exits with 1 if any was not noticed.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWLIST, PII, STRUCTURAL = "processors/allowlist.c", "processors/pii.c", "processors/structural.c"
REDACTION = "processors/redaction.c"
DICTIONARY, OTLP, PPROF = "profile/otlp/decode_dictionary.c", "profile/otlp/decode_otlp.c", "profile/pprof/decode_pprof.c"

BOOK, DURABLE, DELIVERY, SENDING, LETTERS, FILES = ("pipeline/delivery/%s.c" % name for name in (
    "book", "durable", "delivery", "sending", "dead_letters", "letter_files"))
ON_DISK = "pipeline/delivery/on_disk.c"
LEDGER, DUPLICATES, INTAKE = "pipeline/ledger.c", "pipeline/intake/duplicates.c", "pipeline/intake/pipeline.c"
# A test: a file of pytest, or a program below build/MODE/tests.
LEAKS = "tests/e2e/test_leaks.py"
LEDGER_TEST, LEDGER_SCRAPES, REPETITIONS = "pipeline/test_ledger", "tests/e2e/test_ledger.py", "tests/e2e/test_duplicates.py"
DURABLE_TEST, TENANTS_TEST, DURABLE_LETTERS_TEST, DELIVERY_TEST, SENDING_TEST, LETTERS_TEST, RECORD_TEST = (
    "pipeline/delivery/test_" + name for name in (
        "durable", "durable_tenants", "durable_letters", "delivery", "sending", "dead_letters", "record"))
LANES_TEST = "pipeline/delivery/test_lanes"
DUPLICATES_TEST = "pipeline/intake/test_duplicates"

MUTATIONS = [
    # name, file, text, replacement, and the test if it is not LEAKS
    ("entry 0 is read", DICTIONARY, "if (d->entry && !decode(", "if (!decode("),
    ("orphans are copied: strings", "profile/collect/collect.c", "	dictionary_begin(&c->dictionary, p, c->growth);\n",
     "	dictionary_begin(&c->dictionary, p, c->growth);\n"
     "	for (uint32_t i = 1; i < p->strings.count; i++)\n		dictionary_string(&c->dictionary, i);\n"),
    ("orphans are copied: stacks", "profile/collect/collect.c", "	dictionary_begin(&c->dictionary, p, c->growth);\n",
     "	dictionary_begin(&c->dictionary, p, c->growth);\n"
     "	for (uint32_t i = 1; i < p->stacks.count; i++)\n		dictionary_stack(&c->dictionary, i);\n"),
    ("orphans are copied: links", "profile/collect/collect.c", "	dictionary_begin(&c->dictionary, p, c->growth);\n",
     "	dictionary_begin(&c->dictionary, p, c->growth);\n"
     "	for (uint32_t i = 1; i < p->links.count; i++)\n		dictionary_link(&c->dictionary, i);\n"),
    ("an unknown field is kept", OTLP, "			decoder_other(&w, tag, &profile);\n",
     "			if (tag == WIRE_TAG(1000, WIRE_LEN))\n				f->profile_id = decoder_span(d, wire_len(&w));\n"
     "			else\n				decoder_other(&w, tag, &profile);\n"),
    ("original_payload is kept", OTLP, "		case WIRE_TAG(10, WIRE_LEN):\n			wire_len(&w);\n",
     "		case WIRE_TAG(10, WIRE_LEN):\n			f->profile_id = decoder_span(d, wire_len(&w));\n"),
    ("the first of two values counts", OTLP, "			if (!decoder_text(d, wire_len(&w), &s->name))\n",
     "			if (s->name ? (wire_len(&w), false) : !decoder_text(d, wire_len(&w), &s->name))\n"),
    ("a rejected Profile leaves", "profile/collect/collect.c", "	if (f->fault)\n		return false;\n", ""),
    ("an id may have any length", OTLP, "	if (v.len && v.len != 16)\n", "	if (0)\n"),
    # the allow-list
    ("a denied key stays", ALLOWLIST, "		note_denied(pass, string_view(p, a.key));\n		return 0;\n", "		return index;\n"),
    *(("no allow-list at " + site, ALLOWLIST, "site <= SITE_MAPPING; site++)\n		filter_attributes",
       "site <= SITE_MAPPING; site++)\n		if (site != SITE_%s)\n		filter_attributes" % site.upper())
      for site in ("resource", "scope", "profile", "sample", "location", "mapping")),
    ("the policy does not hold for HTTP", ALLOWLIST, "site <= SITE_MAPPING; site++)\n		filter_attributes",
     'site <= SITE_MAPPING; site++)\n		if (site != SITE_RESOURCE || *p->request->transport != \'h\')\n		filter_attributes'),
    ("a denied nested key stays", ALLOWLIST, "		note_denied(pass, string_view(pass->p, child->key));\n",
     "		return VALUE_SAME;\n"),
    ("nested keys are not looked at", ALLOWLIST, "	if (!value_is_nested(&a))\n", "	if (1)\n"),
    ("maps in arrays are not looked at", "processors/value.c", "change == VALUE_REMOVED || !value_is_nested(child)",
     "change == VALUE_REMOVED || !value_is_nested(child) || child->type == VALUE_ARRAY"),
    ("a corrected key counts as good", ALLOWLIST, "	if (a->bad_key || ", "	if ("),
    ("values are not compared", ALLOWLIST, "	if (!values)\n		return true;\n", "	if (1)\n		return true;\n"),
    ("a pattern may match in part", "processors/regex.c",
     "PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY", "PCRE2_DOLLAR_ENDONLY"),
    ("a pattern's end may be a newline", "processors/regex.c",
     "PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY", "PCRE2_ANCHORED"),
    ("keys are compared by their beginning", "processors/key_rules.c",
     "	return order ? order : (x->len > y->len) - (x->len < y->len);", "	return order;"),
    ("units are not compared", ALLOWLIST, "	if (unit.len && !key_rules_value_listed", "	if (0 && !key_rules_value_listed"),
    ("links pass", ALLOWLIST, "	filter_fields(&pass, SITE_LINK);\n", ""),
    ("profile ids pass", ALLOWLIST, "	filter_fields(&pass, SITE_PROFILE);\n", ""),
    ("entities pass", ALLOWLIST, "	filter_fields(&pass, SITE_ENTITY);\n", ""),
    ("an entity may name lost keys", "profile/collect/canonical.c", "*found = index < known;", "*found = true;"),
    ("structure: a GNU build id is anything", STRUCTURAL, "return is_gnu_build_id(text);", "return true;"),
    ("structure: a GNU build id of any length", STRUCTURAL, "return is_gnu_build_id(text);",
     "return is_hex(text, text.len / 2);"),
    ("structure: an htlhash is anything", STRUCTURAL, "		return is_hex(text, 16);\n	case", "		return true;\n	case"),
    ("structure: an htlhash of any length", STRUCTURAL, "		return is_hex(text, 16);\n	case",
     "		return is_hex(text, text.len / 2);\n	case"),
    ("structure: a Go build id is anything", STRUCTURAL, "return is_go_build_id(text);", "return true;"),
    ("structure: a Go build id of any parts", STRUCTURAL, " || (parts != 2 && parts != 4))", ")"),
    ("structure: Go's parts of any length", STRUCTURAL, "!is_go_part(at) || (i + 1 < parts && at[GO_PART] != '/')",
     "!is_go_part(at) && !memchr(at, '/', GO_PART)"),
    ("structure: a frame type is anything", STRUCTURAL, "return is_frame_type(text);", "return true;"),
    ("structure: a sample type is anything", STRUCTURAL, "return is_sample_type(p, text, scope);",
     "return true;"),
    ("structure: an order is anything", STRUCTURAL, "return is_type_order(p, a, scope);", "return true;"),
    ("structure: a flag is anything", STRUCTURAL, "return a->type == VALUE_BOOL;", "return true;"),
    ("structure: at any site", STRUCTURAL, "if (s->site == site && string_is", "if (string_is"),
    ("structure: with a unit", STRUCTURAL, "	if (string_view(p, a->unit).len)\n", "	if (0)\n"),
    # redaction
    ("redaction: a denied key stays", REDACTION, "	*kind = REDACTION_KIND_REMOVED;\n	return 0;\n",
     "	*kind = REDACTION_KIND_REMOVED;\n	return index;\n"),
    ("redaction: a denied nested key stays", REDACTION, "		return VALUE_REMOVED;\n", "		return VALUE_SAME;\n"),
    ("redaction: a corrected key counts as good", REDACTION,
     "	return (!a->bad_key || pass->self->rules.allow_all_keys) &&", "	return true &&"),
    ("redaction: a blocked key's value stays", REDACTION, "	return redaction_values_mask(values, scratch, text);\n",
     "	return redaction_values_search(values, scratch, text);\n"),
    ("redaction: a blocked key's unit stays", REDACTION, "		a->unit = 0;\n", "		;\n"),
    ("redaction: links pass", REDACTION, "	redact_fields(&pass, SITE_LINK);\n", ""),
    ("redaction: profile ids pass", REDACTION, "	redact_fields(&pass, SITE_PROFILE);\n", ""),
    ("redaction: entities pass", REDACTION, "	redact_fields(&pass, SITE_ENTITY);\n", "", "processors/test_redaction"),
    # pii
    *(("no PII at " + site.lower().replace("_", " "), PII, "			pass->site = site;\n",
       "			if (site == SITE_%s)\n				continue;\n			pass->site = site;\n" % site)
      for site in ("SCOPE_NAME", "SCOPE_VERSION", "RESOURCE_SCHEMA_URL", "SCOPE_SCHEMA_URL", "ENTITY_SCHEMA_URL",
                   "ENTITY_TYPE", "FUNCTION_NAME", "FUNCTION_SYSTEM_NAME", "FUNCTION_FILENAME", "MAPPING_FILENAME",
                   "SAMPLE_TYPE", "SAMPLE_UNIT", "PERIOD_TYPE", "PERIOD_UNIT")),
    *(("no PII in values at " + site.lower(), PII, "		sites_each_list(p, pass.site, scrub_list, &pass);\n",
       "		if (pass.site != SITE_%s)\n			sites_each_list(p, pass.site, scrub_list, &pass);\n" % site)
      for site in ("RESOURCE", "SCOPE", "PROFILE", "SAMPLE", "LOCATION", "MAPPING")),
    *(("no detector " + name.lower(), "processors/pii_config.c", "	if (detector->optional.enabled)\n",
       "	if (i != PII_%s && detector->optional.enabled)\n" % name)
      for name in ("EMAIL", "IPV4", "IPV6", "JWT", "ACCESS_KEY", "CARD", "SSN", "PHONE", "PAN", "AADHAAR", "BEARER",
                   "HOME_DIRECTORY", "URL_QUERY", "MAC", "IBAN", "BASIC", "CREDENTIAL", "URL_CREDENTIALS", "UUID", "GENERATED_PATH",
                   "SQL", "COMMAND_LINE", "USER_NAME")),
    ("no detector workspace", "processors/pii_config.c", "		of_role[PII_WORKSPACE] = PII_MASK;\n", ""),
    ("no PII in units", PII, "scrub_string(pass, ROLE_UNIT, a.unit, string_view(p, a.key))", "a.unit"),
    ("no PII in bytes", PII, "	else if (a->type == VALUE_BYTES)\n", "	else if (a->type == VALUE_BYTES)\n		return VALUE_SAME;\n	else if (0)\n"),
    ("no PII in numbers", PII, "	else if (!(pass->numbers || is_number_key(pass, a)) || !digits_of(a, room, &text))\n", "	else\n"),
    ("no PII in nested values", PII, "	return scrub_value(context, child);\n", "	(void)context;\n	(void)child;\n	return VALUE_SAME;\n"),
    ("an id at another site is not scanned", STRUCTURAL, "if (s->site == site && s->grammar", "if (s->grammar"),
    ("an id of decimal digits is not scanned", STRUCTURAL, " || is_decimal(string_view(p, a->string)))", ")"),
    ("a trace id is anything", STRUCTURAL, "return is_hex(string_view(p, a->string), 16);", "return true;"),
    ("a span id is anything", STRUCTURAL, "return is_hex(string_view(p, a->string), 8);", "return true;"),
    # pprof
    ("a pprof's string 0 is read", PPROF, "	uint32_t string;\n	return ordinal == 0 || ",
     "	uint32_t string;\n	if (ordinal == 0)\n		r->p->strings.at[0].text = span;\n	return ordinal == 0 || "),
    # replies, logs, metrics
    ("a query's fault shows the query", "net/fields.c", 'error_set(err, ERROR_INVALID, "entry %zu: invalid percent escape", f->count + 1)',
     'error_set(err, ERROR_INVALID, "entry %zu: invalid percent escape %s", f->count + 1, (const char *)entry.at)'),
    ("404 shows the path", "net/http/http_exchange.c", "answer_text(x, 404, (char *)text.at);",
     'answer_text(x, 404, x->target);'),
    ("a refused request's bytes are logged", "pipeline/intake/gate_run.c", 'log_text("error", in->error.text));',
     'log_text("error", (const char *)worker->body.raw.at));'),
    ("gRPC's lines are shown", "net/grpc/grpc_core.c", "	gpr_set_log_function(take_log);\n", "	(void)take_log;\n"),
    ("GnuTLS's lines are shown", "net/http/http_daemon.c", "	http_tls_silence();\n", ""),
    ("a destination's text is logged", "pipeline/delivery/otlp_answer.c", 'log_number("dropped_profiles", rejected)',
     'log_text("dropped_profiles", answer->partial_success->error_message)'),
    ("explain shows values", ALLOWLIST, '		note_denied(pass, string_view(p, a.key));\n',
     '		note_denied(pass, string_view(p, a.type == VALUE_STRING ? a.string : a.key));\n'),
    # the ledger: moves of samples
    ("ledger: what a pipeline passes stays in its batch", INTAKE,
     "		ledger_move(route->path->row, LEDGER_BATCHED, LEDGER_PASSED, packet->samples);\n",
     "		(void)0;\n", LEDGER_SCRAPES),
    ("ledger: what is merged is passed too", INTAKE, "to, added->samples_in - added->samples_merged);",
     "to, added->samples_in);", LEDGER_SCRAPES),
    ("ledger: a request does not leave processing", "pipeline/intake/gate.c",
     "	ledger_move(gate->row, LEDGER_PROCESSING, end, samples);\n",
     "	ledger_add(gate->row, end, (int64_t)samples);\n", LEDGER_SCRAPES),
    ("ledger: a tenant's samples stay queued", BOOK, "	ledger_move(book->tenant, LEDGER_QUEUED, end, samples);\n", "",
     TENANTS_TEST),
    ("ledger: what is sent stays queued", SENDING, "	delivery_settle(s->item, LEDGER_OUT, samples);\n", "", DELIVERY_TEST),
    ("ledger: what is sent is dropped too", SENDING, "	s->item->left -= samples;\n", "", SENDING_TEST),
    ("ledger: what waited at the end is not counted", DELIVERY,
     "	delivery_settle(item, kept ? LEDGER_DEAD_LETTER : loss->reason, loss->samples);\n", "", DELIVERY_TEST),
    ("ledger: a dead letter counts as dropped", DELIVERY, "kept ? LEDGER_DEAD_LETTER : loss->reason", "loss->reason",
     LETTERS_TEST),
    ("ledger: what is restored is not queued", BOOK,
     "	ledger_bring(book->row, LEDGER_RESTORED, LEDGER_QUEUED, samples);\n",
     "	ledger_add(book->row, LEDGER_RESTORED, (int64_t)samples);\n", DURABLE_TEST),
    ("ledger: what another owner left is restored", ON_DISK, "book_restore(book, (uint64_t)(samples - left));",
     "book_restore(book, (uint64_t)samples);", DURABLE_TEST),
    ("ledger: the shared row takes a place", LEDGER, " && !is_other(name);", ";", LEDGER_TEST),
    ("ledger: a raised limit splits a tenant", LEDGER, "		if (was_on_disk)\n", "		if (0 && was_on_disk)\n", TENANTS_TEST),
    ("ledger: tenants have no limit", LEDGER, "l->tenants < l->tenants_max || is_other(tenant)", "true", TENANTS_TEST),
    # records of the queue on disk
    ("record: it leaves another account", BOOK, "int first = account == RECORD_ACCOUNT_SHARED,", "int first = 0,", TENANTS_TEST),
    ("record: it does not say where it counts", "pipeline/delivery/record.c",
     "	set_number(at + AT_ACCOUNT, account, 4);\n", "	(void)account;\n", TENANTS_TEST),
    ("record: an unknown one is taken off a total", DURABLE, "	book->disk += (int64_t)r->samples;\n	return book;\n",
     "	book->disk += (int64_t)r->samples;\n"
     "	*account = storage_queue_account(d->durable.queue, book->account);\n	return book;\n", TENANTS_TEST),
    ("record: one that is being written counts as kept", DURABLE, "samples += s->committed ? ", "samples += 1 ? ", DURABLE_TEST),
    ("record: without it, a replaced exporter drops", "pipeline/delivery/ending.c",
     "	if (d->durable.abandoned)\n", "	if (1)\n", DURABLE_TEST),
    ("record: without it, it is sent after the deadline", "pipeline/delivery/ending.c",
     "	d->durable.abandoned = d->durable.storage != NULL;\n", "", DURABLE_TEST),
    # members of a destination
    ("lanes: a part is dropped although its record stays", DURABLE, "	struct item *root = item->parent ? item->parent : item;\n",
     "	struct item *root = item;\n", LANES_TEST),
    # dead letters
    ("letter: its record is removed before it is written", DELIVERY, "	bool recovered = last && leave(d, item);\n",
     "	if (answers && item->stored)\n		durable_remove(item);\n	bool recovered = last && leave(d, item);\n",
     DURABLE_LETTERS_TEST),
    ("letter: it counts before it is written", LETTERS,
     "	letter_box_add(d->letters.box, letters, count, results, &err);\n",
     "	for (uint32_t i = 0; i < count; i++, group[i - 1]->partial = true)\n"
     "		delivery_settle_loss(d, group[i]->item, &group[i]->loss, true);\n"
     "	letter_box_add(d->letters.box, letters, count, results, &err);\n", DURABLE_LETTERS_TEST),
    ("letter: its files are not synced", FILES, "	bool ok = fsync(*fd) == 0;\n", "	bool ok = true;\n", DURABLE_LETTERS_TEST),
    ("letter: its directory is not synced", FILES, "int failure = fsync(directory) == 0 ? 0 : errno;", "int failure = 0;",
     DURABLE_LETTERS_TEST),
    ("letter: what senders will repeat becomes one", LETTERS, "	       !will_be_repeated(d, item, loss->reason) && take(",
     "	       take(", "tests/e2e/test_dead_letters.py"),
    # repeated requests
    ("repetition: a record forgets its key", "pipeline/delivery/record.c", "	packet_set_id(p, record->id);\n", "", RECORD_TEST),
    ("repetition: each attempt has another key", "pipeline/delivery/idempotency.c",
     "	idempotency_key_write(packet_id(packet), out->key);\n",
     "	static _Atomic uint64_t attempts;\n	struct hash128 id = packet_id(packet);\n	id.low += attempts++;\n"
     "	idempotency_key_write(id, out->key);\n", REPETITIONS),
    ("repetition: it is processed", DUPLICATES, "		answer = repeat(at(d, first), reply);\n", "		(void)repeat;\n",
     DUPLICATES_TEST),
    ("repetition: it is answered before the first one", DUPLICATES, "	if (!e->kept)\n		return DUPLICATES_BUSY;\n", "",
     DUPLICATES_TEST),
    ("repetition: a refused request counts as accepted", DUPLICATES,
     "	pthread_mutex_lock(&d->lock);\n	drop(d, place);\n	pthread_mutex_unlock(&d->lock);\n",
     "	duplicates_keep(d, place, &(struct duplicates_reply){ 0 });\n", DUPLICATES_TEST),
    ("repetition: tenants share their keys", DUPLICATES, "	if (request->tenant)\n", "	if (0)\n", DUPLICATES_TEST),
    ("repetition: the window does not end", DUPLICATES, "return e->kept && now - e->kept >= (uint64_t)d->config->window.ns;",
     "return e->kept && now < e->kept && d;", DUPLICATES_TEST),
]


class Failed(Exception):
    """A row that cannot be applied any more, or does not build."""


def run(scratch, *command, **environment):
    return subprocess.run(command, cwd=scratch, env={**os.environ, "MODE": "dev", **environment}, capture_output=True,
                          text=True, errors="replace")


def copy(directory, mode="dev"):
    """The checkout with its build of this mode."""
    modes = {"dev", "asan", "tsan", "cov", "release", "fuzz"} - {mode}
    return shutil.copytree(ROOT, directory / "checkout", symlinks=True,
                           ignore=shutil.ignore_patterns(".git", "bench-bodies", *modes))


@contextlib.contextmanager
def without(scratch, name, mode="dev", target="all"):
    """The copy, built without the protection of this name."""
    path, old, new = next(row[1:4] for row in MUTATIONS if row[0] == name)
    file = scratch / path
    text = file.read_text()
    if text.count(old) != 1:
        raise Failed("the text is there %d times" % text.count(old))
    file.write_text(text.replace(old, new))
    try:
        built = run(scratch, "make", "-s", "-j2", target, MODE=mode)
        if built.returncode:
            raise Failed("does not build: " + built.stderr[-800:])
        yield
    finally:
        file.write_text(text)


def test_leaks(scratch):
    done = run(scratch, sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", LEAKS, LEAK_SEED="1", WAIT_S="20")
    kinds = re.findall(r"(?:kinds: \{|Counter\(\{)'(.*?)':", done.stdout)
    return done, kinds


def test_python(scratch, path):
    done = run(scratch, sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", path, WAIT_S="20")
    return done, re.findall(r"^FAILED .*::(\S+)", done.stdout, re.M)


def program(which):
    """None: it is not one."""
    return None if which.endswith(".py") else "build/dev/tests/" + which


def test_program(scratch, name):
    done = run(scratch, "timeout", "200", program(name))
    return done, re.findall(r"^\[  FAILED  \] (\D\w+)$|^(WRONG .*)$", done.stdout + done.stderr, re.M)


def test(scratch, which=LEAKS):
    """None if it passes, else what it said, "" if that was not an assertion of its own."""
    run_it = test_program if program(which) else test_python
    done, said = test_leaks(scratch) if which == LEAKS else run_it(scratch, which)
    if done.returncode == 0:
        return None
    if not said:
        print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
    return "; ".join(dict.fromkeys(word if isinstance(word, str) else "".join(word) for word in said))


def mutate(scratch, name, which=LEAKS):
    try:
        with without(scratch, name, target=program(which) or "all"):
            said = test(scratch, which)
    except Failed as why:
        return str(why)
    return {None: "NOT NOTICED", "": "fails otherwise"}.get(said, "noticed: " + str(said))


def main(wanted):
    rows = [row for row in MUTATIONS if not wanted or any(w in row[0] for w in wanted)]
    with tempfile.TemporaryDirectory(prefix="mutations-") as directory:
        scratch = copy(pathlib.Path(directory))
        for which in sorted({(row + (LEAKS,))[4] for row in rows}):
            assert test(scratch, which) is None, which + " fails without any mutation"
        bad = 0
        for name, *rest in rows:
            said = mutate(scratch, name, *rest[3:])
            bad += not said.startswith("noticed")
            print("%-52s %s" % (name, said[:160]), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
