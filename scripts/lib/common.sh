# Shared by the scripts in scripts/. Source it: . "$(dirname "$0")/lib/common.sh"
# shellcheck shell=bash

# shellcheck disable=SC2034
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# say <text>: a headline with the seconds since the script started.
say() { printf '\n[%4ds] == %s\n' "$SECONDS" "$*"; }

fail() {
  printf '\nFAILED: %s\n' "$*" >&2
  exit 1
}

# step <text> <command>...: says it, runs it, says how long it took; ends the script when the command fails.
step() {
  local text=$1 start=$SECONDS status=0
  shift
  say "$text"
  "$@" || status=$?
  [ "$status" -eq 0 ] || fail "$text (status $status): $*"
  printf '[%4ds]    done in %d s\n' "$SECONDS" "$((SECONDS - start))"
}

# version_at_least <have> <want>
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

boost_is_usable() { # Boost >= 1.75, whoever installed it
  local header version
  for header in /usr/local/include/boost/version.hpp /usr/include/boost/version.hpp; do
    [ -r "$header" ] || continue
    version=$(sed -n 's/^#define BOOST_VERSION \([0-9]*\).*/\1/p' "$header")
    [ "${version:-0}" -ge 107500 ]
    return
  done
  return 1
}

# The Boost package to install: the distribution's own where it is new enough (Debian 12's is 1.74, with 1.81 beside it).
boost_package() {
  local version
  version=$(apt-cache policy libboost-dev 2>/dev/null | sed -n 's/^ *Candidate: *\([0-9.]*\).*/\1/p')
  if [ -n "$version" ] && version_at_least "$version" 1.75; then
    echo libboost-dev
    return
  fi
  version=$(apt-cache search --names-only '^libboost1\.[0-9]+-dev$' | sed 's/ .*//' | sort -V | tail -n 1)
  if [ -n "$version" ] && version_at_least "${version//[!0-9.]/}" 1.75; then
    echo "$version"
  else
    echo libboost1.81-dev
  fi
}

# missing_packages <package>...: those not installed; the word "boost" stands for a usable Boost, "PROGRAM:PACKAGE" for
# any program of that name.
missing_packages() {
  local wanted
  for wanted in "$@"; do
    case $wanted in
      boost) boost_is_usable || boost_package ;;
      *:*) command -v "${wanted%%:*}" >/dev/null || echo "${wanted#*:}" ;;
      *) installed "$wanted" || echo "$wanted" ;;
    esac
  done
}

# need <package>...: installs what is missing, as root or through sudo -n; where neither works, says what to install.
need() {
  local missing as_root=()
  command -v dpkg-query >/dev/null || fail "this script installs Debian packages; elsewhere build with CMake (CONTRIBUTING.md)"
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [ -n "${missing// /}" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      fail "packages are missing and neither root nor sudo is at hand. Install them with
  sudo apt-get install $missing"
    fi
  fi
  say "Installing $missing"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update || printf 'apt-get update failed; trying with the lists at hand\n' >&2
  missing=$(missing_packages "$@" | tr '\n' ' ') # fresh lists may name another Boost
  # shellcheck disable=SC2086
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing >/dev/null ||
    fail "apt-get could not install: $missing"
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [ -z "${missing// /}" ] || fail "still missing after installation: $missing"
}

# obtain <package>...: installs what is missing, as need does, but fails without ending the script.
obtain() { (need "$@") >&2; }

# environment_of <folder> <package>...: an environment of Python with packages of PyPI; kept until the list changes.
environment_of() {
  local folder=$1
  shift
  [ "$(cat "$folder/packages" 2>/dev/null)" != "$*" ] || return 0
  rm -rf "$folder"
  python3 -m venv "$folder"
  step "Install $*" "$folder/bin/pip" -q --disable-pip-version-check install "$@"
  echo "$*" >"$folder/packages"
}

# need_version <program> <minimum>: the first number of `program --version` that looks like a version.
need_version() {
  local have
  have=$("$1" --version | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?' | head -n 1)
  version_at_least "${have:-0}" "$2" || fail "$1 is ${have:-of unknown version}; >= $2 is needed"
}
