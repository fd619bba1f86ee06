# SPDX-License-Identifier: Apache-2.0
"""Every place of the protocol where text can stand is named by a site.

Walks the message descriptors from ExportProfilesServiceRequest and compares
each field that can hold text with the fields that profile/sites.c names.
"""
import pathlib
import subprocess

import pytest
from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTOS = ROOT / "tests" / "proto"
REQUEST = "ExportProfilesServiceRequest"
FD = descriptor_pb2.FieldDescriptorProto

# Never decoded, so never forwarded.
DROPPED = {"Profile.original_payload", "Profile.original_payload_format"}
# Tables: their entries leave only through the references to them.
CARRIERS = {"ProfilesDictionary.string_table"}

DUMP = """
#include <stdio.h>
#include "profile/sites.h"
int main(void)
{
	for (int i = SITE_NONE + 1; i < SITE_COUNT; i++)
		printf("%s\\t%s\\t%d\\t%s\\n", sites[i].name, sites[i].field,
		       sites[i].has_keys, sites[i].help);
	printf("attributes\\t%s\\t0\\t-\\n", sites_attribute_fields);
	for (const char *const *field = sites_open_fields; *field; field++)
		printf("open\\t%s\\t0\\t-\\n", *field);
}
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """[(name, fields, has_keys)] as the C tables have them; one row named "open" for each open field."""
    folder = tmp_path_factory.mktemp("sites")
    (folder / "dump.c").write_text(DUMP)
    subprocess.run(
        ["cc", "-std=gnu11", f"-I{ROOT}", "-o", folder / "dump",
         folder / "dump.c", ROOT / "profile" / "sites.c"], check=True)
    rows = subprocess.run([folder / "dump"], check=True, text=True,
                          capture_output=True).stdout.splitlines()
    return [(name, fields.split(), keys == "1")
            for name, fields, keys, _ in (row.split("\t") for row in rows)]


@pytest.fixture(scope="module")
def sites(table):
    return [row for row in table if row[0] != "open"]


@pytest.fixture(scope="module")
def open_fields(table):
    return [field for name, (field,), _ in (row for row in table if row[0] == "open")]


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """Message descriptors by their name without package."""
    out = tmp_path_factory.mktemp("proto") / "set"
    subprocess.run(
        ["protoc", f"-I{PROTOS}", "--include_imports", f"--descriptor_set_out={out}",
         "otlp_collector.proto"], check=True)
    found = {}
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        for message in file.message_type:
            assert message.name not in found
            found[message.name] = message
    return found


def holds_text(field):
    """Text, bytes, and the indices of strings and of attributes."""
    if field.type in (FD.TYPE_STRING, FD.TYPE_BYTES):
        return True
    return field.name.endswith(("_strindex", "_strindices")) or \
        field.name == "attribute_indices"


def text_fields(messages):
    """(Message.field, Parent.field.field or None) of all that is reachable."""
    found, seen, todo = set(), set(), [(REQUEST, None)]
    while todo:
        name, parent = todo.pop()
        if (name, parent) in seen:
            continue
        seen.add((name, parent))
        for field in messages[name].field:
            if field.type == FD.TYPE_MESSAGE:
                todo.append((field.type_name.rsplit(".", 1)[1], f"{name}.{field.name}"))
            elif holds_text(field):
                found.add((f"{name}.{field.name}", parent and f"{parent}.{field.name}"))
    return found


def test_every_text_field_is_named_by_a_site(sites, messages):
    named = {field for _, fields, _ in sites for field in fields}
    missing = sorted(
        long or short for short, long in text_fields(messages)
        if short not in named | DROPPED | CARRIERS and long not in named)
    assert missing == []


def reachable(messages):
    """Every field below the request: (message name, field)."""
    found, todo = {}, [REQUEST]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = list(messages[name].field)
        todo.extend(f.type_name.rsplit(".", 1)[1] for f in found[name] if f.type == FD.TYPE_MESSAGE)
    return [(name, field) for name, fields in found.items() for field in fields]


# Numbers that are an attribute's value, and what refers to an entry of a table.
VALUES = {"AnyValue.bool_value", "AnyValue.int_value", "AnyValue.double_value"}
REFERENCES = ("_index", "_indices", "_strindex", "_strindices")


def test_every_free_byte_field_has_a_site(sites, messages):
    named = {field for _, fields, _ in sites for field in fields}
    free = {f"{name}.{field.name}" for name, field in reachable(messages) if field.type == FD.TYPE_BYTES}
    assert "Profile.profile_id" in free
    assert free <= named | DROPPED


def test_every_other_number_is_said_to_pass(open_fields, messages):
    numbers = {f"{name}.{field.name}" for name, field in reachable(messages)
               if field.type not in (FD.TYPE_STRING, FD.TYPE_BYTES, FD.TYPE_MESSAGE) and not field.name.endswith(REFERENCES)}
    assert sorted(open_fields) == sorted(numbers - VALUES)


def test_every_owner_of_attributes_is_a_site_with_keys(sites, messages):
    owners = {
        f"{message.name}.{field.name}"
        for message in messages.values() for field in message.field
        if field.type_name.endswith(".KeyValue") or field.name == "attribute_indices"}
    owners.discard("KeyValueList.values")  # nested values
    with_keys = {field for _, fields, keys in sites if keys for field in fields}
    assert owners <= with_keys


def test_sites_name_only_what_exists_and_nothing_twice(sites, messages):
    real = {name for pair in text_fields(messages) for name in pair if name}
    real |= {f"{m.name}.{f.name}" for m in messages.values() for f in m.field
             if f.type_name.endswith(".KeyValue")}
    named = [field for _, fields, _ in sites for field in fields]
    assert len(named) == len(set(named))
    assert set(named) <= real
    assert len({name for name, _, _ in sites}) == len(sites)
