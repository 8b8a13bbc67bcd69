// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   host_gradient_fuzz [problems]        default 50
//
// Random gradients on emulated warps, against gradient_error_bound(): packs of heads, tails of every length, rows apart,
// masks of each form, rows without keys, NaN, cotangents of any size, and cotangents and gradients that nobody gives or
// asks for. Half of the problems have a fixed seed, half a fresh one. ATTUNE_SEED=<the printed seed> repeats a problem.
// ATTUNE_GROUP: the operators; 0 are those of the quick tier.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "../support/random.hpp"
#include "../unit/exec/cuda/gradients.hpp"

#if !defined(ATTUNE_GROUP)
#define ATTUNE_GROUP 0
#endif

namespace attune::test {
namespace {

/// A mask of intervals whose kind is chosen at run time.
struct drawn_interval {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  enum kind { every, causal, window, causal_window, padding, scattered };
  kind which = every;
  index_t reach = 1;
  index_t lengths[2] = {0, 0};
  std::uint32_t salt = 0;

  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const {
    switch (which) {
      case causal:
        return mask::causal{}.keys(r);
      case window:
        return mask::window{reach}.keys(r);
      case causal_window:
        return mask::causal_window{reach}.keys(r);
      case padding:
        return {0, lengths[r.batch]};
      case scattered: {  // by head as well
        std::uint32_t const x = (salt + std::uint32_t(r.query * 13 + r.head * 7 + r.batch)) * 2654435761u >> 8;
        index_t const first = r.keys == 0 ? 0 : index_t(x % 1021) % r.keys;
        return {first, first + index_t(x % 97)};
      }
      default:
        return {0, r.keys};
    }
  }
};
/// The same for pairs.
struct drawn_pairs {
  enum kind { documents, checkered, sparse };
  kind which = documents;
  index_t step = 1;
  std::uint32_t salt = 0;
  ATTUNE_HD bool operator()(mask_row const& r, index_t j) const {
    std::uint32_t const x = (salt + std::uint32_t(r.query * 131 + r.head * 7 + j)) * 2654435761u >> 16;
    if (which == documents) return r.position / (8 * step) == j / (8 * step);
    return which == checkered ? (r.query + r.head + j) % step != 0 : x % 61 == 0;
  }
};

/// Draws problems, runs them and counts.
class fuzz {
 public:
  int problems = 0, failures = 0;
  double worst = 0;
  std::string where;

  explicit fuzz(std::uint64_t seed) : seed_(seed), random_(seed) {}

  rng& random() { return random_; }
  index_t between(index_t low, index_t high) { return random_.between(low, high); }

  /// Extents whose reference takes some tenths of a second.
  gradient_extents extents(int widest) {
    gradient_extents n;
    index_t const pack = random_.pick({1, 1, 2, 3, 4});
    n.batch = between(1, 2);
    n.key_heads = between(1, 2);
    n.value_heads = random_.chance(0.5) ? 1 : n.key_heads;
    n.heads = n.key_heads * pack;
    n.queries = random_.chance(0.1) ? between(0, 3) : between(1, 200);
    n.keys = random_.chance(0.1) ? between(0, 3) : between(1, 300);
    auto const width = [&] {
      index_t const w = random_.chance(0.5) ? 8 * between(1, widest / 8) : between(1, widest);
      return random_.chance(0.5) ? (w + 3) / 4 : w;
    };
    n.width = width(), n.value_width = width(), n.gate_width = width();
    while (n.batch * n.heads * (n.queries + 2) * (n.keys + 2) * (n.width + n.value_width + 16) > 2'000'000) {
      index_t* const longest[] = {&n.queries, &n.keys, n.width > n.value_width ? &n.width : &n.value_width};
      index_t& x = *longest[between(0, 2)];
      x = x > 8 ? x - x / 4 : x;
      if (n.queries <= 8 && n.keys <= 8) break;
    }
    n.offset = random_.chance(0.3) ? std::optional<index_t>() : between(-5, n.keys);
    n.rows = random_.pick({rows_in_memory::dense, rows_in_memory::dense, rows_in_memory::apart, rows_in_memory::odd,
                           rows_in_memory::heads_together});
    n.seed = unsigned(random_.bits());
    return n;
  }
  drawn_interval interval(gradient_extents const& n) {
    return {drawn_interval::kind(between(0, 5)),
            between(1, 90),
            {between(0, n.keys), between(0, n.keys)},
            std::uint32_t(random_.bits())};
  }
  /// Keys of every row, as a table and, at random, as hulls.
  mask::runtime listed(gradient_extents const& n) {
    table_.clear(), hulls_.clear();
    index_t const heads = random_.chance(0.5) ? 1 : n.heads, step = between(1, 70);
    double const density = random_.pick({0.02, 0.5, 0.98});
    bool const blocks = random_.chance(0.5);
    for (index_t h = 0; h < heads; ++h)
      for (index_t i = 0; i < n.queries; ++i) {
        index_t const first = between(0, n.keys), last = between(first, n.keys);
        hulls_.push_back(random_.chance(0.5) ? key_interval{0, n.keys} : key_interval{first, last});
        for (index_t j = 0; j < n.keys; ++j)
          table_.push_back(blocks ? (i / step + j / step) % 2 == 0 : random_.chance(density));
      }
    mask::runtime m;
    if (random_.chance(0.5)) m.hulls = hulls_.data(), m.hull_shape = {1, heads, n.queries, 1};
    if (m.hulls == nullptr || random_.chance(0.7))
      m.visible = table_.data(), m.visible_shape = {1, heads, n.queries, n.keys};
    return m;
  }
  mask::predicate<drawn_pairs> pairs() {
    return mask::predicate<drawn_pairs>(
        drawn_pairs{drawn_pairs::kind(between(0, 2)), between(1, 9), std::uint32_t(random_.bits())});
  }
  float const* numbers(std::size_t count, float least) {
    table_numbers_.assign(count, 0);
    for (float& x : table_numbers_) x = float(random_.uniform(least, 1));
    return table_numbers_.data();
  }
  stored_view angles(gradient_extents const& n) {
    index_t const pairs = between(1, n.width / 2), rows = n.keys + n.queries + 8;
    table_numbers_.clear();
    for (index_t row = 0; row < rows; ++row)
      for (index_t r = 0; r < 2 * pairs; ++r) {
        double const angle = double(row) * std::pow(100.0, -double(r % pairs) / double(pairs));
        table_numbers_.push_back(float(r < pairs ? std::cos(angle) : std::sin(angle)));
      }
    return tensor<float const>(table_numbers_.data(), {1, 1, rows, 2 * pairs});
  }

  template <class E, int... Width, class Op>
  void check(char const* name, Op const& op, gradient_extents const& n, double loose = 1) {
    ++problems;
    char const* doing = "";
    std::string wrong;
    gradient_problem<Op, E> p(op, n);
    try {
      // Of cotangents that are not given, the reference forms no product with NaN.
      p.asked = {random_.chance(0.9), random_.chance(0.7), random_.chance(0.7),
                 random_.chance(0.6) ? ~0u : unsigned(random_.bits()), random_.chance(0.7)};
      int const spoilt = random_.chance(0.3) && p.asked.by_out ? int(between(0, 3)) : -1;
      // The bound does not know that prepared queries and keys are rounded: an error of the logits, in proportion. And
      // masses that floats do not have, but doubles, are 0 beside a NaN in v or dO.
      double const steep = loose > 1 || spoilt >= 2 ? 1 : random_.pick({1, 1, 4, 16}),
                   by = std::ldexp(1, int(between(0, 3) == 0 ? between(-14, 8) : 0));
      for (E& x : p.numbers(field::q)) x = E(float(steep) * float(x));
      for (E& x : p.by_out()) x = E(float(by) * float(x));
      if (spoilt >= 0) spoil(p, n, spoilt, doing);
      auto const got = p.template on_host<exec_cuda::widths<Width...>>();
      wrong = p.beyond_bound(got, loose);
    } catch (std::exception const& e) {
      wrong = e.what();
    }
    if (p.worst / loose > worst) worst = p.worst / loose, where = attune::detail::text(name, ", seed ", seed_);
    failures += wrong.empty() ? 0 : 1;
    if (wrong.empty()) return;
    std::printf("FAIL  %s, seed %llu, %s%s B%d H%d/%d/%d L%dx%d D%d/%d/%d offset %d rows %d: %s\n", name,
                static_cast<unsigned long long>(seed_), std::is_same_v<E, bfloat16> ? "bf16" : "fp16", doing,
                int(n.batch), int(n.heads), int(n.key_heads), int(n.value_heads), int(n.queries), int(n.keys),
                int(n.width), int(n.value_width), int(n.gate_width), int(n.offset.value_or(-99)), int(n.rows),
                wrong.c_str());
  }

 private:
  template <class Problem>
  void spoil(Problem& p, gradient_extents const& n, int which, char const*& doing) {
    index_t const positions = which == 0 || which == 3 ? n.queries : n.keys;
    if (positions == 0) return;
    index_t const row = between(0, positions - 1);
    if (which == 3) {
      doing = ", NaN in dO";
      std::size_t const at = std::size_t(row * n.value_width);
      p.by_out()[at] = Problem::none();
      return;
    }
    field const f = which == 0 ? field::q : which == 1 ? field::k : field::v;
    doing = which == 0 ? ", NaN in q" : which == 1 ? ", NaN in k" : ", NaN in v";
    if (!p.numbers(f).empty()) p.spoil(f, row);
  }

  std::uint64_t seed_;
  rng random_;
  std::vector<unsigned char> table_;
  std::vector<key_interval> hulls_;
  std::vector<float> table_numbers_;
};

/// With rows of at most `widest` features.
gradient_extents at_most(gradient_extents n, index_t widest) {
  for (index_t* x : {&n.width, &n.value_width, &n.gate_width}) *x = std::min(*x, widest);
  return n;
}

/// One problem of an operator of the group. Group 0 has an archetype of each mechanism; it compiles in the quick tier.
template <int Group>
void draw(fuzz& x) {
  gradient_extents n = x.extents(Group == 0 ? 64 : 128);
  int const which = int(x.between(0, 4));
  if constexpr (Group == 0) {
    if (which == 0) x.check<bfloat16, 64>("softmax, lists", softmax_attention(x.listed(n)), n);
    if (which == 1)
      x.check<bfloat16, 64>("principled",
                            principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, x.interval(n)), n);
    if (which == 2)
      x.check<float16, 64>("key bias, sink",
                           attention(kernel::dot_product{} + kernel::key_bias{}, normalizer::sink{0.5}, x.interval(n)),
                           n);
    if (which == 3) x.check<float16, 64>("sigmoid, pairs", sigmoid_attention(parameter(-3.0), x.pairs()), n);
    if (which == 4) x.check<bfloat16, 64>("affine-scaled", affine_scaled_attention(0.8, 0.9, x.interval(n)), n);
  } else if constexpr (Group == 1) {
    if (which == 0) x.check<bfloat16, 64, 128>("softmax", softmax_attention(x.interval(n)), n);
    if (which == 1) x.check<float16, 64, 128>("softmax, lists", softmax_attention(x.listed(n)), n);
    if (which == 2) x.check<bfloat16, 128>("softmax, pairs", softmax_attention(x.pairs()), n);
    if (which == 3) x.check<bfloat16, 64, 128>("softcap", softcap_attention(4, x.interval(n)), n);
    if (which == 4) x.check<bfloat16, 128>("off by one", off_by_one_attention(x.interval(n)), n);
  } else if constexpr (Group == 2) {
    principled_parameters const how{.alpha = -1.0, .beta = 0.2, .gamma = 0.3};
    if (which == 0) x.check<float16, 64, 128>("principled", principled_attention(how, x.interval(n)), n);
    if (which == 1) x.check<bfloat16, 128>("principled, lists", principled_attention(how, x.listed(n)), n);
    if (which == 2) x.check<bfloat16, 128>("principled, pairs", principled_attention(how, x.pairs()), n);
    if (which == 3) x.check<bfloat16, 128>("two-sided gate", two_sided_attention(0.3, x.interval(n)), n);
    if (which == 4)
      x.check<bfloat16, 128>("grounded", attention(kernel::dot_product{}, normalizer::grounded{0.2}, x.interval(n)), n);
  } else if constexpr (Group == 3) {
    if (which == 0) x.check<bfloat16, 64, 128>("sigmoid", sigmoid_attention(parameter(-3.0), x.interval(n)), n);
    if (which == 1) x.check<float16, 128>("affine-scaled, lists", affine_scaled_attention(0.8, 0.9, x.listed(n)), n);
    if (which == 2)
      x.check<bfloat16, 128>("key bias, pairs", attention(kernel::dot_product{} + kernel::key_bias{}, x.pairs()), n);
    if (which == 3) {  // of one key, logits have the factor 0
      n.keys = std::max<index_t>(n.keys, 2);
      x.check<bfloat16, 128>("ssmax", ssmax_attention({}), n);
    }
    if (which == 4) x.check<float16, 128>("ALiBi", alibi_attention(0.05, x.interval(n)), n);
  } else if constexpr (Group == 4) {
    // Prepared operands: pairs of features are turned, queries are multiplied by numbers of a table.
    n.width += n.width % 2;
    n.offset = std::max<index_t>(n.offset.value_or(0), 0);  // the angles begin at position 0
    if (which <= 2) {
      auto const turned = [&](rotary_layout layout, rotary_keys keys) {
        return kernel::rotary{.angles = x.angles(n), .layout = layout, .keys = keys};
      };
      auto const layout = x.random().pick({rotary_layout::half, rotary_layout::interleaved});
      auto const keys = x.random().pick({rotary_keys::plain, rotary_keys::turned});
      if (which == 0)
        x.check<bfloat16, 64, 128>("rotary", attention(turned(layout, keys), x.interval(n)), n, 4);
      else
        x.check<float16, 128>("rotary, off by one",
                              attention(turned(layout, keys), normalizer::off_by_one{}, x.interval(n)), n, 4);
    }
    tensor<float const> const metric(x.numbers(std::size_t(n.width), 0.1f), {1, 1, 1, n.width});
    if (which == 3) x.check<bfloat16, 128>("bilinear", bilinear_attention(metric, x.interval(n)), n, 4);
    if (which == 4) x.check<bfloat16, 128>("bilinear, lists", bilinear_attention(metric, x.listed(n)), n, 4);
  } else if constexpr (Group == 5) {
    if (which == 0) x.check<bfloat16, 64>("value gate", value_gated_attention(x.interval(n)), at_most(n, 64), 2);
    if (which == 1) x.check<float16, 128>("output gate", gated_attention(x.interval(n)), n);
    if (which == 2)
      x.check<bfloat16, 128>("ground value, lists",
                             attention(kernel::dot_product{}, normalizer::valued_sink{0.5}, x.listed(n)), n);
    if (which == 3)
      x.check<bfloat16, 64>("dropout",
                            attention(kernel::dot_product{}, x.interval(n), gate::dropout{.rate = 0.2, .seed = 77}),
                            at_most(n, 64));
    if (which == 4) x.check<bfloat16, 64>("given bias", biased_attention(x.interval(n)), at_most(n, 64));
  }
}

}  // namespace
}  // namespace attune::test

int main(int count, char** arguments) {
  using namespace attune::test;
  bool const again = std::getenv("ATTUNE_SEED") != nullptr;
  int const wanted = again ? 1 : count > 1 ? std::atoi(arguments[1]) : 50;
  std::uint64_t const fixed = 20261129, fresh = fresh_seed();
  std::printf("%d problems: half from seed %llu, half from seed %llu\n", wanted, static_cast<unsigned long long>(fixed),
              static_cast<unsigned long long>(fresh));
  int problems = 0, failures = 0;
  double worst = 0;
  std::string where = "none";
  for (int n = 0; n < wanted; ++n) {
    fuzz x((again || n % 2 == 1 ? fresh : fixed) + std::uint64_t(n));
    draw<ATTUNE_GROUP>(x);
    problems += x.problems, failures += x.failures;
    if (x.worst > worst) worst = x.worst, where = x.where;
    std::fflush(stdout);
  }
  std::printf("%s  %d problems, %d failures, largest share of a bound %.2f (%s)\n",
              failures == 0 && problems == wanted ? "PASS" : "FAIL", problems, failures, worst, where.c_str());
  return failures != 0 || problems != wanted;
}
