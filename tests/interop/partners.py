# SPDX-License-Identifier: Apache-2.0
"""The one visible list of partners, by the names of their fixtures."""
from interop.parca import Parca
from interop.pyroscope import Pyroscope

ALL = {"pyroscope": Pyroscope, "parca": Parca}
