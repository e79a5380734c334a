// Opening and decoding good models, from every source of bytes.
#include "oneweight/model/model_view.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "support/model_builder.h"

namespace oneweight {
namespace {

using testing::FileBytes;
using testing::ModelBuilder;

// One FULLY_CONNECTED with int8 weights per channel, a bias, a signature and metadata.
ModelBuilder dense_model() {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 4}, "x").signature({-1, 4});
  const int w = m.tensor(TensorType::int8, {3, 4}, "w")
                    .values<int8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
                    .quantized({0.5f, 1.0f, 2.0f}, {0, 0, 0}, 0);
  const int b = m.tensor(TensorType::float32, {3}, "b").values<float>({1, 2, 3});
  const int y = m.tensor(TensorType::float32, {1, 3}, "y");
  m.op(BuiltinOperator::fully_connected, {x, w, b}, {y}).version(9).options(8).field<int8_t>(0, 1).field<bool>(2, true);
  m.inputs({x}).outputs({y});
  m.signature("serving_default", 0, {{"in", 0}}, {{"out", 3}});
  m.spec.metadata.push_back({"note", {7, 8, 9}});
  return m;
}

std::shared_ptr<const ModelView> must_open(std::span<const std::byte> bytes, const OpenOptions& options = {}) {
  auto model = ModelView::from_bytes(bytes, nullptr, options);
  INFO(model.status().message());
  REQUIRE(model.ok());
  return *model;
}

void check_dense_model(const ModelView& model) {
  CHECK(model.version() == 3);
  CHECK(model.description() == "made by a test");
  REQUIRE(model.subgraphs().size() == 1);
  const SubgraphDef& graph = model.subgraphs()[0];
  REQUIRE(graph.tensors.size() == 4);
  CHECK(graph.inputs == std::vector<int32_t>{0});
  CHECK(graph.outputs == std::vector<int32_t>{3});

  const TensorDef& x = graph.tensors[0];
  CHECK(x.name == "x");
  CHECK(x.type == TensorType::float32);
  CHECK(x.shape == Shape{1, 4});
  CHECK(x.shape_signature == Shape{-1, 4});
  CHECK_FALSE(x.is_constant);
  CHECK(x.data.empty());

  const TensorDef& w = graph.tensors[1];
  CHECK(w.is_constant);
  REQUIRE(w.data.size() == 12);
  CHECK(w.data[11] == std::byte{12});
  CHECK(w.data.data() >= model.bytes().data());
  CHECK(w.data.data() + w.data.size() <= model.bytes().data() + model.bytes().size());
  CHECK(w.quantization.scales == std::vector<float>{0.5f, 1.0f, 2.0f});
  CHECK(w.quantization.zero_points == std::vector<int64_t>{0, 0, 0});
  CHECK(w.quantization.axis == 0);

  REQUIRE(graph.operators.size() == 1);
  const OperatorDef& op = graph.operators[0];
  CHECK(op.code == BuiltinOperator::fully_connected);
  CHECK(op.name() == "FULLY_CONNECTED");
  CHECK(op.version == 9);
  CHECK(op.inputs == std::vector<int32_t>{0, 1, 2});
  CHECK(op.options.type == 8);
  CHECK(op.options.get<int8_t>(0, 0) == 1);
  CHECK(op.options.get<bool>(2, false));
  CHECK(op.options.get<int8_t>(1, 77) == 77);
  CHECK(op.options.get<int32_t>(40, -5) == -5);
  CHECK(op.options.vector(5) == nullptr);

  REQUIRE(model.find_signature("serving_default") != nullptr);
  CHECK(model.find_signature("other") == nullptr);
  CHECK(model.find_signature("serving_default")->outputs[0] == std::pair<std::string, int32_t>{"out", 3});
  REQUIRE(model.metadata().size() == 1);
  CHECK(model.metadata()[0].name == "note");
  CHECK(model.metadata()[0].data.size() == 3);
  CHECK(model.structure_bytes() > 500);
}

// A file that disappears with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::span<const std::byte> bytes) {
    const char* directory = std::getenv("TMPDIR");
    path_ = std::string(directory ? directory : "/tmp") + "/oneweight_model_XXXXXX";
    descriptor_ = ::mkstemp(path_.data());
    REQUIRE(descriptor_ >= 0);
    REQUIRE(::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~TemporaryFile() {
    ::close(descriptor_);
    std::remove(path_.c_str());
  }
  const char* path() const { return path_.c_str(); }
  int descriptor() const { return descriptor_; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

TEST_CASE("a model opens from a file, mapped and copied", "[model]") {
  const FileBytes bytes = dense_model().build();
  const TemporaryFile file(bytes);
  for (const bool copy : {false, true}) {
    auto model = ModelView::open(file.path(), {.copy = copy});
    INFO(model.status().message());
    REQUIRE(model.ok());
    check_dense_model(**model);
    CHECK((*model)->bytes().size() == bytes.size());
  }
}

TEST_CASE("a mapped model outlives its file's name", "[model]") {
  std::shared_ptr<const ModelView> model;
  {
    const TemporaryFile file(dense_model().build());
    model = *ModelView::open(file.path());
  }
  check_dense_model(*model);
}

TEST_CASE("files that cannot be opened say so", "[model]") {
  auto missing = ModelView::open("/no/such/file.tflite");
  CHECK(missing.status().code() == ErrorCode::not_found);
  CHECK(missing.status().message().find("/no/such/file.tflite: ") == 0);
  CHECK(ModelView::open("/").status().code() == ErrorCode::io_error);
  CHECK(ModelView::open(nullptr).status().code() == ErrorCode::invalid_argument);
  CHECK(ModelView::from_descriptor(-1).status().code() == ErrorCode::io_error);
  const TemporaryFile empty(FileBytes{});
  CHECK(ModelView::open(empty.path()).status().code() == ErrorCode::invalid_model);
}

TEST_CASE("a model inside an archive opens at any offset", "[model]") {
  const FileBytes bytes = dense_model().build();
  for (const size_t offset : {0u, 1u, 2u, 3u, 4u, 5u, 7u, 4095u, 4096u, 4097u, 70001u}) {
    FileBytes archive(offset, std::byte{0x55});
    archive.insert(archive.end(), bytes.begin(), bytes.end());
    archive.insert(archive.end(), 100, std::byte{0xaa});
    const TemporaryFile file(archive);
    for (const bool copy : {false, true}) {
      auto model = ModelView::from_descriptor(file.descriptor(), offset, bytes.size(), {.copy = copy});
      INFO("offset " << offset << ": " << model.status().message());
      REQUIRE(model.ok());
      check_dense_model(**model);
    }
  }
}

TEST_CASE("length 0 means to the end, and ranges beyond the end are refused", "[model]") {
  const FileBytes bytes = dense_model().build();
  FileBytes archive(13, std::byte{1});
  archive.insert(archive.end(), bytes.begin(), bytes.end());
  const TemporaryFile file(archive);
  auto model = ModelView::from_descriptor(file.descriptor(), 13);
  REQUIRE(model.ok());
  CHECK((*model)->bytes().size() == bytes.size());

  auto late = ModelView::from_descriptor(file.descriptor(), archive.size() + 1);
  CHECK(late.status().code() == ErrorCode::invalid_argument);
  auto wide = ModelView::from_descriptor(file.descriptor(), 13, bytes.size() + 1);
  CHECK(wide.status().code() == ErrorCode::invalid_argument);
  CHECK(wide.status().message().find(std::to_string(bytes.size() + 1)) != std::string::npos);
  CHECK_FALSE(ModelView::from_descriptor(file.descriptor(), 13, ~uint64_t{0}).ok());
  CHECK_FALSE(ModelView::from_descriptor(file.descriptor(), archive.size()).ok());
}

TEST_CASE("caller-owned bytes are used in place at any address, or copied", "[model]") {
  const FileBytes bytes = dense_model().build();
  std::vector<std::byte> room(bytes.size() + 16);
  for (size_t shift = 0; shift < 16; ++shift) {
    std::copy(bytes.begin(), bytes.end(), room.begin() + static_cast<std::ptrdiff_t>(shift));
    const std::span<const std::byte> view(room.data() + shift, bytes.size());
    const auto model = must_open(view);
    check_dense_model(*model);
    CHECK(model->bytes().data() == view.data());
    const auto copied = must_open(view, {.copy = true});
    CHECK(copied->bytes().data() != view.data());
    check_dense_model(*copied);
  }
}

TEST_CASE("the owner of caller's bytes lives as long as the model", "[model]") {
  auto owner = std::make_shared<FileBytes>(dense_model().build());
  std::weak_ptr<FileBytes> watch = owner;
  const std::span<const std::byte> view(*owner);
  auto model = ModelView::from_bytes(view, std::move(owner));
  REQUIRE(model.ok());
  CHECK_FALSE(watch.expired());
  check_dense_model(**model);
  std::move(model).value().reset();
  model = Status(ErrorCode::not_found, "");
  CHECK(watch.expired());
}

TEST_CASE("many threads read one model", "[model]") {
  const FileBytes bytes = dense_model().build();
  const auto model = must_open(bytes);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&good, model] {
      for (int k = 0; k < 100; ++k)
        if (model->subgraphs()[0].tensors[1].data[0] == std::byte{1}) ++good;
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(good == 400);
}

TEST_CASE("buffers behind the flatbuffer are found by their file offsets", "[model]") {
  ModelBuilder m = dense_model();
  m.spec.buffers_at_end = true;
  const int z = m.tensor(TensorType::float32, {1, 3}, "z");
  m.custom_op("Mine", {3}, {z}).custom_options({1, 2, 3, 4, 5});
  m.spec.subgraphs[0].operators[1].custom_options_at_end = true;
  const FileBytes bytes = m.build();
  const auto model = must_open(bytes);
  const SubgraphDef& graph = model->subgraphs()[0];
  REQUIRE(graph.tensors[1].data.size() == 12);
  CHECK(graph.tensors[1].data[5] == std::byte{6});
  CHECK(graph.operators[1].name() == "Mine");
  REQUIRE(graph.operators[1].custom_options.size() == 5);
  CHECK(graph.operators[1].custom_options[4] == std::byte{5});
}

TEST_CASE("buffers beyond 4 GiB of a file are found", "[model]") {
  if constexpr (sizeof(size_t) < 8) SKIP("needs a 64-bit address space");
  ModelBuilder m = dense_model();
  m.spec.buffers_at_end = true;
  m.spec.metadata.clear();
  FileBytes bytes = m.build();
  // The two constants become one place far behind, in a file with a hole.
  const uint64_t far = (uint64_t{4} << 30) + 8;
  const auto near_model = must_open(bytes);
  const SubgraphDef& graph = near_model->subgraphs()[0];
  int patched = 0;
  for (const int tensor : {1, 2}) {
    const auto at = static_cast<uint64_t>(graph.tensors[tensor].data.data() - bytes.data());
    for (size_t i = 0; i + 8 <= bytes.size(); ++i) {
      if (std::memcmp(&bytes[i], &at, 8) != 0) continue;
      std::memcpy(&bytes[i], &far, 8);
      ++patched;
    }
  }
  REQUIRE(patched == 2);
  const TemporaryFile file(bytes);
  const float values[] = {1.5f, 2.5f, 3.5f};
  if (::pwrite(file.descriptor(), values, 12, static_cast<off_t>(far)) != 12)
    SKIP("the file system has no large files");
  auto model = ModelView::open(file.path());
  INFO(model.status().message());
  REQUIRE(model.ok());
  const TensorDef& bias = (*model)->subgraphs()[0].tensors[2];
  float read[3];
  std::memcpy(read, bias.data.data(), 12);
  CHECK(read[2] == 3.5f);
  REQUIRE(::ftruncate(file.descriptor(), static_cast<off_t>(far + 11)) == 0);
  CHECK(ModelView::open(file.path()).status().code() == ErrorCode::invalid_model);
}

TEST_CASE("operator numbers: the older 8-bit field, the newer one, both", "[model]") {
  for (const auto& [deprecated, builtin, want] :
       {std::tuple<int8_t, int32_t, BuiltinOperator>{3, 0, BuiltinOperator::conv_2d},
        {3, 3, BuiltinOperator::conv_2d},
        {127, 150, BuiltinOperator::gelu},
        {0, 0, BuiltinOperator::add},
        {0, 209, BuiltinOperator::stablehlo_case}}) {
    ModelBuilder m = dense_model();
    m.spec.codes[0].deprecated_builtin = deprecated;
    m.spec.codes[0].builtin = builtin;
    const FileBytes bytes = m.build();
    CHECK(must_open(bytes)->subgraphs()[0].operators[0].code == want);
  }
}

TEST_CASE("options: widths, vectors, strings, both unions", "[model]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {2, 3});
  const int y = m.tensor(TensorType::float32, {3, 2});
  m.op(BuiltinOperator::reshape, {x}, {y}).options(17).vector<int32_t>(0, {3, -1});
  m.op(BuiltinOperator::random_uniform, {x}, {y})
      .options(114)
      .field<int64_t>(0, -3)
      .field<int64_t>(1, int64_t{1} << 40);
  m.op(BuiltinOperator::var_handle, {}, {y}).options(111).text(0, "box").text(1, "name");
  m.op(BuiltinOperator::bucketize, {x}, {y}).options(115).vector<float>(0, {1.5f, -2.0f});
  m.op(BuiltinOperator::leaky_relu, {x}, {y}).options(75).field<float>(0, 0.25f);
  m.op(BuiltinOperator::stablehlo_pad, {x}, {y})
      .options_2(10)
      .vector<int64_t>(0, {-1, 2})
      .vector<int64_t>(1, {int64_t{1} << 35})
      .vector<int64_t>(2, {});
  m.inputs({x}).outputs({y});
  const FileBytes bytes = m.build();
  const auto model = must_open(bytes);
  const auto& ops = model->subgraphs()[0].operators;
  REQUIRE(ops[0].options.vector(0) != nullptr);
  CHECK(*ops[0].options.vector(0) == std::vector<int64_t>{3, -1});
  CHECK(ops[1].options.get<int64_t>(0, 0) == -3);
  CHECK(ops[1].options.get<int64_t>(1, 0) == int64_t{1} << 40);
  CHECK(*ops[2].options.vector(1) == std::vector<int64_t>{'n', 'a', 'm', 'e'});
  CHECK(ops[3].options.vector(0)->at(0) == std::bit_cast<int32_t>(1.5f));
  CHECK(ops[3].options.vector(0)->at(1) == std::bit_cast<uint32_t>(-2.0f));
  CHECK(ops[4].options.get<float>(0, 0) == 0.25f);
  CHECK(ops[5].options.type == 10);
  CHECK(*ops[5].options.vector(0) == std::vector<int64_t>{-1, 2});
  CHECK(*ops[5].options.vector(1) == std::vector<int64_t>{int64_t{1} << 35});
  CHECK(ops[5].options.vector(2)->empty());
}

TEST_CASE("quantisation: zero points are expanded, odd axes of vectors mended", "[model]") {
  ModelBuilder m;
  m.tensor(TensorType::int8, {2, 3}).quantized({1, 2, 3}, {5}, 1);
  m.tensor(TensorType::int8, {2, 3}).quantized({1, 2, 3}, {}, 1);
  m.tensor(TensorType::int32, {3}).quantized({1, 2, 3}, {0, 0, 0}, 3);
  m.tensor(TensorType::uint8, {2, 3}).quantized({0.5f}, {128}, 9);
  m.tensor(TensorType::int4, {2, 64}).values<uint8_t>(std::vector<uint8_t>(64));
  m.tensor(TensorType::float16, {2, 2}).values<uint16_t>({1, 2, 3, 4});
  TensorType block_type = TensorType::int4;
  auto blocks = m.tensor(block_type, {2, 64}).values<uint8_t>(std::vector<uint8_t>(64));
  blocks.spec().blockwise = true;
  blocks.spec().block_scales = 5;
  blocks.spec().block_size = 32;
  const FileBytes bytes = m.build();
  const auto model = must_open(bytes);
  const auto& t = model->subgraphs()[0].tensors;
  CHECK(t[0].quantization.zero_points == std::vector<int64_t>{5, 5, 5});
  CHECK(t[0].quantization.axis == 1);
  CHECK(t[1].quantization.zero_points == std::vector<int64_t>{0, 0, 0});
  CHECK(t[2].quantization.axis == 0);
  CHECK(t[3].quantization.axis == 0);
  CHECK(t[3].quantization.zero_points == std::vector<int64_t>{128});
  CHECK(t[4].data.size() == 64);
  CHECK(t[6].quantization.block_size == 32);
  CHECK(t[6].quantization.block_scales_tensor == 5);
  CHECK(t[6].quantization.block_zero_points_tensor == -1);
}

TEST_CASE("shapes: unknown extents, scalars, packed types, strings", "[model]") {
  ModelBuilder m;
  m.tensor(TensorType::float32, {-1, 4});
  m.tensor(TensorType::float32, {1, 4}).signature({-1, 4, 2});  // of another rank: dropped
  m.tensor(TensorType::int32, {}).values<int32_t>({7});
  m.tensor(TensorType::int4, {5}).bytes({1, 2, 3});
  m.tensor(TensorType::int2, {5}).bytes({1, 2});
  m.tensor(TensorType::string, {2}).strings({"ab", ""});
  const FileBytes bytes = m.build();
  const auto model = must_open(bytes);
  const auto& t = model->subgraphs()[0].tensors;
  CHECK(t[0].shape == Shape{1, 4});
  CHECK(t[0].shape_signature == Shape{-1, 4});
  CHECK(t[1].shape_signature.rank() == 0);
  CHECK_FALSE(t[2].has_rank);
  CHECK(t[2].is_constant);
  CHECK(t[5].is_constant);
}

TEST_CASE("what counts as a constant", "[model]") {
  ModelBuilder m;
  const int input = m.tensor(TensorType::float32, {0}).bytes({});
  const int constant = m.tensor(TensorType::float32, {0}).bytes({});
  const int computed = m.tensor(TensorType::float32, {0}).bytes({});
  m.tensor(TensorType::float32, {0});
  m.tensor(TensorType::float32, {2}).variable();
  const int fed = m.tensor(TensorType::float32, {2}).values<float>({1, 2});
  m.op(BuiltinOperator::add, {input, constant}, {computed});
  m.inputs({input, fed}).outputs({computed});
  const FileBytes bytes = m.build();
  const auto model = must_open(bytes);
  const auto& t = model->subgraphs()[0].tensors;
  CHECK_FALSE(t[0].is_constant);
  CHECK(t[1].is_constant);
  CHECK_FALSE(t[2].is_constant);
  CHECK_FALSE(t[3].is_constant);
  CHECK_FALSE(t[4].is_constant);
  CHECK(t[4].is_variable);
  CHECK_FALSE(t[5].is_constant);
  CHECK(t[5].data.empty());
}

TEST_CASE("sparse constants keep their index vectors, whatever their width", "[model]") {
  for (const int width : {4, 2, 1}) {
    ModelBuilder m;
    auto w = m.tensor(TensorType::float32, {2, 3}).values<float>({1, 2});
    w.spec().sparsity = {{0, 1}, {}, {{false, 2, 4, {}, {}}, {true, 0, width, {0, 1, 2}, {2, 200}}}};
    const FileBytes bytes = m.build();
    const auto model = must_open(bytes);
    const TensorDef& t = model->subgraphs()[0].tensors[0];
    REQUIRE(t.sparsity != nullptr);
    CHECK(t.sparsity->dimensions[0].dense_size == 2);
    CHECK(t.sparsity->dimensions[1].segments == std::vector<int32_t>{0, 1, 2});
    CHECK(t.sparsity->dimensions[1].indices == std::vector<int32_t>{2, 200});
  }
}

}  // namespace
}  // namespace oneweight
