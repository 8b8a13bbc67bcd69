# SPDX-License-Identifier: MIT
"""conan create packaging/conan: attune from this checkout. Header-only: one package for every setting."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load


class Attune(ConanFile):
    name = "attune"
    license = "MIT"
    description = "Attention operators composed from policies: fused, differentiable, with a reference of any precision"
    topics = ("attention", "simd", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True
    options = {"reference": [True, False]}
    options_description = {"reference": "Eigen and Boost, for attune::reference, attune::testing and attune::analysis"}
    default_options = {"reference": True}

    def set_version(self):
        text = load(self, os.path.join(self._checkout, "include", "attune", "version.hpp"))
        self.version = ".".join(re.findall(r"define ATTUNE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))

    @property
    def _checkout(self):
        return os.path.dirname(os.path.dirname(self.recipe_folder))

    def export_sources(self):
        copy(self, "LICENSE", self._checkout, self.export_sources_folder)
        copy(self, "*", os.path.join(self._checkout, "include"), os.path.join(self.export_sources_folder, "include"))

    def requirements(self):
        self.requires("xsimd/[>=8.1 <15]", transitive_headers=True)
        if self.options.reference:
            self.requires("eigen/[>=3.4 <6]", transitive_headers=True)
            self.requires("boost/[>=1.75]", transitive_headers=True, options={"header_only": True})

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.settings.clear()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))

    def package_info(self):
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        core = self.cpp_info.components["attune"]
        core.set_property("cmake_target_name", "attune::attune")
        core.requires = ["xsimd::xsimd"]
        if self.settings.os in ("Linux", "FreeBSD"):
            core.system_libs = ["pthread"]
        certify = self.cpp_info.components["certify"]
        certify.set_property("cmake_target_name", "attune::certify")
        certify.requires = ["attune"]
        components = [core, certify]
        if self.options.reference:
            for name, needs in {"reference": ["attune", "eigen::eigen", "boost::headers"],
                                "testing": ["certify", "reference"], "analysis": ["reference"]}.items():
                component = self.cpp_info.components[name]
                component.set_property("cmake_target_name", f"attune::{name}")
                component.requires = needs
                components.append(component)
        for component in components:
            component.bindirs = component.libdirs = []
