# SPDX-License-Identifier: Apache-2.0
"""The one visible list of partners, by the names of their fixtures."""
from interop.collector import Collector
from interop.foreign import Foreign
from interop.gotool import GoPprof
from interop.parca import Parca
from interop.pyroscope import Pyroscope

ALL = {"collector": Collector, "pyroscope": Pyroscope, "parca": Parca, "foreign": Foreign, "gotool": GoPprof}
