# SPDX-License-Identifier: Apache-2.0
"""No detector that is on by default matches the name of a function in the corpus, except names that hold the path of a home
directory. A false match would merge frames."""
import re
import subprocess

import otlp_profiles_pb2 as pb
import pprof_pb2
import pytest
from google.protobuf.message import DecodeError

from harness.corpus import inflate

CONFIG = """
receivers: {pprof: {server: {endpoint: 127.0.0.1:4040}}}
processors: {pii: {}}
exporters: {debug: {}}
service: {pipelines: {profiles: {receivers: [pprof], processors: [pii], exporters: [debug]}}}
"""


def function_names(corpus):
    names = set()
    for path in sorted((corpus / "otlp").glob("*-v111.pb")):
        dictionary = pb.ProfilesData.FromString(path.read_bytes()).dictionary
        for function in dictionary.function_table:
            names.update(dictionary.string_table[i] for i in (function.name_strindex, function.system_name_strindex))
    for path in sorted((corpus / "pprof").glob("*.pb*")):
        try:
            profile = pprof_pb2.Profile.FromString(inflate(path.read_bytes()))
            for function in profile.function:
                names.update(profile.string_table[i] for i in (function.name, function.system_name))
        except (DecodeError, UnicodeDecodeError, IndexError):
            continue  # not every one is sound
    return sorted(names - {""})


def profile_of(names):
    """One sample, whose stack has a frame of each name."""
    strings = ["", "samples", "count"] + names
    profile = pprof_pb2.Profile(string_table=strings)
    profile.sample_type.add(type=1, unit=2)
    sample = profile.sample.add(value=[1])
    for i in range(len(names)):
        profile.function.add(id=i + 1, name=i + 3)
        profile.location.add(id=i + 1).line.add(function_id=i + 1)
        sample.location_id.append(i + 1)
    return profile.SerializeToString()


def test_no_name_of_a_function_is_taken_for_personal_data(build, corpus, tmp_path):
    if not corpus:
        pytest.skip("no corpus")
    names = function_names(corpus)
    assert len(names) > 20000
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "names.pb").write_bytes(profile_of(names))
    ran = subprocess.run([build / "portcullis", "explain", "--config", tmp_path / "config.yaml", tmp_path / "names.pb"],
                         capture_output=True, text=True, check=True)
    found = {what: int(count) for count, what in re.findall(r"(\d+)\s+function\.name\s+pii: (\w+)", ran.stdout)}
    homes = sum(re.search("/(home|Users)/", name) is not None for name in names)
    assert set(found) <= {"home_directory"}, found
    assert 0 < found.get("home_directory", 0) <= homes
