# SPDX-License-Identifier: MIT
"""Stands for a header-only library that this machine has installed, so that the test of attune's recipe needs no server."""
from conan import ConanFile


class SystemHeaders(ConanFile):
    package_type = "header-library"
    options = {"header_only": [True, False]}
    default_options = {"header_only": True}

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        # The compiler looks into /usr/include itself, and must not do so earlier than into its own folders.
        folder = {"eigen": ["/usr/include/eigen3"]}.get(self.name, [])
        if self.name == "boost":
            self.cpp_info.components["headers"].includedirs = folder
        else:
            self.cpp_info.includedirs = folder
