#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that test_leaks.py fails when any single protection is taken away. Run by hand, from a built checkout:

    make MODE=dev all build/python/made && tests/e2e/mutations.py [PART OF A NAME]...

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
DICTIONARY, OTLP, PPROF = "profile/otlp/decode_dictionary.c", "profile/otlp/decode_otlp.c", "profile/pprof/decode_pprof.c"

MUTATIONS = [
    # name, file, text, replacement
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
    ("a denied key stays", ALLOWLIST, '		note(pass, "denied", string_view(p, a.key));\n		return 0;\n',
     "		return index;\n"),
    *(("no allow-list at " + site, ALLOWLIST, "site <= SITE_MAPPING; site++)\n		filter_attributes",
       "site <= SITE_MAPPING; site++)\n		if (site != SITE_%s)\n		filter_attributes" % site.upper())
      for site in ("resource", "scope", "profile", "sample", "location", "mapping")),
    ("the policy does not hold for HTTP", ALLOWLIST, "site <= SITE_MAPPING; site++)\n		filter_attributes",
     'site <= SITE_MAPPING; site++)\n		if (site != SITE_RESOURCE || *p->request->transport != \'h\')\n		filter_attributes'),
    ("a denied nested key stays", ALLOWLIST, '		note(pass, "denied", string_view(pass->p, child->key));\n',
     "		return true;\n"),
    ("nested keys are not looked at", ALLOWLIST, "	if (!value_is_nested(&a))\n", "	if (1)\n"),
    ("maps in arrays are not looked at", "processors/value.c", "change == VALUE_REMOVED || !value_is_nested(child)",
     "change == VALUE_REMOVED || !value_is_nested(child) || child->type == VALUE_ARRAY"),
    ("a corrected key counts as good", ALLOWLIST, "	return !a->bad_key && ", "	return "),
    ("values are not compared", ALLOWLIST, "	if (!values)\n		return true;\n", "	if (1)\n		return true;\n"),
    ("a pattern may match in part", "processors/regex.c",
     "PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY", "PCRE2_DOLLAR_ENDONLY"),
    ("a pattern's end may be a newline", "processors/regex.c",
     "PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY", "PCRE2_ANCHORED"),
    ("keys are compared by their beginning", "processors/allowlist_keys.c",
     "	return order ? order : (x->len > y->len) - (x->len < y->len);", "	return order;"),
    ("units are not compared", ALLOWLIST, "	if (unit.len && !allowlist_value_listed", "	if (0 && !allowlist_value_listed"),
    ("links pass", ALLOWLIST, "	filter_links(&pass);\n", ""),
    ("profile ids pass", ALLOWLIST, "	filter_profile_ids(&pass);\n", ""),
    ("entities pass", ALLOWLIST, "	filter_entities(&pass);\n", ""),
    ("an entity may name lost keys", "profile/collect/canonical.c", "*found = index < known;", "*found = true;"),
    ("structure: a GNU build id is anything", STRUCTURAL, "return is_gnu_build_id(text);", "return true;"),
    ("structure: a GNU build id of any length", STRUCTURAL, "return is_gnu_build_id(text);",
     "return is_hex(text, text.len / 2);"),
    ("structure: an htlhash is anything", STRUCTURAL, "		return is_hex(text, 16);\n	case", "		return true;\n	case"),
    ("structure: an htlhash of any length", STRUCTURAL, "		return is_hex(text, 16);\n	case",
     "		return is_hex(text, text.len / 2);\n	case"),
    ("structure: a Go build id is anything", STRUCTURAL, "return is_go_build_id(text);", "return true;"),
    ("structure: a Go build id of any parts", STRUCTURAL, " || (parts != 2 && parts != 4))", ")"),
    ("structure: Go's parts of any length", STRUCTURAL, "slash ? c != '/' : !isalnum(c) && c != '-' && c != '_'",
     "!isalnum(c) && c != '/' && c != '-' && c != '_'"),
    ("structure: a frame type is anything", STRUCTURAL, "return is_frame_type(text);", "return true;"),
    ("structure: a sample type is anything", STRUCTURAL, "return is_sample_type(p, text, scope);",
     "return true;"),
    ("structure: an order is anything", STRUCTURAL, "return is_type_order(p, a, scope);", "return true;"),
    ("structure: a flag is anything", STRUCTURAL, "return a->type == VALUE_BOOL;", "return true;"),
    ("structure: at any site", STRUCTURAL, "if (s->site == site && string_is", "if (string_is"),
    ("structure: with a unit", STRUCTURAL, "	if (string_view(p, a->unit).len)\n", "	if (0)\n"),
    # pii
    *(("no PII at " + site.lower().replace("_", " "), PII, "			pass->site = site;\n",
       "			if (site == SITE_%s)\n				continue;\n			pass->site = site;\n" % site)
      for site in ("SCOPE_NAME", "SCOPE_VERSION", "RESOURCE_SCHEMA_URL", "SCOPE_SCHEMA_URL", "ENTITY_SCHEMA_URL",
                   "ENTITY_TYPE", "FUNCTION_NAME", "FUNCTION_SYSTEM_NAME", "FUNCTION_FILENAME", "MAPPING_FILENAME",
                   "SAMPLE_TYPE", "SAMPLE_UNIT", "PERIOD_TYPE", "PERIOD_UNIT")),
    *(("no PII in values at " + site.lower(), PII, "		sites_each_list(p, pass.site, scrub_list, &pass);\n",
       "		if (pass.site != SITE_%s)\n			sites_each_list(p, pass.site, scrub_list, &pass);\n" % site)
      for site in ("RESOURCE", "SCOPE", "PROFILE", "SAMPLE", "LOCATION", "MAPPING")),
    *(("no detector " + name.lower(), "processors/pii_config.c", "		if (detector->optional.enabled &&\n",
       "		if (i != PII_%s && detector->optional.enabled &&\n" % name)
      for name in ("EMAIL", "IPV4", "IPV6", "JWT", "ACCESS_KEY", "CARD", "SSN", "PHONE", "PAN", "AADHAAR", "BEARER",
                   "HOME_DIRECTORY", "URL_QUERY")),
    ("no PII in units", PII, "scrub_string(pass, ROLE_UNIT, a.unit, string_view(p, a.key))", "a.unit"),
    ("no PII in bytes", PII, "	else if (a->type == VALUE_BYTES)\n", "	else if (a->type == VALUE_BYTES)\n		return VALUE_SAME;\n	else if (0)\n"),
    ("no PII in numbers", PII, "	else if (!digits_of(a, room, &text))\n", "	else\n"),
    ("no PII in nested values", PII, "	return scrub_value(context, child);\n", "	(void)context;\n	(void)child;\n	return VALUE_SAME;\n"),
    ("an id at another site is not scanned", STRUCTURAL, "if (s->site == site && s->grammar", "if (s->grammar"),
    ("an id of decimal digits is not scanned", STRUCTURAL, " || is_decimal(string_view(p, a->string)))", ")"),
    ("a trace id is anything", STRUCTURAL, "return is_hex(string_view(p, a->string), 16);", "return true;"),
    ("a span id is anything", STRUCTURAL, "return is_hex(string_view(p, a->string), 8);", "return true;"),
    # pprof
    ("a pprof's string 0 is read", PPROF, "	return ordinal == 0 || pprof_add_string(r, text, span);\n",
     "	if (ordinal == 0)\n		r->p->strings.at[0].text = span;\n	return ordinal == 0 || pprof_add_string(r, text, span);\n"),
    # replies, logs, metrics
    ("a query's fault shows the query", "net/fields.c", 'error_set(err, ERROR_INVALID, "entry %zu: invalid percent escape", f->count + 1)',
     'error_set(err, ERROR_INVALID, "entry %zu: invalid percent escape %s", f->count + 1, (const char *)entry.at)'),
    ("404 shows the path", "net/http/http_exchange.c", 'answer_text(x, 404, "404 page not found");',
     'answer_text(x, 404, x->target);'),
    ("a refused request's bytes are logged", "pipeline/intake/gate.c",
     'log_debug(in->gate->options.log, "Request refused", log_text("error", in->error.text));',
     'log_debug(in->gate->options.log, "Request refused", log_text("error", (const char *)worker->body.raw.at));'),
    ("gRPC's lines are shown", "net/grpc/grpc_core.c", "	gpr_set_log_function(take_log);\n", "	(void)take_log;\n"),
    ("GnuTLS's lines are shown", "net/http/http_daemon.c", "	http_tls_silence();\n", ""),
    ("a destination's text is logged", "pipeline/delivery/otlp_answer.c", 'log_number("dropped_profiles", rejected)',
     'log_text("dropped_profiles", answer->partial_success->error_message)'),
    ("explain shows values", ALLOWLIST, '		note(pass, "denied", string_view(p, a.key));\n',
     '		note(pass, "denied", string_view(p, a.type == VALUE_STRING ? a.string : a.key));\n'),
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
def without(scratch, name, mode="dev"):
    """The copy, built without the protection of this name."""
    path, old, new = next(row[1:] for row in MUTATIONS if row[0] == name)
    file = scratch / path
    text = file.read_text()
    if text.count(old) != 1:
        raise Failed("the text is there %d times" % text.count(old))
    file.write_text(text.replace(old, new))
    try:
        built = run(scratch, "make", "-s", "-j2", "all", MODE=mode)
        if built.returncode:
            raise Failed("does not build: " + built.stderr[-800:])
        yield
    finally:
        file.write_text(text)


def test(scratch):
    """None if it passes, else what it said, "" if that was not an assertion about leaks."""
    done = run(scratch, sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "tests/e2e/test_leaks.py",
               LEAK_SEED="1", WAIT_S="20")
    if done.returncode == 0:
        return None
    kinds = re.findall(r"(?:kinds: \{|Counter\(\{)'(.*?)':", done.stdout)
    if not kinds:
        print(done.stdout[-3000:], file=sys.stderr)
    return "; ".join(dict.fromkeys(kinds)) if kinds else ""


def mutate(scratch, name):
    try:
        with without(scratch, name):
            said = test(scratch)
    except Failed as why:
        return str(why)
    return {None: "NOT NOTICED", "": "fails otherwise"}.get(said, "noticed: " + str(said))


def main(wanted):
    with tempfile.TemporaryDirectory(prefix="mutations-") as directory:
        scratch = copy(pathlib.Path(directory))
        assert test(scratch) is None, "fails without any mutation"
        bad = 0
        for name, *_ in MUTATIONS:
            if not wanted or any(w in name for w in wanted):
                said = mutate(scratch, name)
                bad += not said.startswith("noticed")
                print("%-44s %s" % (name, said[:160]), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
