# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The C++ source of an operator, from the texts of its parts.

The operator is made before the executors are included, so that a wrong policy is reported after a second or two. Every
text has its own namespace, and `#line` in front: errors name the user's lines.
"""

import re
import textwrap

from ._errors import CompileError, pointed

_COMMENTS_AND_STRINGS = re.compile(
    r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*", re.MULTILINE)
_STRUCT = re.compile(r"^(?:struct|class)\s+(?:\[\[.*?\]\]\s*)?(\w+)\s*(?:final\s*)?(?::[^{]*)?\{", re.DOTALL)
_ALIAS = re.compile(r"^using\s+(\w+)\s*=")
_FUNCTION = re.compile(r"^(?:inline|constexpr|static|auto|template|namespace|\[\[)\b")
_DECLARATION = re.compile(
    r"^(?:struct|class|union|enum|template|using|namespace|inline|constexpr|static|typedef|extern|auto)\b"
)
_WHOLE_NUMBERS = re.compile(r"(?<![\w.])(\d+)\s*/\s*(\d+)(?![\w.])")


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


class Part:
    """One text: `declarations`, then `expression`, which makes the policy.

    role: where it belongs. name: how errors call it. namespace: of attune, whose policies the expression names without
    it. label: the file in messages of compilers, the same wherever a file is.
    """

    def __init__(self, role, name, text, namespace, label=None):
        self.role, self.name, self.text, self.namespace, self.label = role, name, text, namespace, label or name
        if "\0" in text:
            raise CompileError(f"attune: {name}: the text has a character 0", part=name)
        self.code = _DIRECTIVE.sub(_blank, _COMMENTS_AND_STRINGS.sub(_blank, text))
        if not self.code.strip():
            raise CompileError(f"attune: {name}: the text is empty", part=name)
        self._split()
        self._check_division()

    def place(self, at):
        """Line and column of an index into the text, from 1."""
        line = self.text.count("\n", 0, at) + 1
        return line, at - (self.text.rfind("\n", 0, at) + 1) + 1

    def fail(self, at, why):
        line, column = self.place(at)
        shown = pointed(self.text.split("\n")[line - 1], column)
        raise CompileError(
            f"attune: {why}\n  {self.name}, line {line}, column {column}:\n{shown}", self.name, line, column
        )

    def _split(self):
        """Finds the last declaration and the expression behind it."""
        depth, start, last, opened = 0, 0, None, []
        for at, x in enumerate(self.code):
            if x in "({[":
                depth += 1
                opened.append(at)
            elif x in ")}]":
                depth -= 1
                if depth < 0:
                    self.fail(at, f"{x} closes nothing")
                opened.pop()
            if depth == 0 and (x == ";" or x == "}" and self._is_function(start, at)):
                last = self._named(start, at) or last
                start = at + 1
        if depth:
            self.fail(opened[-1], f"{self.code[opened[-1]]} is not closed")
        rest = self.code[start:]
        self.expression_at = start + len(rest) - len(rest.lstrip())
        if rest.strip() and _DECLARATION.match(rest.strip()):
            self.fail(self.expression_at, "a declaration does not end: write ; behind it")
        self.declarations, self.expression = self.text[: self.expression_at], self.text[self.expression_at :].rstrip()
        if not rest.strip():
            self.expression = None
            self.last = last

    def _is_function(self, start, end):
        chunk = self.code[start:end].strip()
        head = chunk.partition("{")[0]
        return bool(_FUNCTION.match(chunk)) and not re.search(r"\b(?:struct|class|union|enum)\b|=\s*$", head)

    def _named(self, start, end):
        chunk = self.code[start:end].strip()
        found = _STRUCT.match(chunk) or _ALIAS.match(chunk)
        return found.group(1) if found else None

    def _check_division(self):
        for found in _WHOLE_NUMBERS.finditer(self.code):
            a, b = int(found.group(1)), int(found.group(2))
            if b == 0 or a % b:
                why = f"{found.group()} divides whole numbers, and C++ drops the rest: write {a}.0 / {b}"
                self.fail(found.start(), why)

    def require_expression(self):
        """Fails unless an expression is behind the declarations."""
        if self.expression is None:
            why = "the text has no expression at its end, for example attention(kernel::dot_product{}, m)"
            self.fail(len(self.code.rstrip()) - 1, why)

    def shown(self):
        """The text in a line: the comment at its start, where attune.policy has the formula; or all of it."""
        first, rest = self.text.strip().partition("\n")[::2]
        text = first[2:] if first.startswith("//") and rest else self.text
        return textwrap.shorten(f"{self.role} {text}", 90, placeholder=" ...")

    def made(self):
        """The expression, or the last struct."""
        if self.expression is not None:
            return self.expression
        if self.last is None:
            self.fail(len(self.code.rstrip()) - 1, f"the text has no struct: the policy of the {self.role}")
        return f"{self.last}{{}}"

    def includes(self):
        """The #include lines, which belong outside a namespace."""
        return [found.group().strip() for found in _INCLUDE.finditer(self.text)]

    def source(self, namespace):
        """The C++ of the part: a function make(m, c) in the namespace."""
        line, _ = self.place(self.expression_at)
        text = _INCLUDE.sub(_blank, self.declarations)
        indent = " " * (self.place(self.expression_at)[1] - 1)
        lines = [f"namespace attune_own::{namespace} {{", "using namespace attune;", f'#line 1 "{self.label}"', text]
        lines += ['#line 1 "attune.compile"', "inline auto make([[maybe_unused]] interop::mask_policy const& m,"]
        lines += ["                 [[maybe_unused]] interop::call_constants const& c) {"]
        lines += [f"  using namespace attune::{self.namespace};"] if self.namespace else []
        lines += ["  [[maybe_unused]] parameter const open;", "  return"]
        lines += [f'#line {line} "{self.label}"', indent + self.made(), '#line 1 "attune.compile"', "  ;", "}", "}", ""]
        return "\n".join(lines)


_HEAD = """// An operator that attune.compile made.
#include <limits>

#include <attune/policies.hpp>

#include <attune/interop/c_arguments.hpp>
"""
_POWER = """
namespace attune_own {
// x^N for whole numbers N.
template <int N, class T>
T power(T const& x) {
  if constexpr (N < 0)
    return T(T(1) / power<-N>(x));
  else if constexpr (N == 0)
    return T(1);
  else if constexpr (N == 1)
    return x;
  else if constexpr (N % 2 == 0)
    return power<N / 2>(T(x * x));
  else
    return T(x * power<N - 1>(x));
}
// x - y floor(x / y): has the sign of y.
template <class T>
T modulo(T const& x, T const& y) {
  return T(x - y * attune::math::floor(T(x / y)));
}
}

"""
_OPERATOR = """
namespace attune_own {
struct make_operator {
  static auto make([[maybe_unused]] attune::interop::mask_policy m,
                   [[maybe_unused]] attune::interop::call_constants const& c) {
    using namespace attune;
    [[maybe_unused]] parameter const open;
    return %s;
  }
};
using made = decltype(make_operator::make(attune::interop::mask_policy{}, attune::interop::call_constants{}));
}
"""
# What a library exports. The operator is complete before these headers come.
_LIBRARY = """
#include <attune/interop/c_operator.hpp>

extern "C" __attribute__((visibility("default"))) attune_library const* attune_library_1() {
  static attune_operator const* const only[] = {
      attune::interop::operator_functions<attune_own::make_operator>::get("compiled")};
  return attune::interop::library_of(only);
}
"""
_MAKE = "attune_own::make_operator"
_DIGITS = ("attune/exec/reference/multiprecision.hpp", "attune/interop/c_reference.hpp")
# Companions: the headers, the function, and roughly how many seconds they take to compile. Types of a call are further
# arguments of the function's template.
_COMPANIONS = {
    "statistics": (("attune/interop/c_statistics.hpp",), f"run_statistics<{_MAKE}", 8),
    "decode": (("attune/interop/c_decode.hpp",), f"run_decode<{_MAKE}", 8),
    "reference": (("attune/interop/c_reference.hpp",), f"run_reference<double, {_MAKE}", 8),
    "reference_vjp": (("attune/interop/c_reference.hpp",), f"run_reference_vjp<double, {_MAKE}", 9),
    "reference50": (_DIGITS, f"run_reference<attune::digits50, {_MAKE}", 13),
    "reference50_vjp": (_DIGITS, f"run_reference_vjp<attune::digits50, {_MAKE}", 15),
    "verdict": (("attune/testing/interop/c_verdict.hpp",), f"run_verdict<{_MAKE}", 13),
    "verdict_gradients": (("attune/testing/interop/c_verdict_gradients.hpp",), f"run_verdict_gradients<{_MAKE}", 20),
    "mpi": (("attune/interop/c_mpi.hpp",), f"run_on_ranks<{_MAKE}", 20),
    "cuda": (("attune/interop/c_cuda.hpp",), f"run_cuda<{_MAKE}", 13),
    "cuda_vjp": (("attune/interop/device/c_cuda_vjp.hpp",), f"run_cuda_vjp<{_MAKE}", 25),
    "warps": (("attune/testing/interop/c_warps.hpp",), f"run_warps<{_MAKE}", 6),  # of emulated warps, for tests
    "warps_vjp": (("attune/testing/interop/c_warps.hpp",), f"run_warps_vjp<{_MAKE}", 8),
    "probes": (("attune/testing/interop/c_probes.hpp",), f"run_probes<{_MAKE}", 5),
}
_ON_DEVICE = ("cuda", "cuda_vjp", "warps", "warps_vjp")
_WORDS = {"cuda": "CUDA kernels", "cuda_vjp": "CUDA kernels of gradients", "mpi": "calls over ranks"}
_WORDS.update(float="float32", double="float64", warps="emulated kernels", warps_vjp="emulated kernels of gradients")


class Source:
    """The C++ of an operator. parts: the texts that a user wrote. preset: its name, without them."""

    def __init__(self, text, parts=(), preset=None):
        self.text, self.parts, self.preset = text, parts, preset

    def what(self, kind, types=()):
        """A library in words, for messages."""
        operator = f"the preset {self.preset}" if self.preset else "this operator"
        kind = _WORDS.get(kind, kind.replace("_", " "))
        words = [f"{x} features" if x.isdigit() else _WORDS.get(x, x.replace("attune::", "")) for x in types]
        of = f" for {', '.join(words)}" if types else ""
        return operator if kind == "library" else f"{kind} of {operator}{of}"

    @staticmethod
    def seconds(kind):
        """Roughly how long a compiler takes for a library."""
        return 15 if kind == "library" else _COMPANIONS[kind][2]

    def of(self, kind, types=(), mask=None):
        """The C++ of a library: "library" for the operator itself, or a companion's kind and its types in C++. mask: the form
        of masks of a companion on a device; None: bands."""
        if kind == "library":
            return self.text + _LIBRARY
        headers, function, _ = _COMPANIONS[kind]
        includes = "".join(f"#include <{header}>\n" for header in headers)
        first = "#define ATTUNE_C_ON_DEVICE\n" if kind in _ON_DEVICE else ""
        first += f"#define ATTUNE_C_DEVICE_MASK {mask}\n" if mask else ""
        return f"{first}{self.text}\n{includes}\nATTUNE_C_COMPANION({kind}, {', '.join((function, *types))}>)\n"


def _source(parts, expression):
    includes = dict.fromkeys(line for part in parts for line in part.includes())
    texts = [part.source(f"part_{n}") for n, part in enumerate(parts)]
    return Source(_HEAD + "\n".join(["", *includes]) + _POWER + "\n".join(texts) + _OPERATOR % expression, parts)


def source_of_operator(part):
    """The source of an operator that one expression makes."""
    return _source([part], "attune_own::part_0::make(m, c)")


def source_of_preset(name, expression):
    """The source of a preset, from the expression in its description."""
    return Source(_HEAD + "#include <attune/operators/presets.hpp>\n" + _OPERATOR % expression, preset=name)


def source_of_parts(parts):
    """The source of attention() of the parts."""
    made = [f"attune_own::part_{n}::make(m, c)" for n in range(len(parts))]
    kernels = [x for x, part in zip(made, parts) if part.role in ("kernel", "term")]
    maps = [x for x, part in zip(made, parts) if part.role == "score_map"]
    rest = [x for x, part in zip(made, parts) if part.role not in ("kernel", "term", "score_map")]
    kernel = " + ".join(kernels)
    if maps:
        kernel = f"({kernel}) | {maps[0]}"
    return _source(parts, f"attention({', '.join([kernel, *rest, 'm'])})")
