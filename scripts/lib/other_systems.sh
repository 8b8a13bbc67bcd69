# What scripts/test fetches to try attune on other systems than this one. Nothing is installed: all of it lies under build/.
# shellcheck shell=bash

# newer_xsimd <suite of Debian>: the package libxsimd-dev of that suite, and xtl, where it depends on that, unpacked to build/newer-xsimd.
newer_xsimd() {
  local suite=$1 folder="$repository/build/newer-xsimd" apt
  if [ "$(cat "$folder/suite" 2>/dev/null)" = "$suite" ]; then return 0; fi
  rm -rf "$folder" && mkdir -p "$folder"/lists/partial "$folder"/archives/partial
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian %s main\n' "$suite" >"$folder/sources.list"
  apt=(apt-get -qq -o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$folder/lists"
    -o "Dir::Cache=$folder" -o APT::Sandbox::User=root)
  if ! (
    "${apt[@]}" update && cd "$folder" && "${apt[@]}" download libxsimd-dev && dpkg-deb -x libxsimd-dev_*.deb . || exit 1
    xtl=$(dpkg-deb -f libxsimd-dev_*.deb Depends | grep -oE '(lib)?xtl-dev' || true)
    [ -z "$xtl" ] || { "${apt[@]}" download "$xtl" && dpkg-deb -x "$xtl"_*.deb .; }
  ) >&2; then
    rm -rf "$folder" && return 1
  fi
  rm -rf "$folder"/{lists,archives,*.bin} && echo "$suite" >"$folder/suite"
}

# from_pypi: a Python environment in build/pypi with the oldest CMake for users, zig, and who judges attune's readers.
from_pypi() {
  local folder="$repository/build/pypi" packages=('cmake==3.22.*' 'ziglang==0.15.*' numpy safetensors)
  if [ "$(cat "$folder/packages" 2>/dev/null)" = "${packages[*]}" ]; then return 0; fi
  rm -rf "$folder"
  { python3 -m venv "$folder" || { obtain python3-venv && python3 -m venv "$folder"; }; } >&2 &&
    "$folder/bin/pip" -q install "${packages[@]}" >&2 && echo "${packages[*]}" >"$folder/packages"
}

# debian13_root: a minimal Debian 13 in build/debian13, with a copy of the working tree in /attune.
debian13_root() {
  local root="$repository/build/debian13"
  if [ ! -e "$root/complete" ]; then
    rm -rf "$root"
    step 'Debian 13 in build/debian13' debootstrap --variant=minbase trixie "$root" http://deb.debian.org/debian
    touch "$root/complete"
  fi
  mkdir -p "$root/attune"
  find "$root/attune" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  git ls-files --cached --others --exclude-standard -z | xargs -0 cp --parents -t "$root/attune"
  [ -e "$root/proc/self" ] || mount -t proc proc "$root/proc"
}

# in_debian13 <command>...: in /attune of that root, as its root. A failing command ends the script.
in_debian13() {
  step "Debian 13: $*" chroot "$repository/build/debian13" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c 'cd /attune && exec "$@"' sh "$@"
}
