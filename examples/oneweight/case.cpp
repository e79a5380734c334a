#include "case.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace program {

using nlohmann::json;
using oneweight::ErrorCode;
using oneweight::make_error;

namespace {

std::optional<double> number(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return found->get<double>();
}

Tolerance tolerance_of(const json& output, const json& whole) {
  Tolerance t;
  t.absolute = number(output, "abs_tol").value_or(whole.value("abs_tol", 0.0));
  t.relative = number(output, "rel_tol").value_or(whole.value("rel_tol", 0.0));
  t.mean = number(output, "mean_tol");
  t.correlation = number(output, "min_corr");
  t.differing_fraction = number(output, "max_differing_fraction");
  return t;
}

Case parse(const std::filesystem::path& folder, const json& j) {
  Case c;
  c.folder = folder;
  c.group = j.contains("op") ? j.at("op").get<std::string>() : folder.parent_path().filename().string();
  // Named, because a range-based for does not keep temporaries of its range alive.
  const json inputs = j.value("inputs", json::array()), outputs = j.value("outputs", json::array());
  for (const json& input : inputs) c.input_names.push_back(input.value("name", ""));
  for (const json& output : outputs) {
    c.output_names.push_back(output.value("name", ""));
    c.tolerances.push_back(tolerance_of(output, j));
  }
  c.refused = j.value("expects", "output") == "refused";
  c.refusal_accepted = j.value("also_accept", "") == "refused";
  c.shape_only = j.value("check", "") == "shape";
  c.detections = j.value("compare", "elements") == "detections";
  c.set_inputs_once = j.value("set_inputs_once", false);
  c.signature = j.value("signature", "");
  const bool report = j.contains("report");
  c.signature_by_name = report;
  const json resize = j.value("resize", json::object());
  for (const auto& [input, shape] : resize.items())
    c.resize.emplace_back(std::stoi(input), shape.get<std::vector<int64_t>>());
  c.stacked = j.contains("runs") && !report;
  if (c.resize.empty() && !c.stacked && !c.refused && c.signature.empty())
    for (const json& input : inputs) c.input_shapes.push_back(input.value("shape", std::vector<int64_t>()));
  c.runs = j.value("runs", 1);
  c.extra_cases = j.value("extra_cases", std::vector<std::string>());
  c.contexts = std::max(1, j.value("contexts", 1));
  c.parallel = j.value("parallel", false);
  c.extra_bytes_per_context = number(j, "extra_bytes_per_context_at_most");
  c.peak_bytes = number(j, "peak_bytes_at_most");
  c.slowdown = number(j, "slowdown_at_most");
  return c;
}

}  // namespace

oneweight::Expected<Case> read_case(const std::filesystem::path& folder) {
  const std::string path = (folder / "case.json").string();
  std::ifstream file(path);
  if (!file) return make_error(ErrorCode::not_found, "%s cannot be read", path.c_str());
  try {
    return parse(folder, json::parse(file));
  } catch (const std::exception& e) {
    return make_error(ErrorCode::invalid_data, "%s: %s", path.c_str(), e.what());
  }
}

std::vector<std::filesystem::path> find_cases(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  if (std::filesystem::exists(folder / "case.json")) found.push_back(folder);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().filename() == "case.json" && entry.path().parent_path() != folder)
      found.push_back(entry.path().parent_path());
  std::sort(found.begin(), found.end());
  return found;
}

oneweight::Expected<std::vector<Array>> read_arrays(const std::filesystem::path& folder, const char* prefix, size_t count) {
  std::vector<Array> arrays;
  for (size_t i = 0; i < count; ++i) {
    auto array = read_npy((folder / (std::string(prefix) + "_" + std::to_string(i) + ".npy")).string());
    if (!array.ok()) return array.status();
    arrays.push_back(std::move(*array));
  }
  return arrays;
}

}  // namespace program
