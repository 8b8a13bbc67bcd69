# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The folder of compiled operators: $ATTUNE_CACHE, or ~/.cache/attune.

A library is code that the process runs, so the folder must be the user's own, and nobody else may write to it. Each
library has a hash of its content behind it. A file that does not fit its hash is compiled again.

The key of a library is a hash of everything that its code depends on: the generated source, the flags, the compiler's
version, the processor's features, and the content of attune's headers. To read all headers takes too long. So their
hash is kept in the folder under a hash of their names, sizes and times of change, and a process looks at these once: it
does not see headers that change while it runs. Headers of an installed package change all at once, so one of them is
looked at. The compiler's version is kept in the folder in the same way.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import platform
import stat
import tempfile

from ._errors import CompileError

_MARK = b"attune library "  # in front of the hash at the end of a library
_HEXADECIMAL = 64


def digest(*parts):
    """A hash of texts, as 64 hexadecimal digits."""
    h = hashlib.sha256()
    for part in parts:
        data = part.encode()
        h.update(f"{len(data)}:".encode())
        h.update(data)
    return h.hexdigest()


def folder(chosen=None):
    """The folder of the cache. It is made if it is missing, and refused if another user could write to it."""
    path = pathlib.Path(chosen or os.environ.get("ATTUNE_CACHE") or pathlib.Path.home() / ".cache" / "attune")
    try:
        path.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        pass
    except OSError as e:
        raise CompileError(
            f"attune: the folder {path} for compiled operators cannot be made ({e.strerror}): set ATTUNE_CACHE"
        ) from None
    at = path.stat()
    if not stat.S_ISDIR(at.st_mode):
        raise CompileError(f"attune: {path} is no folder: set ATTUNE_CACHE")
    if at.st_uid != os.geteuid():
        raise CompileError(
            f"attune: the folder {path} belongs to user {at.st_uid}, and this process runs as user {os.geteuid()}. "
            "Compiled operators are code: use your own folder, set ATTUNE_CACHE"
        )
    if at.st_mode & 0o022:
        raise CompileError(
            f"attune: other users may write to the folder {path} (mode {at.st_mode & 0o777:o}). Compiled operators are "
            f"code: run chmod 700 {path}, or set ATTUNE_CACHE"
        )
    return path


@contextlib.contextmanager
def locked(path):
    """Holds the lock of a file: of several processes one compiles, the others wait."""
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write(path, data):
    """Writes a file in one step: others see all of it or nothing."""
    handle, made = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        os.replace(made, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise


def seal(path, data):
    """Writes a library with the hash of its content behind it. Loaders ignore what is behind the last section."""
    write(path, data + _MARK + _seal(data))


def is_whole(path):
    """Whether the file is a library as `seal` wrote it."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    end = len(data) - _HEXADECIMAL
    start = end - len(_MARK)
    if start <= 0 or data[start:end] != _MARK:
        return False
    return _seal(memoryview(data)[:start]) == data[end:]


def _seal(data):
    return hashlib.blake2b(data, digest_size=_HEXADECIMAL // 2).hexdigest().encode()


def remembered(cache, kind, stamp, compute):
    """compute(), kept in the cache under a stamp of what it depends on."""
    path = cache / f"{kind}-{stamp[:32]}.txt"
    try:
        text = path.read_text()
        if text.endswith("\n"):
            return text[:-1]
    except OSError:
        pass
    value = compute()
    write(path, (value + "\n").encode())
    return value


def _files(root):
    """Names, sizes and times of all files below a folder, without those that begin with a dot."""
    found, folders = [], [""]
    while folders:
        below = folders.pop()
        with os.scandir(f"{root}/{below}") as entries:
            for entry in entries:
                name = below + entry.name
                if entry.name.startswith("."):
                    continue
                if entry.is_dir():
                    folders.append(name + "/")
                else:
                    at = entry.stat()
                    found.append((name, at.st_size, at.st_mtime_ns))
    return sorted(found)


_headers: dict = {}


def headers(cache, root, installed=False):
    """A hash of the content of all headers below a folder."""
    if root not in _headers:

        def content():
            return digest(*(text for name, _, _ in _files(root) for text in (name, _content(f"{root}/{name}"))))

        if installed:
            at = os.stat(f"{root}/attune/version.hpp")
            facts = f"{at.st_ino} {at.st_size} {at.st_mtime_ns} {at.st_ctime_ns}"
        else:
            facts = "\n".join(f"{name} {size} {time}" for name, size, time in _files(root))
        _headers[root] = remembered(cache, "headers", digest(os.path.abspath(root), facts), content)
    return _headers[root]


def _content(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


_processor = None


def processor():
    """The features of this processor, as Linux lists them."""
    global _processor
    if _processor is None:
        features = ""
        with contextlib.suppress(OSError), open("/proc/cpuinfo") as f:
            features = next((line for line in f if line.startswith(("flags", "Features"))), "")
        _processor = " ".join([platform.machine(), *sorted(features.partition(":")[2].split())])
    return _processor
