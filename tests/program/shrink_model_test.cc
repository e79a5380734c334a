#include "examples/oneweight/shrink_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "examples/oneweight/model_copy.h"
#include "tests/support/model_builder.h"
#include "tests/support/test_data.h"

using namespace oneweight;
using namespace oneweight::testing;
using namespace program;

namespace {

using Model = std::shared_ptr<const ModelView>;

// A view that keeps its bytes.
Model model_of(const FileBytes& file) {
  auto owner = std::make_shared<FileBytes>(file);
  auto model = ModelView::from_bytes(*owner, owner);
  INFO(model.status().message());
  REQUIRE(model.ok());
  return *model;
}
ShrunkModel shrunk(const Model& model, Storage storage) {
  auto result = shrink_model(*model, storage);
  INFO(result.status().message());
  REQUIRE(result.ok());
  return std::move(*result);
}
std::vector<float> ramp(size_t n, float least = -1, float step = 0.001f) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = least + step * static_cast<float>(i % 1999);
  return values;
}
std::string reason_of(const ShrunkModel& s, const std::string& name) {
  for (const KeptConstant& k : s.kept)
    if (k.name == name) return k.reason;
  return "converted";
}
const TensorDef* tensor_named(const SubgraphDef& graph, const std::string& name) {
  for (const TensorDef& t : graph.tensors)
    if (t.name == name) return &t;
  return nullptr;
}
template <class T>
T element(const TensorDef& t, size_t i) {
  T value;
  std::memcpy(&value, t.data.data() + i * sizeof(T), sizeof(T));
  return value;
}
std::vector<float> run(const Model& model) {
  auto plan = make_plan<opset::All>(model);
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  auto context = context_of(*plan);
  fill_inputs(context);
  REQUIRE(context.run().ok());
  const auto values = *context.output<float>(0);
  return {values.begin(), values.end()};
}
double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

constexpr uint8_t kConv = 1, kDepthwise = 2, kDense = 8;  // tags of BuiltinOptions

// A dense layer of [32, 64] on the tensor x, and its weights' number.
int add_dense(ModelBuilder& m, int x, int y, std::string name, std::vector<float> weights) {
  const int w = m.tensor(TensorType::float32, {32, 64}, std::move(name)).values(weights);
  m.op(BuiltinOperator::fully_connected, {x, w, -1}, {y}).options(kDense).field<int8_t>(0, 0);
  return w;
}
ModelBuilder dense_model(const std::vector<float>& weights) {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 64}, "x"), y = m.tensor(TensorType::float32, {1, 32}, "y");
  add_dense(m, x, y, "w", weights);
  m.inputs({x}).outputs({y});
  return m;
}

}  // namespace

TEST_CASE("half weights lie behind a DEQUANTIZE at the subgraph's beginning", "[program][shrink]") {
  const std::vector<float> weights = ramp(32 * 64);
  const Model before = model_of(dense_model(weights).build());
  const ShrunkModel s = shrunk(before, Storage::half);
  CHECK(s.converted == 1);
  CHECK(s.bytes_before == 4 * 32 * 64);
  CHECK(s.bytes_after == 2 * 32 * 64);
  CHECK(s.file.size() < before->bytes().size());
  const Model after = model_of(s.file);
  const SubgraphDef& graph = after->subgraphs()[0];
  REQUIRE(graph.operators.size() == 2);
  CHECK(graph.operators[0].code == BuiltinOperator::dequantize);
  CHECK(graph.operators[0].version == 3);
  CHECK(graph.operators[1].inputs == before->subgraphs()[0].operators[0].inputs);
  CHECK(graph.operators[0].outputs[0] == graph.operators[1].inputs[1]);
  const TensorDef& half_weights = graph.tensors[static_cast<size_t>(graph.operators[0].inputs[0])];
  CHECK(half_weights.name == "w");
  CHECK(half_weights.type == TensorType::float16);
  CHECK(half_weights.shape == Shape{32, 64});
  CHECK((half_weights.data.data() - after->bytes().data()) % 16 == 0);
  for (size_t i = 0; i < weights.size(); ++i) REQUIRE(element<uint16_t>(half_weights, i) == float_to_half(weights[i]).bits);
  const TensorDef* widened = tensor_named(graph, "w_dequantize");
  REQUIRE(widened);
  CHECK(widened->type == TensorType::float32);
  CHECK_FALSE(widened->is_constant);
  CHECK(largest_difference(run(before), run(after)) < 0.02);
  CHECK(shrunk(after, Storage::half).file.empty());
}

TEST_CASE("values that half cannot hold keep their constants float", "[program][shrink]") {
  std::vector<float> weights = ramp(32 * 64);
  const auto reason_with = [&](float value) {
    weights[77] = value;
    return reason_of(shrunk(model_of(dense_model(weights).build()), Storage::half), "w");
  };
  CHECK(reason_with(65504.0f) == "converted");
  CHECK(reason_with(-65505.0f) == "has values beyond 65504, the largest half");
  CHECK(reason_with(std::numeric_limits<float>::infinity()) == "has values that are infinite or no numbers");
  CHECK(reason_with(std::numeric_limits<float>::quiet_NaN()) == "has values that are infinite or no numbers");
  CHECK(reason_of(shrunk(model_of(dense_model(weights).build()), Storage::int8), "w") == "has values that are infinite or no numbers");
}

TEST_CASE("values that are too small for half are counted", "[program][shrink]") {
  std::vector<float> weights(32 * 64, 0.0f);
  weights[0] = 1e-9f, weights[1] = -1e-9f, weights[2] = 1e-5f, weights[3] = 6.2e-5f;
  const ShrunkModel s = shrunk(model_of(dense_model(weights).build()), Storage::half);
  CHECK(s.became_zero == 2);
  CHECK(s.became_denormal == 1);
}

TEST_CASE("int8 weights have a scale for each output channel", "[program][shrink]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 4, 4, 128}, "x"), a = m.tensor(TensorType::float32, {1, 4, 4, 128}, "a");
  const int b = m.tensor(TensorType::float32, {1, 4, 4, 8}, "b"), c = m.tensor(TensorType::float32, {1, 16}, "c");
  std::vector<float> depthwise = ramp(3 * 3 * 128), conv = ramp(8 * 128), dense = ramp(16 * 128);
  std::fill_n(conv.begin() + 128, 128, 0.0f);    // a channel of zeros
  std::fill_n(conv.begin() + 256, 128, 1e-44f);  // and one whose scale would be denormal
  const int wa = m.tensor(TensorType::float32, {1, 3, 3, 128}, "depthwise").values(depthwise), wb = m.tensor(TensorType::float32, {8, 1, 1, 128}, "conv").values(conv);
  const int wc = m.tensor(TensorType::float32, {16, 128}, "dense").values(dense);
  m.op(BuiltinOperator::depthwise_conv_2d, {x, wa, -1}, {a}).options(kDepthwise).field<int32_t>(1, 1).field<int32_t>(2, 1).field<int32_t>(3, 1);
  m.op(BuiltinOperator::conv_2d, {a, wb, -1}, {b}).options(kConv).field<int32_t>(1, 1).field<int32_t>(2, 1);
  m.op(BuiltinOperator::fully_connected, {b, wc, -1}, {c}).options(kDense).field<int8_t>(0, 1);
  m.inputs({x}).outputs({c});
  const Model before = model_of(m.build());
  const ShrunkModel s = shrunk(before, Storage::int8);
  CHECK(s.converted == 3);
  const Model after = model_of(s.file);
  const SubgraphDef& graph = after->subgraphs()[0];
  REQUIRE(graph.operators.size() == 3);
  CHECK(graph.operators[0].version == 6);
  CHECK(graph.operators[1].version == 5);
  CHECK(graph.operators[2].version == 12);
  CHECK(graph.operators[2].options.get<int8_t>(0, 0) == 1);
  CHECK(graph.operators[2].options.get<bool>(3, false));  // asymmetric_quantize_inputs
  const auto check = [&](const std::string& name, const std::vector<float>& from, int axis, size_t channels, size_t stride) {
    const TensorDef& t = *tensor_named(graph, name);
    INFO(name);
    CHECK(t.type == TensorType::int8);
    CHECK(t.quantization.axis == axis);
    REQUIRE(t.quantization.scales.size() == channels);
    CHECK(std::ranges::all_of(t.quantization.zero_points, [](int64_t z) { return z == 0; }));
    CHECK((t.data.data() - after->bytes().data()) % 16 == 0);
    for (size_t i = 0; i < from.size(); ++i) {
      const float scale = t.quantization.scales[i / stride % channels];
      REQUIRE(std::fabs(scale * static_cast<float>(element<int8_t>(t, i)) - from[i]) <= 0.501f * scale);
      REQUIRE(scale >= std::numeric_limits<float>::min());
    }
  };
  check("depthwise", depthwise, 3, 128, 1);
  check("conv", conv, 0, 8, 128);
  check("dense", dense, 0, 16, 128);
  CHECK(largest_difference(run(before), run(after)) < 2);
  CHECK(shrunk(after, Storage::int8).file.empty());
}

TEST_CASE("what stays float, and why", "[program][shrink]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 64}, "x"), y = m.tensor(TensorType::float32, {1, 32}, "y"), z = m.tensor(TensorType::float32, {32, 64}, "z");
  const int tiny = m.tensor(TensorType::float32, {2, 32}, "tiny").values(ramp(64)), few = m.tensor(TensorType::float32, {31, 32}, "few").values(ramp(31 * 32));
  const int u = m.tensor(TensorType::float32, {1, 2}, "u"), v = m.tensor(TensorType::float32, {1, 31}, "v");
  const int both = add_dense(m, x, y, "both", ramp(32 * 64));  // of a product, and of a sum
  const int only = m.tensor(TensorType::float32, {32, 64}, "only").values(ramp(32 * 64, 0));
  m.op(BuiltinOperator::add, {both, only}, {z});
  m.op(BuiltinOperator::fully_connected, {y, tiny, -1}, {u}).options(kDense).field<int8_t>(0, 0);
  m.op(BuiltinOperator::fully_connected, {y, few, -1}, {v}).options(kDense).field<int8_t>(0, 0);
  const int q = m.tensor(TensorType::float32, {1, 32}, "q"), shown = add_dense(m, x, q, "shown", ramp(32 * 64, -2));
  m.inputs({x}).outputs({z, u, v, q, shown});
  const Model before = model_of(m.build());
  const ShrunkModel half = shrunk(before, Storage::half), bytes = shrunk(before, Storage::int8);
  CHECK(reason_of(half, "both") == "converted");
  CHECK(reason_of(bytes, "both") == "is also read by ADD as float only");
  CHECK(reason_of(half, "only") == "is read by ADD as float only");
  CHECK(reason_of(bytes, "only") == "is read by ADD as float only");
  CHECK(reason_of(half, "tiny") == "is too small to gain anything");
  CHECK(reason_of(half, "few") == "converted");
  CHECK(reason_of(bytes, "few") == "has fewer than 1024 elements");
  CHECK(reason_of(half, "shown") == "is an output of its subgraph");
  CHECK(reason_of(bytes, "shown") == "is an output of its subgraph");
  CHECK(bytes.file.empty());
  CHECK(largest_difference(run(before), run(model_of(half.file))) < 0.002);
}

TEST_CASE("what shares a buffer shares the new one", "[program][shrink]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 64}, "x"), y = m.tensor(TensorType::float32, {1, 32}, "y"), z = m.tensor(TensorType::float32, {1, 32}, "z");
  add_dense(m, x, y, "a", ramp(32 * 64));
  const int b = add_dense(m, x, z, "b", {});
  const int sum = m.tensor(TensorType::float32, {1, 32}, "sum");
  m.op(BuiltinOperator::add, {y, z}, {sum});
  m.inputs({x}).outputs({sum});
  auto& tensors = m.spec.subgraphs[0].tensors;
  tensors[static_cast<size_t>(b)].data.reset();
  tensors[static_cast<size_t>(b)].buffer = 1;  // the buffers are numbered as the constants are added
  const Model before = model_of(m.build());
  for (const Storage storage : {Storage::half, Storage::int8}) {
    const ShrunkModel s = shrunk(before, storage);
    CHECK(s.converted == 1);
    const Model after = model_of(s.file);
    const TensorDef *wa = tensor_named(after->subgraphs()[0], "a"), *wb = tensor_named(after->subgraphs()[0], "b");
    REQUIRE(wa);
    REQUIRE(wb);
    CHECK(wa->type == wb->type);
    CHECK(wa->type != TensorType::float32);
    CHECK(wa->data.data() == wb->data.data());
    CHECK(largest_difference(run(before), run(after)) < 0.2);
  }
}

TEST_CASE("operators of one code part when only some get a newer version", "[program][shrink]") {
  for (const bool all : {false, true}) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, {1, 64}, "x"), y = m.tensor(TensorType::float32, {1, 32}, "y"), z = m.tensor(TensorType::float32, {1, 32}, "z");
    add_dense(m, x, y, "a", ramp(32 * 64));
    const int w = m.tensor(TensorType::float32, {32, 32}, "b").values(ramp(1024));
    m.op(BuiltinOperator::fully_connected, {y, w, -1}, {z}).options(kDense).field<int8_t>(0, 0);
    m.spec.subgraphs[0].operators[1].code = 0;
    m.spec.codes.pop_back();
    m.inputs({x}).outputs(all ? std::vector<int32_t>{z} : std::vector<int32_t>{z, w});
    const Model after = model_of(shrunk(model_of(m.build()), Storage::int8).file);
    const auto& operators = after->subgraphs()[0].operators;
    CHECK(operators[0].version == 12);
    CHECK(operators[1].version == (all ? 12 : 1));
    CHECK(reinterpret_cast<const schema::Model*>(after->bytes().data() + schema::load<uint32_t>(after->bytes().data()))->operator_codes().size() == (all ? 1 : 2));
  }
}

TEST_CASE("subgraphs, signatures, metadata and options stay", "[program][shrink]") {
  for (const bool outside : {false, true}) {
    ModelBuilder m = dense_model(ramp(32 * 64));
    m.signature("serve", 0, {{"in", 0}}, {{"out", 1}});
    m.add_subgraph("more");
    const int x = m.tensor(TensorType::float32, {2, 64}, "x2"), y = m.tensor(TensorType::float32, {2, 32}, "y2"), z = m.tensor(TensorType::float32, {2, 32}, "z2");
    add_dense(m, x, y, "w2", ramp(32 * 64, -0.5f));
    m.custom_op("own", {y}, {z}).custom_options({1, 2, 3, 4, 5});
    m.spec.subgraphs[1].operators[1].custom_options_at_end = outside;
    m.inputs({x}).outputs({z});
    m.signature("more", 1, {{"a", static_cast<uint32_t>(x)}}, {{"b", static_cast<uint32_t>(z)}});
    m.spec.metadata = {{"note", {9, 8, 7}}};
    m.spec.buffers_at_end = outside;
    const FileBytes file = m.build();
    for (const Storage storage : {Storage::half, Storage::int8}) {
      const ShrunkModel s = shrunk(model_of(file), storage);
      CHECK(s.converted == 2);
      const Model after = model_of(s.file);
      REQUIRE(after->subgraphs().size() == 2);
      CHECK(after->subgraphs()[1].name == "more");
      CHECK(after->description() == "made by a test");
      REQUIRE(after->signatures().size() == 2);
      CHECK(after->signatures()[1].outputs == std::vector<std::pair<std::string, int32_t>>{{"b", z}});
      REQUIRE(after->metadata().size() == 1);
      CHECK(std::ranges::equal(after->metadata()[0].data, FileBytes{std::byte{9}, std::byte{8}, std::byte{7}}));
      const OperatorDef& own = after->subgraphs()[1].operators.back();
      CHECK(own.custom_code == "own");
      CHECK(own.custom_options == std::vector<std::byte>{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}});
      const TensorDef* w = tensor_named(after->subgraphs()[1], "w2");
      REQUIRE(w);
      CHECK((w->data.data() - after->bytes().data()) % 16 == 0);
      CHECK(shrunk(after, storage).file.empty());
      CHECK(largest_difference(run(model_of(file)), run(after)) < 0.2);
    }
  }
}

TEST_CASE("offsets of an archive behind a model follow it", "[program][shrink]") {
  const FileBytes model = dense_model(ramp(32 * 64)).build();
  const auto number = [](FileBytes* to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to->push_back(static_cast<std::byte>(i < 8 ? value >> 8 * i : 0));
  };
  for (const bool absolute : {true, false}) {
    const uint64_t base = absolute ? model.size() : 0;
    FileBytes zip;
    number(&zip, 0x04034b50, 4), number(&zip, 0, 14), number(&zip, 2, 4), number(&zip, 2, 4), number(&zip, 1, 2), number(&zip, 0, 2);
    number(&zip, 'n', 1), number(&zip, 'h' | 'i' << 8, 2);
    const uint64_t directory = zip.size();
    number(&zip, 0x02014b50, 4), number(&zip, 0, 16), number(&zip, 2, 4), number(&zip, 2, 4), number(&zip, 1, 2), number(&zip, 0, 12), number(&zip, base, 4);
    number(&zip, 'n', 1);
    const uint64_t end = zip.size();
    number(&zip, 0x06054b50, 4), number(&zip, 0, 4), number(&zip, 1, 2), number(&zip, 1, 2), number(&zip, end - directory, 4), number(&zip, base + directory, 4), number(&zip, 0, 2);
    FileBytes file = model;
    file.insert(file.end(), zip.begin(), zip.end());
    const ShrunkModel s = shrunk(model_of(file), Storage::half);
    REQUIRE(s.file.size() > zip.size());
    const size_t at = s.file.size() - zip.size();
    CHECK(schema::load<uint32_t>(&s.file[at]) == 0x04034b50);
    CHECK(schema::load<uint32_t>(&s.file[at + directory + 42]) == (absolute ? at : 0));
    CHECK(schema::load<uint32_t>(&s.file[at + end + 16]) == (absolute ? at : 0) + directory);
  }
}

TEST_CASE("operators that metadata orders by number get no new ones between them", "[program][shrink]") {
  ModelBuilder m = dense_model(ramp(32 * 64));
  m.spec.metadata = {{"model_control_dependencies", {1, 1, 0}}};
  const Model model = model_of(m.build());
  const auto half = shrink_model(*model, Storage::half);
  CHECK(half.status().code() == ErrorCode::unsupported);
  CHECK(half.status().message().find("model_control_dependencies") != std::string::npos);
  CHECK(shrunk(model, Storage::int8).converted == 1);
}

TEST_CASE("options that a newer schema may have are refused, not damaged", "[program][shrink]") {
  for (const bool field : {false, true}) {
    ModelBuilder m = dense_model(ramp(32 * 64));
    OptionsSpec& options = m.spec.subgraphs[0].operators[0].options;
    if (field) {
      options.fields.push_back({6, 4, false, false, {1, 0, 0, 0}});
    } else {
      options.type = 200;
    }
    const auto half = shrink_model(*model_of(m.build()), Storage::half);
    CHECK(half.status().code() == ErrorCode::unsupported);
    CHECK(half.status().message().find("newer schema") != std::string::npos);
  }
}

TEST_CASE("a copy without changes says the same", "[program][shrink]") {
  for (const std::string& path : test_models()) {
    INFO(path);
    auto model = ModelView::open(path.c_str());
    REQUIRE(model.ok());
    const auto copy = copy_model((*model)->bytes(), {});
    REQUIRE(copy.ok());
    const Model again = model_of(*copy);
    REQUIRE(again->subgraphs().size() == (*model)->subgraphs().size());
    for (size_t g = 0; g < again->subgraphs().size(); ++g) {
      const SubgraphDef &a = again->subgraphs()[g], &b = (*model)->subgraphs()[g];
      REQUIRE(a.tensors.size() == b.tensors.size());
      REQUIRE(a.operators.size() == b.operators.size());
      for (size_t t = 0; t < a.tensors.size(); ++t) {
        CHECK(a.tensors[t].name == b.tensors[t].name);
        CHECK(a.tensors[t].shape == b.tensors[t].shape);
        CHECK(a.tensors[t].quantization.scales == b.tensors[t].quantization.scales);
        CHECK(std::ranges::equal(a.tensors[t].data, b.tensors[t].data));
      }
      for (size_t o = 0; o < a.operators.size(); ++o) {
        CHECK(a.operators[o].version == b.operators[o].version);
        CHECK(a.operators[o].inputs == b.operators[o].inputs);
        CHECK(a.operators[o].options.vectors == b.operators[o].options.vectors);
      }
    }
    auto context = context_of(plan_of(path));
    fill_inputs(context);
    REQUIRE(context.run().ok());
    auto plan = make_plan<opset::All>(again);
    REQUIRE(plan.ok());
    auto other = context_of(*plan);
    fill_inputs(other);
    REQUIRE(other.run().ok());
    CHECK(outputs_of(context) == outputs_of(other));
  }
}

TEST_CASE("damaged models are refused or shrunk to models that open", "[program][shrink]") {
  std::mt19937 random(7);
  for (const char* name : {"mlperf_kws_f32", "tflm_hello_world_float", "mww_v2_okay_nabu"}) {
    const auto whole = ModelView::open((std::string(ONEWEIGHT_TEST_DATA) + "/models/" + name + "/model.tflite").c_str());
    REQUIRE(whole.ok());
    for (int i = 0; i < 2000; ++i) {
      FileBytes file((*whole)->bytes().begin(), (*whole)->bytes().end());
      if (i % 4 == 0) file.resize(random() % file.size());
      for (int k = static_cast<int>(random() % 8); k >= 0 && !file.empty(); --k) file[random() % file.size()] = static_cast<std::byte>(random());
      auto model = ModelView::from_bytes(file);
      if (!model.ok()) continue;
      for (const Storage storage : {Storage::half, Storage::int8}) {
        const auto s = shrink_model(**model, storage);
        if (s.ok() && !s->file.empty()) REQUIRE(ModelView::from_bytes(s->file).ok());
      }
    }
  }
}
