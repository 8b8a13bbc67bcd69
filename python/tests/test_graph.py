# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The expression of a graph of operations, without torch and without a compiler."""

import pytest

from attune import policy
from attune._graph import Lowering, Node, NotInWords, is_of_distance, line_of

S, B, H = (Node(x, axes=frozenset(x), kind="float" if x == "s" else "int") for x in "sbh")
Q, K = (Node(x, axes=frozenset(x), kind="int") for x in "qk")


def op(name, *args, kind="float"):
    axes = frozenset().union(*[x.axes for x in args if isinstance(x, Node)])
    return Node(name, args, (name, args, {}), axes, (), kind)


def captured(*at, kind="float", other=False):
    """A captured tensor at indices."""
    axes = frozenset().union(*[x.axes for x in at])
    return Node(None, (), ("index", ("tensor", at), {}), axes, (), kind, other=other)


def whole(name, *args):
    return op(name, *args, kind="int")


def test_numbers_are_parameters_and_zero_one_and_infinity_are_text():
    lowering = Lowering("dot")
    text = lowering.text(op("mul", op("tanh", op("div", S, 30.0)), op("add", op("pow", S, 2), 1)))
    assert text == "(tanh((dot / p0)) * ((dot ** 2) + 1))"
    assert lowering.parameters == {"p0": 30.0}
    other = Lowering("dot")
    assert other.text(op("mul", op("tanh", op("div", S, 20.0)), op("add", op("pow", S, 2), 1))) == text


def test_what_depends_on_the_row_alone_is_one_parameter():
    slope = captured(H)
    lowering = Lowering("dot")
    row = op("exp", op("mul", slope, Q))
    assert lowering.text(op("add", op("mul", S, row), op("mul", op("sub", K, Q), slope))) == (
        "((dot * p0) + ((key - position) * p1))"
    )
    assert lowering.parameters == {"p0": row, "p1": slope} and not lowering.leaves


def test_numbers_of_keys_distances_and_pairs_are_leaves():
    key, distance, pair = captured(B, K), captured(H, whole("add", whole("sub", Q, K), 7)), captured(Q, K)
    lowering = Lowering("dot")
    assert lowering.text(op("add", op("add", op("mul", S, key), op("exp", distance)), pair)) == (
        "(((dot * per_key) + exp(distances)) + given_bias)"
    )
    assert lowering.leaves == {"per_key": key, "distances": distance, "given_bias": pair}


def test_a_node_of_positions_that_needs_numbers_of_pairs_is_one_leaf():
    both = op("add", op("mul", captured(Q, K), 3.0), captured(B, Q, K))
    lowering = Lowering("dot")
    assert lowering.text(op("sub", S, both)) == "(dot - given_bias)"
    assert lowering.leaves == {"given_bias": both} and not lowering.parameters


def test_a_third_number_of_pairs_has_no_place():
    pairs = [captured(Q, K) for _ in range(3)]
    node = op("mul", op("mul", op("mul", S, pairs[0]), pairs[1]), pairs[2])
    with pytest.raises(NotInWords) as e:
        Lowering("dot").text(node)
    assert e.value.node is pairs[2]


def test_a_number_of_another_type_than_the_score_is_computed_by_torch():
    product = op("mul", whole("sub", Q, K), captured(H))
    product.other = True
    lowering = Lowering("dot")
    assert lowering.text(op("add", S, product)) == "(dot + distances)"
    assert lowering.leaves == {"distances": product}


def test_an_unknown_operation_of_the_score_is_not_in_words():
    node = Node(None, (), ("cumsum", (S, 0), {}), frozenset("s"))
    with pytest.raises(NotInWords) as e:
        Lowering("dot").text(op("add", node, 1.0))
    assert e.value.node is node


def test_conditions_are_joined_in_words():
    inside = op("and", op("ge", Q, K, kind="bool"), op("lt", S, 2.0, kind="bool"), kind="bool")
    node = op("where", op("or", inside, op("not", captured(K, kind="bool"), kind="bool"), kind="bool"), S, float("-inf"))
    lowering = Lowering("dot")
    assert lowering.text(node) == (
        "where(((position >= key) and (dot < p0)) or (not (per_key > 0.5)), dot, (-inf))"
    )
    same = op("eq", captured(Q, kind="int"), captured(K, kind="int"), kind="bool")
    assert Lowering("dot").text(op("where", same, S, 0)) == "where(p0 == per_key, dot, 0)"


def test_a_long_text_is_a_step():
    x = op("gelu_tanh", S)
    lowering = Lowering("dot")
    text = lowering.text(op("add", op("silu", x), x))
    assert text.count("0.044715") == 1 and text.endswith("; ((t0 * sigmoid(t0)) + t0)")
    assert policy.kernel("dot", text).text.count("T const s_t0 = ") == 1


def test_lines_of_positions():
    assert line_of(whole("add", whole("mul", 2, whole("sub", Q, K)), 5)) == (2, -2, 5)
    assert line_of(whole("neg", whole("sub", 3, K))) == (0, 1, -3)
    assert line_of(whole("mul", Q, K)) is None and line_of(op("add", Q, 0.5)) is None and line_of(True) is None
    assert is_of_distance(op("abs", whole("sub", K, Q))) and is_of_distance(captured(H, whole("sub", Q, K)))
    assert not is_of_distance(captured(whole("add", Q, K))) and not is_of_distance(op("mul", whole("sub", Q, K), Q))
