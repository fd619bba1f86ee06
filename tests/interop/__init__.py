# SPDX-License-Identifier: Apache-2.0
"""Portcullis beside other people's programs: `make interop`.

A partner is a class (partner.py) that knows how it is installed, started and asked. To use one in a test, name its
fixture (conftest.py): `def test_x(pyroscope): pyroscope.push(...); pyroscope.values(...)`. By hand: run.py.
Downloads and builds are kept in ~/.cache/portcullis (cache.py), which may be removed at any time.
"""
