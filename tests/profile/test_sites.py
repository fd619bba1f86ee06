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
# 16 bytes or absent: checked while decoding.
IDS = {"Profile.profile_id"}
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
}
"""


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """[(name, fields, has_keys)] as the C table has them."""
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
        if short not in named | DROPPED | IDS | CARRIERS and long not in named)
    assert missing == []


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
