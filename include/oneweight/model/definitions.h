// What a model file says, decoded: tensors, operators, subgraphs, signatures. Plain data; made by
// ModelView when a file is opened, and not changed afterwards.
#ifndef ONEWEIGHT_MODEL_DEFINITIONS_H
#define ONEWEIGHT_MODEL_DEFINITIONS_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oneweight/base/shape.h"
#include "oneweight/base/types.h"
#include "oneweight/schema/builtin_operator.h"
#include "oneweight/schema/options_view.h"

namespace oneweight {
inline namespace v1 {

// Affine quantisation, real = scale * (stored - zero_point). One entry for the whole tensor, or one for
// each index along `axis`. Empty scales: not quantised. zero_points has the size of scales.
struct Quantization {
  std::vector<float> scales;         // finite and >= 0
  std::vector<int64_t> zero_points;  // within int32 except for 64-bit types
  int32_t axis = 0;                  // in [0, rank) when there are several scales
  // Block-wise weights (details BlockwiseQuantization): tensor indices and elements a block; 0 = none.
  int32_t block_size = 0;
  int32_t block_scales_tensor = -1;
  int32_t block_zero_points_tensor = -1;
};

// Sparse storage of a constant, as in the format's SparsityParameters. The sizes of the vectors fit the
// tensor's rank; segments and indices themselves are unchecked.
struct SparsityDimension {
  bool sparse = false;            // dense, or compressed (CSR)
  int32_t dense_size = 0;         // dense only, >= 0
  std::vector<int32_t> segments;  // sparse only, not empty
  std::vector<int32_t> indices;   // sparse only
};
struct Sparsity {
  std::vector<int32_t> traversal_order;       // a permutation of the dimensions
  std::vector<int32_t> block_map;             // axes of the tensor
  std::vector<SparsityDimension> dimensions;  // rank + block_map.size() of them, in traversal order
};

struct TensorDef {
  std::string name;
  TensorType type = TensorType::float32;
  Shape shape;               // -1 never occurs: unknown extents are 1 here ...
  Shape shape_signature;     // ... and -1 here; rank 0 when the file has no (fitting) signature
  bool has_rank = true;      // false: rank 0 and the file does not call it a scalar (old files never do)
  bool is_variable = false;  // keeps its value from run to run, per context
  Quantization quantization;
  std::unique_ptr<const Sparsity> sparsity;  // null when dense
  // The constant's bytes inside the model's memory (unaligned), or empty for computed tensors and graph inputs. A dense
  // constant of fixed-size type has exactly shape.bytes(type) of them (checked when opened).
  std::span<const std::byte> data;
  bool is_constant = false;  // true also for constants without elements
  uint32_t buffer = 0;
};

struct OperatorDef {
  BuiltinOperator code = BuiltinOperator::add;
  std::string custom_code;  // CUSTOM only, never empty there
  int32_t version = 1;
  std::vector<int32_t> inputs;  // tensor indices of the subgraph, -1 = left out
  std::vector<int32_t> outputs;
  std::vector<int32_t> intermediates;
  OptionsView options;
  std::vector<std::byte> custom_options;

  // "CONV_2D" or the custom operator's own name.
  std::string_view name() const {
    return code == BuiltinOperator::custom ? std::string_view(custom_code) : builtin_operator_name(code);
  }
};

struct SubgraphDef {
  std::string name;
  std::vector<TensorDef> tensors;
  std::vector<OperatorDef> operators;
  std::vector<int32_t> inputs;  // tensor indices
  std::vector<int32_t> outputs;
};

struct SignatureDef {
  std::string key;
  uint32_t subgraph = 0;
  std::vector<std::pair<std::string, int32_t>> inputs;  // name, tensor index
  std::vector<std::pair<std::string, int32_t>> outputs;
};

struct MetadataDef {
  std::string name;
  std::span<const std::byte> data;  // inside the model's memory
};

// Everything ModelView knows.
struct ModelDef {
  uint32_t version = 0;
  std::string description;
  std::vector<SubgraphDef> subgraphs;
  std::vector<SignatureDef> signatures;
  std::vector<MetadataDef> metadata;
  uint64_t structure_bytes = 0;  // heap bytes of all the above, about
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_MODEL_DEFINITIONS_H
