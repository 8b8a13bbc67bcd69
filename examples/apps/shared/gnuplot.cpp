// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "gnuplot.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace apps {
namespace {

/// A gnuplot string: in single quotes only the quote itself is special.
std::string quoted(std::string const& raw) {
  std::string to = "'";
  for (char const c : raw) to += c == '\'' ? "''" : std::string(1, c);
  return to + "'";
}

[[noreturn]] void fail(std::filesystem::path const& script, std::string const& why) {
  throw std::runtime_error("gnuplot " + script.string() + ": " + why);
}

}  // namespace

void gnuplot(std::filesystem::path const& script, std::map<std::string, std::string> variables, std::string program) {
  variables["common"] = APPS_GNUPLOT_COMMON;
  std::string settings;
  for (auto const& [name, value] : variables) settings += name + "=" + quoted(value) + ";";
  char option[] = "-e";
  std::string file = script.string();
  char* const arguments[] = {program.data(), option, settings.data(), file.data(), nullptr};

  int pipe_ends[2];  // gnuplot's complaints come through here
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) fail(script, std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  pid_t child = 0;
  int const problem = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  std::string said;
  char buffer[512];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, std::size_t(n));
  close(pipe_ends[0]);
  if (problem != 0)
    fail(script, program + " cannot be run (" + std::strerror(problem) + "); Debian, Ubuntu: gnuplot-nox");
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !said.empty()) fail(script, said.empty() ? "failed" : said);
}

}  // namespace apps
