# SPDX-License-Identifier: Apache-2.0
"""OTLP at rest, whose attribute keys are references into the string table, as the Collector's receivers read it."""
from harness import otlp


def inline(message):
    """The message with text for references. Every key must be one, because an unset index is read as index 0."""
    table = message.dictionary.string_table
    assert len(set(table)) == len(table)

    def resolve(attributes):
        for a in attributes:
            assert not a.key and a.key_strindex
            a.key = table[a.key_strindex]
            a.ClearField("key_strindex")
            resolve(a.value.kvlist_value.values)
            for value in a.value.array_value.values:
                resolve(value.kvlist_value.values)
    for resource in message.resource_profiles:
        resolve(resource.resource.attributes)
        for scope in resource.scope_profiles:
            resolve(scope.scope.attributes)
    return message


def read(message):
    """The request in a message of Kafka, in either encoding."""
    return inline((otlp.parse_json if message.value[:1] == b"{" else otlp.parse)(message.value))


def count(message):
    return sum(len(p.samples) for r in read(message).resource_profiles for s in r.scope_profiles for p in s.profiles)
