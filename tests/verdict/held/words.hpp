// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   {"cap_ignored", "common mistake", "cap/causal", words::cap, [](forward_kernel& k) { ... }}
//
// A row of the held-out grammar, and the words that an engineer would accept as the name of a cause: regular
// expressions
// on the lower-case text of a report. They were written before anybody looked at reports on these defects.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace attune::test::held {

/// Shapes of a row: with as many queries as keys and with fewer, or one of them.
enum class shapes { both, equal, unequal };
/// Formats of a row: fp32 and bf16 in turns, sixteen bits, fp32, or fp16.
enum class formats { turns, sixteen, wide, half };

template <class Kernel>
struct row {
  using change = std::function<void(Kernel&)>;
  using chosen = std::function<bool(Kernel const&, int)>;
  std::string id, source, setting;
  std::string names;     ///< accepted names
  change apply;          ///< puts the defect in
  std::string measures;  ///< accepted measurements
  chosen keys;           ///< the keys that are treated wrongly, if they are few
  shapes of;
  formats in;
  bool pair = false;  ///< two defects at once

  row(std::string id_, std::string source_, std::string setting_, std::string names_, change apply_,
      std::string measures_ = "", chosen keys_ = nullptr, shapes of_ = shapes::both, formats in_ = formats::turns)
      : id(id_), source(source_), setting(setting_), names(names_), apply(apply_), measures(measures_), keys(keys_),
        of(of_), in(in_) {}
};

namespace words {

using text = std::string;

/// Two sets of words.
inline text either(text const& a, text const& b) { return a + "|" + b; }

// Of masks.
inline constexpr char const *const
    edge =
        "mask.*(shift|offset|off by|moved|displaced|edge|bound|one)|(shift|offset|off by|edge|bound).*mask|see up to "
        "key"
        "|keys? too (many|few)|one key (more|less|fewer|too)|one more key|diagonal|next "
        "key|(causal|future).*(shift|one|off|edge)",
    *const future =
        "future|causal.*(ignored|missing|not applied|absent|dropped|leak)|(no|without|ignored?|missing).*(causal|mask)"
        "|mask.*(ignored|missing|not applied|absent)|above the diagonal|sees? (all|every) key|invisible keys",
    *const align =
        "align|top.?left|bottom.?right|offset|starts? of|from (the )?start|mask.*shift|shift.*mask|see up to key",
    *const tile_edge =
        "mask.*(round|tile|block|multiple)|(round|tile|block|multiple).*(mask|visib|window|causal|length|see|bound)"
        "|see up to.*(tile|multiple|block|round)|whole (tile|block)",
    *const window =
        "window|band|left (edge|bound|limit|side)|before the query|oldest|too (many|few) keys|see (from|down to) "
        "key|sliding",
    *const right_window =
        "window|band|right (edge|bound|limit|side)|after the query|see up to key|too (many|few) "
        "keys|look.?ahead|future",
    *const padding = "padding|padded|length|valid keys|key.*(beyond|after|past) the (length|end)|seqlen",
    *const documents = "document|sequence|cu_seqlens|packed|segment|ragged|boundar", *const prefix = "prefix",
    *const chunk = "chunk|document|segment|block.*mask|mask.*block",
    *const first_keys =
        "first (\\d+ )?keys?|keys? 0|sink.*(token|key|window)|keys? (missing|ignored|dropped|not seen)|missing "
        "keys?|initial keys",
    *const extra_keys = "invisible|masked|hidden|-inf|finite|leak|future|mask.*(ignored|cap|soft|finite|not)|see.*keys";
// Of statistics.
inline constexpr char const *const
    rescale =
        "rescal|running max|stale max|maximum|correction|alpha|accumulator.*(scal|correct)|online softmax|earlier tiles"
        "|tiles? before|weights of.*tile|new max|keys.*(too heavy|counted|overweight|weight)|old max",
    *const sums =
        "sum of (the )?weights|denominator|normali[sz]|softmax sum|row "
        "?sum|divi[ds]|sum.*(missing|lacks|off|without|too)"
        "|weights.*sum",
    *const tail_sum =
        "tail|pad(ded|ding)|zero keys?|beyond|out of (range|bounds)|extra keys|sum of (the )?weights|denominator|past "
        "the (last|end)"
        "|normali[sz]|off.by.one|ghost|phantom|keys of score 0|sink",
    *const merge = "merg|split|combin|partial|lse.*(split|part|weight)|parts of keys|chunk",
    *const base2 = "base.?2|log2|exp2|ln ?2|log ?\\(?2|1\\.44|0\\.693|base.?e|natural",
    *const lse_alone = "lse|log.?sum.?exp",
    *const lost_keys =
        "keys? (missing|lost|ignored|dropped|skipped|left out|not "
        "(seen|read|counted))|(missing|lost|ignored|dropped|skipped)"
        ".*keys?|without keys?|keys?.*weight.*0|tile.*(missing|lost|skipped|dropped|left "
        "out)|(missing|skipped|lost).*tile",
    *const doubled = "twice|double|counted (two|2|more)|duplicat|repeat|again|two times|2 times|times 2",
    *const epsilon =
        "eps|sum of (the )?weights|denominator|normali[sz]|divi[ds]|sink|off.by.one|constant.*sum|added to the sum",
    *const other_row =
        "(another|other|neighbou?r|previous|next|wrong) "
        "(row|query|queries)|row.*(another|swapp|exchang|permut|neighbou?r|of (row|query))"
        "|quer(y|ies).*(swapp|exchang|permut|neighbou?r|shift|another)|rows? (of|from)";
// Of scores.
inline constexpr char const
    *const scale = "scale|sqrt|1/.?d\\b|tempera|inverse.?sqrt|scores? times|logits? times",
           *const cap = "cap\\b|softcap|tanh|capp|clip|saturat", *const sink = "sink|ground",
           *const alibi = "alibi|slope|distance|position bias|position", *const bias = "bias",
           *const other_head =
               "(another|other|neighbou?r|next|previous|wrong|first|shared|each) (query |key |value |kv |k |v "
               ")?heads?|heads?.*(swapp|exchang|permut|shift"
               "|another|neighbou?r|wrong|reversed|of head|mapp|mod)|head (h|0|\\d)|per head|group|gqa|h %|h mod";
// Of layout.
inline constexpr char const *const
    lanes =
        "features?.*(permut|swapp|exchang|order|rotat|shift|interleav|turn|revers|transpos|lane)|lanes?|permut|swizzl|"
        "interleav|transpos"
        "|(swapp|exchang|shift|rotat|revers).*(features?|columns?)|columns?.*(swapp|permut|shift)",
    *const key_order =
        "keys?.*(permut|swapp|exchang|order|shift|another|neighbou?r|next|wrong|revers|mispair)|values?.*(permut|swapp|"
        "exchang|order|shift"
        "|another|other|neighbou?r|next|wrong|revers|turn|mispair)|rows? of "
        "v|v.*(rows?|keys?).*(shift|swap)|positions?.*(shift|swap)"
        "|k and v",
    *const batch = "batch",
    *const layout =
        "transpos|layout|strid|\\(b, ?l, ?h|head and (position|query)|position and head|axes|bshd|bhsd|permut|reshap",
    *const groups =
        "gqa|group|mapp|h mod|h %|mod hk|interleav|key heads?|value heads?|kv "
        "heads?|grouped|repeat|(another|other|wrong) head|tile\\b.*head",
    *const tail_width = "features?|head.?dim|width|columns?|last \\d+ of d|tail of d|dot product",
    *const unwritten =
        "zero|not written|unwritten|missing|empty|stale|not stored|uninitiali[sz]ed|is 0\\b|never (stored|written)",
    *const rotary = "rope|rotar|rotat|turn|angle|position",
    *const swapped_kv =
        "k and v|keys? (and|as|for) values?|values? (and|as|for) keys?|v.*(is|=|from) k\\b|swapp|exchang|k in place of "
        "v",
    *const pages =
        "page|block (table|of the cache)|cache|keys? "
        "(missing|swapped|exchanged|twice|permuted|shifted|ignored)|block_table|stale",
    *const stale =
        "stale|old|another|other|previous|wrong (tile|page|data|keys)|not (updated|synchroni[sz]ed)|race|reused|tile",
    *const race = "race|tile|twice|missing|lost|stale|sync|keys? \\d|counted|barrier|block of";
// Of precision.
inline constexpr char const *const
    narrow = "16 bits|bf16|fp16|half|rounded|rounding|precision|truncat|accumulat|narrow",
    *const narrow_weights = "16 bits|bf16|fp16|fp8|half|rounded|rounding|precision|truncat|probabilit|weights|narrow",
    *const narrow_scores =
        "16 bits|bf16|fp16|fp8|tf32|half|rounded|rounding|precision|truncat|scores|logits|q k|dot product|narrow",
    *const truncated = "truncat|toward(s)? zero|\\bout were|factor|bias(ed)?|rounding",
    *const exponential =
        "exp\\b|exponential|polynomial|exp2|e\\^|range|approximat|flush|small weights|weights (below|under)",
    *const quantised = "scale|quanti[sz]|dequant|descale|fp8|int8|k_scale|v_scale|factor|\\bout were",
    *const factor = "scale|factor|\\bout were|d[qkv] were|times|twice|half|descale|quanti",
    *const empty =
        "no (visible )?keys?|empty|degenerate|without (visible )?keys?|see(s)? (no|nothing)|all masked|fully masked",
    *const not_numbers = "nan|not a number|\\binf|infinit|not finite",
    *const zeros = "zero|\\bis 0|missing|not written|unwritten|-100 %|\\bno output|empty";
// Of gradients.
inline constexpr char const
    *const delta = "delta|row.?sum|do ?\\*|dout.*out|d_?psum|d\\(p\\)|ds\\b|softmax.*(gradient|backward|jacobian)",
           *const dp = "\\bdp\\b|dout.*v\\b|dp\\b|ds\\b|d(q|k)\\b.*(scale|factor|were|times)",
           *const group_sum =
               "group|gqa|one head|first head|last head|heads? of (each|a|the) group|sum over heads|averag|mean "
               "over|mapp|h mod|h %",
           *const dropout = "dropout|1 ?/ ?\\(1 ?- ?|factor|scale|d[qkv] were|dv\\b.*were",
           *const atomics = "16 bits|bf16|fp16|half|rounded|rounding|precision|truncat|accumulat|atomic|narrow",
           *const lse_backward = "lse|log.?sum.?exp|statistic|p = e|probabilit|weights", *const dbias = "bias";

}  // namespace words

}  // namespace attune::test::held
