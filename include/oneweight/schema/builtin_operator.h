// The operators of the TFLite schema and their official names.
#ifndef ONEWEIGHT_SCHEMA_BUILTIN_OPERATOR_H
#define ONEWEIGHT_SCHEMA_BUILTIN_OPERATOR_H

#include <cstdint>

#include "oneweight/base/config.h"

namespace oneweight {
inline namespace v1 {

// Numbers are those of BuiltinOperator in the TFLite schema; names are the schema's in lower case, with
// an underscore after the two that are C++ keywords (if_, while_).
// clang-format off
enum class BuiltinOperator : int32_t {
  add = 0, average_pool_2d = 1, concatenation = 2, conv_2d = 3, depthwise_conv_2d = 4, depth_to_space = 5,
  dequantize = 6, embedding_lookup = 7, floor = 8, fully_connected = 9, hashtable_lookup = 10,
  l2_normalization = 11, l2_pool_2d = 12, local_response_normalization = 13, logistic = 14,
  lsh_projection = 15, lstm = 16, max_pool_2d = 17, mul = 18, relu = 19, relu_n1_to_1 = 20, relu6 = 21,
  reshape = 22, resize_bilinear = 23, rnn = 24, softmax = 25, space_to_depth = 26, svdf = 27, tanh = 28,
  concat_embeddings = 29, skip_gram = 30, call = 31, custom = 32, embedding_lookup_sparse = 33, pad = 34,
  unidirectional_sequence_rnn = 35, gather = 36, batch_to_space_nd = 37, space_to_batch_nd = 38,
  transpose = 39, mean = 40, sub = 41, div = 42, squeeze = 43, unidirectional_sequence_lstm = 44,
  strided_slice = 45, bidirectional_sequence_rnn = 46, exp = 47, topk_v2 = 48, split = 49,
  log_softmax = 50, delegate = 51, bidirectional_sequence_lstm = 52, cast = 53, prelu = 54, maximum = 55,
  arg_max = 56, minimum = 57, less = 58, neg = 59, padv2 = 60, greater = 61, greater_equal = 62,
  less_equal = 63, select = 64, slice = 65, sin = 66, transpose_conv = 67, sparse_to_dense = 68, tile = 69,
  expand_dims = 70, equal = 71, not_equal = 72, log = 73, sum = 74, sqrt = 75, rsqrt = 76, shape = 77,
  pow = 78, arg_min = 79, fake_quant = 80, reduce_prod = 81, reduce_max = 82, pack = 83, logical_or = 84,
  one_hot = 85, logical_and = 86, logical_not = 87, unpack = 88, reduce_min = 89, floor_div = 90,
  reduce_any = 91, square = 92, zeros_like = 93, fill = 94, floor_mod = 95, range = 96,
  resize_nearest_neighbor = 97, leaky_relu = 98, squared_difference = 99, mirror_pad = 100, abs = 101,
  split_v = 102, unique = 103, ceil = 104, reverse_v2 = 105, add_n = 106, gather_nd = 107, cos = 108,
  where = 109, rank = 110, elu = 111, reverse_sequence = 112, matrix_diag = 113, quantize = 114,
  matrix_set_diag = 115, round = 116, hard_swish = 117, if_ = 118, while_ = 119,
  non_max_suppression_v4 = 120, non_max_suppression_v5 = 121, scatter_nd = 122, select_v2 = 123,
  densify = 124, segment_sum = 125, batch_matmul = 126, placeholder_for_greater_op_codes = 127,
  cumsum = 128, call_once = 129, broadcast_to = 130, rfft2d = 131, conv_3d = 132, imag = 133, real = 134,
  complex_abs = 135, hashtable = 136, hashtable_find = 137, hashtable_import = 138, hashtable_size = 139,
  reduce_all = 140, conv_3d_transpose = 141, var_handle = 142, read_variable = 143, assign_variable = 144,
  broadcast_args = 145, random_standard_normal = 146, bucketize = 147, random_uniform = 148,
  multinomial = 149, gelu = 150, dynamic_update_slice = 151, relu_0_to_1 = 152,
  unsorted_segment_prod = 153, unsorted_segment_max = 154, unsorted_segment_sum = 155, atan2 = 156,
  unsorted_segment_min = 157, sign = 158, bitcast = 159, bitwise_xor = 160, right_shift = 161,
  stablehlo_logistic = 162, stablehlo_add = 163, stablehlo_divide = 164, stablehlo_multiply = 165,
  stablehlo_maximum = 166, stablehlo_reshape = 167, stablehlo_clamp = 168, stablehlo_concatenate = 169,
  stablehlo_broadcast_in_dim = 170, stablehlo_convolution = 171, stablehlo_slice = 172,
  stablehlo_custom_call = 173, stablehlo_reduce = 174, stablehlo_abs = 175, stablehlo_and = 176,
  stablehlo_cosine = 177, stablehlo_exponential = 178, stablehlo_floor = 179, stablehlo_log = 180,
  stablehlo_minimum = 181, stablehlo_negate = 182, stablehlo_or = 183, stablehlo_power = 184,
  stablehlo_remainder = 185, stablehlo_rsqrt = 186, stablehlo_select = 187, stablehlo_subtract = 188,
  stablehlo_tanh = 189, stablehlo_scatter = 190, stablehlo_compare = 191, stablehlo_convert = 192,
  stablehlo_dynamic_slice = 193, stablehlo_dynamic_update_slice = 194, stablehlo_pad = 195,
  stablehlo_iota = 196, stablehlo_dot_general = 197, stablehlo_reduce_window = 198, stablehlo_sort = 199,
  stablehlo_while = 200, stablehlo_gather = 201, stablehlo_transpose = 202, dilate = 203,
  stablehlo_rng_bit_generator = 204, reduce_window = 205, stablehlo_composite = 206,
  stablehlo_shift_left = 207, stablehlo_cbrt = 208, stablehlo_case = 209,
};
// clang-format on
inline constexpr int kBuiltinOperatorCount = 210;

namespace builtin_operator_internal {
// By number.
// clang-format off
inline constexpr const char* kNames[kBuiltinOperatorCount] = {
      "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE",
      "DEQUANTIZE", "EMBEDDING_LOOKUP", "FLOOR", "FULLY_CONNECTED", "HASHTABLE_LOOKUP", "L2_NORMALIZATION",
      "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION", "LOGISTIC", "LSH_PROJECTION", "LSTM", "MAX_POOL_2D",
      "MUL", "RELU", "RELU_N1_TO_1", "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RNN", "SOFTMAX",
      "SPACE_TO_DEPTH", "SVDF", "TANH", "CONCAT_EMBEDDINGS", "SKIP_GRAM", "CALL", "CUSTOM",
      "EMBEDDING_LOOKUP_SPARSE", "PAD", "UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER", "BATCH_TO_SPACE_ND",
      "SPACE_TO_BATCH_ND", "TRANSPOSE", "MEAN", "SUB", "DIV", "SQUEEZE", "UNIDIRECTIONAL_SEQUENCE_LSTM",
      "STRIDED_SLICE", "BIDIRECTIONAL_SEQUENCE_RNN", "EXP", "TOPK_V2", "SPLIT", "LOG_SOFTMAX", "DELEGATE",
      "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM", "ARG_MAX", "MINIMUM", "LESS", "NEG",
      "PADV2", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT", "SLICE", "SIN", "TRANSPOSE_CONV",
      "SPARSE_TO_DENSE", "TILE", "EXPAND_DIMS", "EQUAL", "NOT_EQUAL", "LOG", "SUM", "SQRT", "RSQRT",
      "SHAPE", "POW", "ARG_MIN", "FAKE_QUANT", "REDUCE_PROD", "REDUCE_MAX", "PACK", "LOGICAL_OR",
      "ONE_HOT", "LOGICAL_AND", "LOGICAL_NOT", "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY", "SQUARE",
      "ZEROS_LIKE", "FILL", "FLOOR_MOD", "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU",
      "SQUARED_DIFFERENCE", "MIRROR_PAD", "ABS", "SPLIT_V", "UNIQUE", "CEIL", "REVERSE_V2", "ADD_N",
      "GATHER_ND", "COS", "WHERE", "RANK", "ELU", "REVERSE_SEQUENCE", "MATRIX_DIAG", "QUANTIZE",
      "MATRIX_SET_DIAG", "ROUND", "HARD_SWISH", "IF", "WHILE", "NON_MAX_SUPPRESSION_V4",
      "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2", "DENSIFY", "SEGMENT_SUM", "BATCH_MATMUL",
      "PLACEHOLDER_FOR_GREATER_OP_CODES", "CUMSUM", "CALL_ONCE", "BROADCAST_TO", "RFFT2D", "CONV_3D",
      "IMAG", "REAL", "COMPLEX_ABS", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
      "REDUCE_ALL", "CONV_3D_TRANSPOSE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE",
      "BROADCAST_ARGS", "RANDOM_STANDARD_NORMAL", "BUCKETIZE", "RANDOM_UNIFORM", "MULTINOMIAL", "GELU",
      "DYNAMIC_UPDATE_SLICE", "RELU_0_TO_1", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX",
      "UNSORTED_SEGMENT_SUM", "ATAN2", "UNSORTED_SEGMENT_MIN", "SIGN", "BITCAST", "BITWISE_XOR",
      "RIGHT_SHIFT", "STABLEHLO_LOGISTIC", "STABLEHLO_ADD", "STABLEHLO_DIVIDE", "STABLEHLO_MULTIPLY",
      "STABLEHLO_MAXIMUM", "STABLEHLO_RESHAPE", "STABLEHLO_CLAMP", "STABLEHLO_CONCATENATE",
      "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_CONVOLUTION", "STABLEHLO_SLICE", "STABLEHLO_CUSTOM_CALL",
      "STABLEHLO_REDUCE", "STABLEHLO_ABS", "STABLEHLO_AND", "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL",
      "STABLEHLO_FLOOR", "STABLEHLO_LOG", "STABLEHLO_MINIMUM", "STABLEHLO_NEGATE", "STABLEHLO_OR",
      "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT",
      "STABLEHLO_SUBTRACT", "STABLEHLO_TANH", "STABLEHLO_SCATTER", "STABLEHLO_COMPARE",
      "STABLEHLO_CONVERT", "STABLEHLO_DYNAMIC_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_PAD",
      "STABLEHLO_IOTA", "STABLEHLO_DOT_GENERAL", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SORT",
      "STABLEHLO_WHILE", "STABLEHLO_GATHER", "STABLEHLO_TRANSPOSE", "DILATE",
      "STABLEHLO_RNG_BIT_GENERATOR", "REDUCE_WINDOW", "STABLEHLO_COMPOSITE", "STABLEHLO_SHIFT_LEFT",
      "STABLEHLO_CBRT", "STABLEHLO_CASE"};
// clang-format on
}  // namespace builtin_operator_internal

// The schema's name, "CONV_2D"; "UNKNOWN" for a number that is not in the list.
constexpr const char* builtin_operator_name(BuiltinOperator code) {
  const int32_t i = static_cast<int32_t>(code);
  return i >= 0 && i < kBuiltinOperatorCount ? builtin_operator_internal::kNames[i] : "UNKNOWN";
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_SCHEMA_BUILTIN_OPERATOR_H
