"""Builds the library that parity_probe/native.py loads where it is there. It is optional: without a compiler for C++17, or without the header beside this folder, the package is Python alone."""
import glob
import os

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HEADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cpp")


class build_library(build_ext):
    """A shared library to be loaded by ctypes: no module of Python's."""

    def get_ext_filename(self, fullname):
        return os.path.join(*fullname.split(".")[:-1], "libparity-probe.so")

    def get_export_symbols(self, ext):
        return ext.export_symbols


unix = os.name == "posix"
library = Extension("parity_probe.native_library", ["native/describe.cpp"], include_dirs=[HEADERS], depends=glob.glob(os.path.join(HEADERS, "parity_probe", "*.hpp")), language="c++", optional=True,
                    extra_compile_args=["-std=c++17", "-O2", "-fvisibility=hidden", "-pthread"] if unix else ["/std:c++17", "/EHsc"], extra_link_args=["-pthread"] if unix else [])
setup(ext_modules=[library] if os.path.isdir(os.path.join(HEADERS, "parity_probe")) else [], cmdclass={"build_ext": build_library})
