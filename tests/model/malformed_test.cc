// Damaged, foreign and contradictory files are refused with a sentence; nothing crashes, hangs or takes
// memory without bound. Meant to run under address and undefined-behaviour sanitizers too.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oneweight/model/model_view.h"
#include "support/model_builder.h"

namespace oneweight {
namespace {

using testing::FileBytes;
using testing::ModelBuilder;
using testing::SparseDimensionSpec;
using testing::SparsitySpec;
using testing::TensorSpec;

// Tensors: 0 x, 1 w (per channel), 2 b, 3 y, 4 s (strings), 5 sparse.
ModelBuilder good_model() {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 4}, "x");
  const int w = m.tensor(TensorType::int8, {3, 4}, "w")
                    .values<int8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
                    .quantized({0.5f, 1.0f, 2.0f}, {0, 0, 0}, 0);
  const int b = m.tensor(TensorType::float32, {3}, "b").values<float>({1, 2, 3});
  const int y = m.tensor(TensorType::float32, {1, 3}, "y");
  m.tensor(TensorType::string, {2}, "s").strings({"one", "two"});
  m.tensor(TensorType::float32, {2, 3}, "sparse").values<float>({1, 2}).spec().sparsity =
      SparsitySpec{{0, 1}, {}, {{false, 2, 4, {}, {}}, {true, 0, 2, {0, 1, 2}, {2, 0}}}};
  m.op(BuiltinOperator::fully_connected, {x, w, b}, {y}).version(9).options(8).field<int8_t>(0, 1);
  m.op(BuiltinOperator::reshape, {y}, {m.tensor(TensorType::float32, {3}, "z")}).options(17).vector<int32_t>(0, {-1});
  m.inputs({x}).outputs({6});
  m.signature("serve", 0, {{"in", 0}}, {{"out", 6}});
  m.spec.metadata.push_back({"note", {7, 8, 9}});
  return m;
}

Status open_status(std::span<const std::byte> bytes) { return ModelView::from_bytes(bytes).status(); }

struct Refusal {
  const char* name;
  std::function<void(ModelBuilder&)> damage;
  std::initializer_list<const char*> words;  // all of which the message holds
  ErrorCode code = ErrorCode::invalid_model;
};

TensorSpec& tensor(ModelBuilder& m, size_t i) { return m.spec.subgraphs[0].tensors[i]; }
testing::OperatorSpec& op(ModelBuilder& m, size_t i) { return m.spec.subgraphs[0].operators[i]; }

TEST_CASE("contradictions are refused with place and numbers", "[model][malformed]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Refusal refusals[] = {
      {"foreign identifier", [](auto& m) { m.spec.identifier = "ABCD"; }, {"'ABCD'", "'TFL3'"}},
      {"version", [](auto& m) { m.spec.version = 2; }, {"version is 2"}, ErrorCode::unsupported},
      {"no subgraphs",
       [](auto& m) {
         m.spec.subgraphs.clear();
         m.spec.signatures.clear();
       },
       {"no subgraphs"}},
      {"opcode index", [](auto& m) { op(m, 0).code = 9; }, {"operator 0", "code 9", "lists 2"}},
      {"unknown operator",
       [](auto& m) { m.spec.codes[1].builtin = 999; },
       {"operator 1", "999"},
       ErrorCode::unsupported},
      {"negative operator",
       [](auto& m) {
         m.spec.codes[1] = {-4, -9, 1, {}};
       },
       {"operator 1", "-4"}},
      {"operator version", [](auto& m) { m.spec.codes[1].version = 0; }, {"operator 1", "version is 0"}},
      {"custom without name",
       [](auto& m) {
         m.spec.codes[1] = {32, 32, 1, {}};
       },
       {"operator 1", "without a name"}},
      {"operator input",
       [](auto& m) { op(m, 0).inputs[1] = 70; },
       {"operator 0 (FULLY_CONNECTED)", "input 1", "tensor 70", "7 tensors"}},
      {"operator input below -1", [](auto& m) { op(m, 0).inputs[1] = -2; }, {"input 1", "tensor -2"}},
      {"operator output", [](auto& m) { op(m, 1).outputs[0] = 7; }, {"operator 1 (RESHAPE)", "output 0", "tensor 7"}},
      {"operator output -1", [](auto& m) { op(m, 1).outputs[0] = -1; }, {"output 0", "tensor -1"}},
      {"operator intermediate", [](auto& m) { op(m, 1).intermediates = {1 << 30}; }, {"intermediate 0"}},
      {"operator writes a constant", [](auto& m) { op(m, 1).outputs[0] = 2; }, {"writes tensor 2"}},
      {"graph input",
       [](auto& m) {
         m.spec.subgraphs[0].inputs = {0, 7};
       },
       {"subgraph 0", "input 1", "tensor 7"}},
      {"graph output", [](auto& m) { m.spec.subgraphs[0].outputs = {-1}; }, {"subgraph 0", "output 0", "tensor -1"}},
      {"signature subgraph", [](auto& m) { m.spec.signatures[0].subgraph = 3; }, {"'serve'", "subgraph 3"}},
      {"signature tensor",
       [](auto& m) { m.spec.signatures[0].outputs[0].second = 4000000000u; },
       {"'serve'", "output 0", "4000000000"}},
      {"buffer index", [](auto& m) { tensor(m, 1).buffer = 900; }, {"tensor 1 ('w')", "buffer 900"}},
      {"external buffer",
       [](auto& m) { tensor(m, 1).external_buffer = 5; },
       {"external buffer 5"},
       ErrorCode::unsupported},
      {"unknown type", [](auto& m) { tensor(m, 0).type = 100; }, {"tensor 0 ('x')", "100"}, ErrorCode::unsupported},
      {"negative type", [](auto& m) { tensor(m, 0).type = -1; }, {"tensor 0 ('x')", "-1"}},
      {"rank", [](auto& m) { tensor(m, 0).shape.assign(9, 1); }, {"rank is 9"}},
      {"negative extent", [](auto& m) { tensor(m, 0).shape[1] = -2; }, {"extent 1 is -2"}},
      {"negative signature",
       [](auto& m) {
         tensor(m, 0).shape_signature = {1, -7};
       },
       {"extent 1", "-7"}},
      {"product overflows", [](auto& m) { tensor(m, 0).shape.assign(4, 1 << 20); }, {"does not fit 64 bits"}},
      {"bytes overflow",
       [](auto& m) {
         tensor(m, 0).shape = {1 << 30, 1 << 30, 4};
       },
       {"does not fit 64 bits"}},
      {"constant too short", [](auto& m) { tensor(m, 2).shape = {4}; }, {"takes 16 bytes", "has 12"}},
      {"constant too long", [](auto& m) { tensor(m, 2).shape = {2}; }, {"takes 8 bytes", "has 12"}},
      {"constant of an empty shape", [](auto& m) { tensor(m, 2).shape = {0}; }, {"takes 0 bytes"}},
      {"packed too long",
       [](auto& m) {
         tensor(m, 2).type = 17;
         tensor(m, 2).shape = {22};
       },
       {"takes 11", "has 12"}},
      {"variable with data", [](auto& m) { tensor(m, 2).is_variable = true; }, {"variable"}},
      {"scale NaN", [nan](auto& m) { tensor(m, 1).scales[2] = nan; }, {"scale 2", "nan"}},
      {"scale infinite", [infinity](auto& m) { tensor(m, 1).scales[1] = infinity; }, {"scale 1", "inf"}},
      {"scale negative", [](auto& m) { tensor(m, 1).scales[0] = -0.5f; }, {"scale 0", "-0.5"}},
      {"scale count",
       [](auto& m) {
         tensor(m, 1).scales = {1, 2};
       },
       {"2 scales", "3 indices"}},
      {"axis", [](auto& m) { tensor(m, 1).axis = 2; }, {"axis is 2", "rank is 2"}},
      {"axis negative", [](auto& m) { tensor(m, 1).axis = -1; }, {"axis is -1"}},
      {"zero point count",
       [](auto& m) {
         tensor(m, 1).zero_points = {0, 0};
       },
       {"2 zero points", "3 scales"}},
      {"zero point range", [](auto& m) { tensor(m, 1).zero_points[1] = int64_t{1} << 40; }, {"zero point 1"}},
      {"block scales",
       [](auto& m) {
         tensor(m, 1).blockwise = true;
         tensor(m, 1).block_size = 32;
         tensor(m, 1).block_scales = 99;
       },
       {"tensor 1", "99"}},
      {"block size",
       [](auto& m) {
         tensor(m, 1).blockwise = true;
         tensor(m, 1).block_size = -1;
       },
       {"block size is -1"}},
      {"string count", [](auto& m) { (*tensor(m, 4).data)[0] = 200; }, {"200 strings"}},
      {"string offset", [](auto& m) { (*tensor(m, 4).data)[8] = 250; }, {"2 strings", "damaged"}},
      {"strings cut", [](auto& m) { tensor(m, 4).data->resize(3); }, {"damaged"}},
      {"sparse order",
       [](auto& m) {
         tensor(m, 5).sparsity->traversal_order = {0, 0};
       },
       {"permutation"}},
      {"sparse order range",
       [](auto& m) {
         tensor(m, 5).sparsity->traversal_order = {0, 2};
       },
       {"permutation"}},
      {"sparse rank",
       [](auto& m) {
         tensor(m, 5).sparsity->traversal_order = {0, 1, 2};
       },
       {"rank 2", "3 dimensions"}},
      {"sparse block map",
       [](auto& m) {
         tensor(m, 5).sparsity->traversal_order = {0, 1, 2};
         tensor(m, 5).sparsity->block_map = {5};
         tensor(m, 5).sparsity->dimensions.push_back({false, 1, 4, {}, {}});
       },
       {"axis 5"}},
      {"sparse size", [](auto& m) { tensor(m, 5).sparsity->dimensions[0].dense_size = -1; }, {"size -1"}},
      {"sparse segments", [](auto& m) { tensor(m, 5).sparsity->dimensions[1].segments.clear(); }, {"no segments"}},
  };
  {
    const FileBytes bytes = good_model().build();
    INFO(open_status(bytes).message());
    REQUIRE(open_status(bytes).ok());
  }
  for (const Refusal& refusal : refusals) {
    ModelBuilder m = good_model();
    refusal.damage(m);
    const FileBytes bytes = m.build();
    const Status status = open_status(bytes);
    INFO(refusal.name << ": " << status.message());
    CHECK(status.code() == refusal.code);
    for (const char* word : refusal.words) CHECK(status.message().find(word) != std::string::npos);
  }
}

TEST_CASE("buffers and custom options beyond the file are refused", "[model][malformed]") {
  ModelBuilder m = good_model();
  m.spec.buffers_at_end = true;
  FileBytes bytes = m.build();
  REQUIRE(open_status(bytes).ok());
  bytes.pop_back();
  const Status status = open_status(bytes);
  CHECK(status.code() == ErrorCode::invalid_model);
  CHECK(status.message().find("beyond the end of the file") != std::string::npos);

  ModelBuilder custom;
  custom.tensor(TensorType::float32, {1});
  custom.custom_op("Mine", {}, {0}).custom_options({1, 2, 3}).spec().custom_options_at_end = true;
  bytes = custom.build();
  REQUIRE(open_status(bytes).ok());
  bytes.pop_back();
  CHECK(open_status(bytes).message().find("operator 0 (Mine): custom options") != std::string::npos);
}

TEST_CASE("bytes that are no model are refused", "[model][malformed]") {
  CHECK(open_status({}).code() == ErrorCode::invalid_model);
  for (const size_t size : {1u, 4u, 7u, 8u, 12u, 64u, 4096u}) {
    for (const int value : {0, 1, 4, 8, 127, 128, 255}) {
      FileBytes bytes(size, static_cast<std::byte>(value));
      CHECK(open_status(bytes).code() == ErrorCode::invalid_model);
      if (size >= 8) {
        std::memcpy(bytes.data() + 4, "TFL3", 4);
        CHECK_FALSE(open_status(bytes).ok());
      }
    }
  }
}

// Opens an exact-size heap copy, so that a sanitizer sees every read beyond the end.
bool opens(std::span<const std::byte> bytes) {
  const std::unique_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  const auto model = ModelView::from_bytes({copy.get(), bytes.size()});
  if (!model.ok()) {
    CHECK_FALSE(model.status().message().empty());
    return false;
  }
  size_t sum = 0;  // every constant is readable
  for (const SubgraphDef& graph : (*model)->subgraphs())
    for (const TensorDef& t : graph.tensors)
      for (const std::byte b : t.data) sum += static_cast<size_t>(b);
  return sum + 1 != 0;
}

TEST_CASE("a file cut at any length is refused or right", "[model][malformed]") {
  for (const bool at_end : {false, true}) {
    ModelBuilder m = good_model();
    m.spec.buffers_at_end = at_end;
    const FileBytes bytes = m.build();
    REQUIRE(opens(bytes));
    int opened = 0;
    for (size_t size = 0; size < bytes.size(); ++size) opened += opens(std::span(bytes).first(size));
    CHECK(opened < 8);  // only padding at the end may be missing
  }
}

TEST_CASE("any byte changed never crashes", "[model][malformed]") {
  ModelBuilder second;
  const int x = second.tensor(TensorType::float32, {1, 8, 8, 3}, "x");
  const int w = second.tensor(TensorType::float32, {4, 3, 3, 3}, "w").values(std::vector<float>(108, 0.5f));
  const int y = second.tensor(TensorType::float32, {1, 8, 8, 4}, "y");
  second.op(BuiltinOperator::conv_2d, {x, w, -1}, {y})
      .options(1)
      .field<int8_t>(0, 0)
      .field<int32_t>(1, 1)
      .field<int32_t>(2, 1);
  second.op(BuiltinOperator::stablehlo_pad, {y, y}, {second.tensor(TensorType::float32, {1})})
      .options_2(10)
      .vector<int64_t>(0, {1, 2, 3, 4})
      .vector<int64_t>(1, {0, 0, 0, 0});
  second.custom_op("Mine", {y}, {second.tensor(TensorType::float32, {2}).variable()}).custom_options({1, 2, 3});
  second.add_subgraph("other");
  second.inputs({second.tensor(TensorType::int32, {})}).outputs({});
  for (FileBytes bytes : {good_model().build(), second.build()}) {
    REQUIRE(opens(bytes));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const std::byte original = bytes[i];
      for (const int mask : {0x01, 0x02, 0x04, 0x10, 0x80, 0x7f, 0xff}) {
        bytes[i] = original ^ static_cast<std::byte>(mask);
        opens(bytes);
      }
      bytes[i] = std::byte{0};
      opens(bytes);
      bytes[i] = original;
    }
    // Words: counts and offsets become huge.
    for (size_t i = 0; i + 4 <= bytes.size(); i += 2) {
      uint32_t original;
      std::memcpy(&original, &bytes[i], 4);
      for (const uint32_t value : {0xffffffffu, 0x7fffffffu, 0x80000000u, 0x10000u, original + 4, original - 4}) {
        std::memcpy(&bytes[i], &value, 4);
        opens(bytes);
      }
      std::memcpy(&bytes[i], &original, 4);
    }
  }
}

// A file in which `count` tables of a vector are one and the same: 4 bytes each in the file.
FileBytes shared_tables(uint32_t operators, uint32_t inputs) {
  flatbuffers::FlatBufferBuilder b;
  b.ForceDefaults(true);
  const auto slot = [](int field) { return static_cast<flatbuffers::voffset_t>(4 + 2 * field); };
  using Any = flatbuffers::Offset<void>;
  auto start = b.StartTable();
  const Any tensor(b.EndTable(start));
  const auto all_inputs = b.CreateVector(std::vector<int32_t>(inputs, 0));
  start = b.StartTable();
  b.AddOffset(slot(1), all_inputs);
  const Any op(b.EndTable(start));
  start = b.StartTable();
  const Any code(b.EndTable(start));
  const auto all_tensors = b.CreateVector(std::vector<Any>{tensor});
  const auto all_operators = b.CreateVector(std::vector<Any>(operators, op));
  start = b.StartTable();
  b.AddOffset(slot(0), all_tensors);
  b.AddOffset(slot(3), all_operators);
  const Any graph(b.EndTable(start));
  const auto all_codes = b.CreateVector(std::vector<Any>{code});
  const auto all_graphs = b.CreateVector(std::vector<Any>{graph});
  start = b.StartTable();
  b.AddElement<uint32_t>(slot(0), 3, 0);
  b.AddOffset(slot(1), all_codes);
  b.AddOffset(slot(2), all_graphs);
  b.Finish(Any(b.EndTable(start)), "TFL3");
  FileBytes bytes(b.GetSize());
  std::memcpy(bytes.data(), b.GetBufferPointer(), bytes.size());
  return bytes;
}

TEST_CASE("tables shared many times do not blow up memory or time", "[model][malformed]") {
  REQUIRE(open_status(shared_tables(10, 3)).ok());
  const Status status = open_status(shared_tables(20000, 20000));  // 160 kB, 1.6 GB decoded
  CHECK(status.code() == ErrorCode::invalid_model);
  CHECK(status.message().find("decoded structure") != std::string::npos);
  CHECK_FALSE(open_status(shared_tables(200000, 2000)).ok());

  ModelBuilder m;  // 600 tensors read one table of 20000 strings: 48 MB of a file of 0.1 MB
  m.tensor(TensorType::string, {20000}).strings(std::vector<std::string>(20000));
  for (int i = 0; i < 600; ++i) m.tensor(TensorType::string, {20000}).spec().buffer = 1;
  CHECK(open_status(m.build()).message().find("too many tensors of strings") != std::string::npos);
}

}  // namespace
}  // namespace oneweight
