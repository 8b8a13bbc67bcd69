// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   comma_locale const here;   if (!here.of_c()) MESSAGE(...)
//
// A locale with a decimal comma and groups of three digits, for printf and for streams, until the end of the scope.
#pragma once

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <locale>
#include <string>

#include <unistd.h>

namespace attune::test {

class comma_locale {
 public:
  comma_locale() {
    std::locale::global(std::locale(std::locale::classic(), new punctuation));
    made_ = of_localedef() && std::setlocale(LC_NUMERIC, "comma") != nullptr;
  }
  comma_locale(comma_locale const&) = delete;
  comma_locale& operator=(comma_locale const&) = delete;
  ~comma_locale() {
    std::locale::global(std::locale::classic());  // and std::setlocale(LC_ALL, "C")
    unsetenv("LOCPATH");
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  /// Whether printf writes a comma. Else the machine cannot make a locale: then only streams do.
  bool of_c() const { return made_; }

 private:
  struct punctuation : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  bool of_localedef() {
    std::filesystem::create_directory(folder_);
    setenv("LOCPATH", folder_.c_str(), 1);
    std::string const source = folder_ + "/source";
    std::ofstream(source) << "LC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\ngrouping 3;3\n"
                             "END LC_NUMERIC\n";
    std::string const command = "localedef -c -i " + source + " " + folder_ + "/comma >/dev/null 2>&1";
    return std::system(command.c_str()) != -1;  // it warns of the other categories, with status 1
  }

  std::string folder_ =
      (std::filesystem::temp_directory_path() / ("attune_comma." + std::to_string(getpid()))).string();
  bool made_ = false;
};

}  // namespace attune::test
