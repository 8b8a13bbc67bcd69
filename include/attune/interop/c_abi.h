/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The attune authors
 *
 * Operators behind C functions, for other languages. A shared library made with c_operator.hpp exports one function,
 * attune_library_1(), and nothing else. The number is ATTUNE_ABI_VERSION: whoever loads a library with another number
 * finds no function of this name.
 *
 * Functions return 0, or a status and a text of what was wrong. They write nothing to outputs if arguments are wrong.
 * After a change run scripts/abi_layout: the Python package reads the layout from a file that the script makes.
 */
#ifndef ATTUNE_INTEROP_C_ABI_H
#define ATTUNE_INTEROP_C_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTUNE_ABI_VERSION 1

/** The element type of a tensor. */
enum attune_type {
  attune_float32 = 0,
  attune_float64 = 1,
  attune_bfloat16 = 2,
  attune_float16 = 3,
  attune_int64 = 4,         /**< of masks and offsets */
  attune_bytes = 5,         /**< of masks: 0 or not */
  attune_int32 = 6,         /**< of page tables */
  attune_float8_e4m3fn = 7, /**< of keys and values in attune_decode */
  attune_float8_e5m2 = 8    /**< the same */
};

/** The result of a function. */
enum attune_status {
  attune_done = 0,
  attune_refused = 1, /**< an argument is wrong: the text names it, its value and the expectation */
  attune_out_of_memory = 2,
  attune_failed = 3 /**< anything else; the text says what */
};

/** A strided view with axes (batch, head, position, feature). given = 0: absent, and nothing else counts. */
typedef struct attune_tensor {
  void* data;
  int64_t extents[4];
  int64_t strides[4]; /**< in elements; 0 shares an axis */
  int32_t type;       /**< attune_type */
  int32_t given;
} attune_tensor;

/** A parameter: 0 keeps its default, 1 is a number, 2 a tensor (1|B, 1|H, 1|Lq, 1) of float32 or float64. */
typedef struct attune_parameter {
  attune_tensor tensor;
  double number;
  int64_t how;
} attune_parameter;

/** A number of a policy that is no parameter, by its name. */
typedef struct attune_constant {
  char const* name;
  double value;
} attune_constant;

/** The kind of a mask node, and its members. Widths of -1 have no limit. */
enum attune_mask_kind {
  attune_mask_none = 0,
  attune_mask_causal = 1,
  attune_mask_band = 2,            /**< a keys before, b after the position of the query */
  attune_mask_band_from_start = 3, /**< the same, counted from the first query and the first key */
  attune_mask_prefix = 4,          /**< a: length */
  attune_mask_sink_window = 5,     /**< a: sinks, b: width */
  attune_mask_padding = 6,         /**< x: lengths, (B) of int64 */
  attune_mask_documents = 7,       /**< x: ids of queries, (1|B, Lq); y: of keys, (1|B, Lk); int64 */
  attune_mask_ragged = 8,          /**< x, y: cu_seqlens of queries and keys, int64 */
  attune_mask_block_sparse = 9,    /**< x: bytes (1|H, query blocks, key blocks); a, b: sizes of a block */
  attune_mask_visible = 10,        /**< x: bytes (1|B, 1|H, 1|Lq, 1|Lk) */
  attune_mask_ragged_within = 11,  /**< as ragged; a: an earlier node without arrays, for each sequence */
  attune_mask_both = 100,          /**< a & b: two earlier nodes */
  attune_mask_either = 101         /**< a | b: two earlier nodes */
};

/** A node of a mask expression. Arrays of ids, lengths and blocks are dense. The last node is the mask. */
typedef struct attune_mask_node {
  attune_tensor x, y;
  int64_t a, b, kind;
} attune_mask_node;

/** How calls of bf16 multiply: attune_products. Other calls ignore it. */
enum attune_products {
  attune_products_of_machine = 0, /**< bf16, with sums in float, where library and processor have instructions for it */
  attune_products_float = 1       /**< float: the same bits on machines with the same vectors */
};

/** The arguments that all functions share. The description of the operator gives numbers and order of the arrays. */
typedef struct attune_call {
  attune_tensor const* fields; /**< inputs */
  attune_parameter const* parameters;
  attune_tensor const* tables; /**< then arrays, which have no gradient */
  attune_constant const* constants;
  attune_mask_node const* mask;
  attune_tensor offsets;    /**< int64, one per batch element; absent: `offset` */
  attune_tensor outputs[4]; /**< out, lse, ground_weight, threshold; absent: not computed */
  int64_t constant_count, mask_count;
  int64_t offset; /**< the position of query 0, if has_offset */
  int32_t has_offset;
  int32_t type;     /**< attune_type of out and of all fields, except for 8-bit keys and values */
  int32_t threads;  /**< 0: one per processor */
  int32_t products; /**< attune_products, for calls of bf16 */
} attune_call;

/** Gradients of <cotangents, outputs>. Absent gradients are not computed. */
typedef struct attune_gradients {
  attune_tensor cotangents[3];     /**< by out, lse, ground_weight; absent: 0 */
  attune_tensor const* fields;     /**< gradients by the inputs, of the type of the call */
  attune_tensor const* parameters; /**< of float64 for calls of float64, else float32 */
  attune_tensor const* tables;     /**< the same; none of arrays */
} attune_gradients;

/** Memory for a text of at most `room` bytes. */
typedef struct attune_text {
  char* at;
  int64_t room;
} attune_text;

/** An operator. */
typedef struct attune_operator {
  char const* name;
  /** JSON: fields, parameters, tables, constants, outputs, types, decodes (whether attune_decode can have it). */
  char const* description;
  /** Writes the number of saved numbers of a call. */
  int (*saved_size)(attune_call const*, int64_t* count, attune_text error);
  /** Writes the outputs, and the saved numbers (float64 for calls of float64, else float32) if `saved` is not null. */
  int (*forward)(attune_call const*, void* saved, int64_t count, attune_text error);
  /** Writes the gradients from the saved numbers; from a forward pass of its own if `saved` is null. */
  int (*vjp)(attune_call const*, void const* saved, int64_t count, attune_gradients const*, attune_text error);
} attune_operator;

/** Everything that a shared library offers. */
typedef struct attune_library {
  int32_t version; /**< ATTUNE_ABI_VERSION */
  int32_t count;   /**< of operators */
  attune_operator const* const* operators;
  char const* built_for; /**< JSON: instruction set, compiler, version of attune */
  void const* own_pool;  /**< attune::pool_functions of this library's threads */
  /** Runs later calls on the pool of another library: its own_pool; null: on the library's own pool. */
  int (*use_pool)(void const* own_pool, attune_text error);
} attune_library;

/** A further library for an operator: one function on its calls. A library made with c_statistics.hpp exports
 * attune_statistics_1() and nothing else, and so on. */
typedef struct attune_companion {
  int32_t version;       /**< ATTUNE_ABI_VERSION */
  int32_t reserved;      /**< 0 */
  char const* built_for; /**< as in attune_library */
  void const* own_pool;
  int (*use_pool)(void const* own_pool, attune_text error);
  /** Runs on a call. `more` is the structure that the library's name says: attune_statistics, attune_decode. */
  int (*run)(attune_call const*, void const* more, attune_text error);
} attune_companion;

/** Statistics of the rows and keys of a call: exec/statistics.hpp. Numbers are float64 for calls of float64, else
 * float32; counts are int64. Absent: not computed. The outputs of the call are not written. */
typedef struct attune_statistics {
  attune_tensor highest_logit, mean_logit, highest_weight, mass, first_key, ground_weight; /**< (B, H, Lq, 1) */
  attune_tensor entropy, effective_keys;                                                   /**< (B, H, Lq, 1) */
  attune_tensor scored, above;                                                             /**< (B, H, Lq, 1) */
  attune_tensor columns;                                                                   /**< (B, H, Lk, 1) */
  double threshold;                                                                        /**< of `above` */
} attune_statistics;

/** A call with few queries against a long cache. Writes the outputs of the call; there are no saved numbers. */
typedef struct attune_decode {
  /** Page numbers, (1, 1, B, pages of a sequence) of int32, dense. Inputs with a row per key are then (pages, heads,
   * keys of a page, width). Key j of sequence b is row j mod size of page pages(b, j / size). A number that is no page
   * stands for keys that no query sees. Absent: the inputs are as in every call. */
  attune_tensor pages;
  /** Factors of 8-bit keys and values: float32, (1, 1 or heads, 1, 1). Absent: 1. */
  attune_tensor k_scale, v_scale;
} attune_decode;

/** What attune_mpi_1() does. All ranks do the same in the same order, but for `match` and `forget`. */
enum attune_ranks_step {
  attune_ranks_match = 0,   /**< refuses if `library` is another MPI than that of this library; without a call */
  attune_ranks_join = 1,    /**< makes *ranks, a duplicate of `communicator`; without a call */
  attune_ranks_leave = 2,   /**< frees *ranks; without a call */
  attune_ranks_forward = 3, /**< writes the outputs of the call */
  attune_ranks_save = 4,    /**< the same, and makes *rows for vjp */
  attune_ranks_vjp = 5,     /**< writes `gradients` from *rows */
  attune_ranks_forget = 6   /**< frees *rows; without a call */
};

/** Which rank holds which positions. counts = null: in the order of the ranks, as many as each rank passes. */
typedef struct attune_sharding {
  int64_t const* counts; /**< of intervals, one for each rank */
  int64_t const* ends;   /**< first and last + 1 of each interval, rank after rank */
  int64_t positions;     /**< of all ranks */
  int64_t ranks;
} attune_sharding;

/** A call over the ranks of an MPI communicator: exec/mpi/. Tensors have the part of this rank; mask, offset and
 * parameters are those of the whole problem. The call is of float32 or float64. */
typedef struct attune_ranks {
  int32_t step;         /**< attune_ranks_step */
  int32_t plan;         /**< 0: chosen, 1: ring, 2: states */
  int32_t communicator; /**< as MPI_Comm_c2f() returns it */
  int32_t reserved;     /**< 0 */
  char const* library;  /**< MPI_Get_library_version() of the program that made the communicator */
  attune_sharding queries, keys;
  void** ranks;
  void** rows;
  attune_gradients const* gradients;
} attune_ranks;

/** What the reference executor computes of a call: exec/reference/forward.hpp. float64; `visible` has bytes. Absent: not
 * written. The outputs of the call are not written. attune_reference_1() computes in float64, attune_reference50_1() in
 * 50 decimal digits. attune_reference_vjp_1() and attune_reference50_vjp_1() take attune_gradients, where cotangents are
 * float32 or float64, and gradients float64. The inputs of a call are float32 or float64; each is read exactly. */
typedef struct attune_reference {
  attune_tensor out, lse, ground_weight, threshold; /**< (B, H, Lq, Dv), and (B, H, Lq, 1) */
  attune_tensor scores, logits, weights, visible;   /**< (B, H, Lq, Lk) */
} attune_reference;

/** What attune_cuda_1() and attune_cuda_vjp_1() do with a call. */
enum attune_cuda_step {
  attune_cuda_run = 0,     /**< the call */
  attune_cuda_measure = 1, /**< writes `needed`, and computes nothing */
  attune_cuda_prepare = 2  /**< loads the kernels of the call, and launches nothing */
};

/** A call on a CUDA device: exec/cuda/executor.hpp. attune_cuda_1() runs forward() or, if `saved` is given,
 * forward_and_save(); attune_cuda_vjp_1() runs vjp(). Tensors, parameters and tables that are arrays, and the arrays of
 * masks, lie on the device. A library is for one element type, one width of tiles and one form of masks. The call
 * returns before it is done. */
typedef struct attune_cuda {
  void* stream;                      /**< cudaStream_t; null: the default stream */
  void* workspace;                   /**< memory of the device, 256-byte aligned; null: taken from the stream */
  int64_t bytes;                     /**< of workspace */
  void* saved;                       /**< rows of float32 on the device; null: none are written */
  int64_t saved_count;               /**< how many numbers */
  attune_gradients const* gradients; /**< of vjp(), on the device */
  int64_t* needed;                   /**< of `measure`: bytes of workspace, and saved numbers */
  int64_t step;                      /**< attune_cuda_step */
} attune_cuda;

/** What a kernel computed from a call, to be judged: testing/verdict.hpp, testing/gradient_verdict.hpp. Numbers are
 * float64. attune_verdict_1() judges `outputs`, attune_verdict_gradients_1() `gradients` of `cotangents`. */
typedef struct attune_verdict {
  attune_tensor outputs[3];        /**< out, lse, ground_weight; absent: not judged */
  attune_tensor cotangents[3];     /**< by out, lse, ground_weight; absent: 0 */
  attune_tensor const* gradients;  /**< by the inputs; absent: not judged */
  attune_tensor const* parameters; /**< the same by the parameters */
  attune_tensor const* tables;     /**< the same by the tables */
  char const* const* must_detect;  /**< names of defects that must not go unnoticed */
  double const* sizes;             /**< how large these are */
  int64_t must_detect_count;       /**< of names and sizes */
  int32_t stored;                  /**< attune_type that the kernel stores */
  int32_t weights;                 /**< attune_type of its probabilities; -1: from `stored` */
  int32_t arithmetic;              /**< attune_type of everything else; -1: from `stored` */
  int32_t rows;                    /**< attune_type of lse and ground weight */
  int32_t numbers;                 /**< attune_type of the gradients by parameters and tables */
  int32_t lse_of_base_two;         /**< 0: outputs[1] has natural logarithms; 1: of base 2 */
  void (*receive)(char const* at); /**< is called once, with the report as JSON */
} attune_verdict;

/** Inputs with power: testing/probes.hpp, also of contracts that kernels need not promise. Fields of the call are not
    read. */
typedef struct attune_probes {
  int64_t batch, heads, key_heads, value_heads, queries, keys, axes;
  int64_t width, value_width, gate_width, position_width; /**< but for `width`, 0: as `width` */
  int64_t seed;
  /** Is called for each tensor of each probe, the cotangents "dout", "dlse", "dground_weight" included. float64. */
  void (*receive)(char const* probe, char const* reveals, char const* name, attune_tensor const*);
} attune_probes;

#ifdef __cplusplus
}
#endif

#endif
