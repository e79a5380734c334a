// The weights' pages: counted, given back, locked and read ahead.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "tests/support/counters.h"
#include "tests/support/test_data.h"

using namespace oneweight;

namespace {

constexpr const char* kLarge = "/models/coral_mobilenet_v1_025_128/model.tflite";

std::shared_ptr<const ModelView> open_model(const OpenOptions& options = {}) {
  auto model = ModelView::open((std::string(ONEWEIGHT_TEST_DATA) + kLarge).c_str(), options);
  INFO(model.status().message());
  REQUIRE(model.ok());
  return *model;
}

size_t resident(const ModelView& model, std::span<const std::byte> part) {
  auto bytes = model.resident_bytes(part);
  INFO(bytes.status().message());
  REQUIRE(bytes.ok());
  return *bytes;
}
size_t resident(const ModelView& model) { return resident(model, model.bytes()); }

void touch(std::span<const std::byte> bytes) {
  const volatile std::byte* at = bytes.data();
  for (size_t i = 0; i < bytes.size(); i += 512) (void)at[i];
}

// The tensor with the most constant bytes.
std::span<const std::byte> largest_tensor(const ModelView& model) {
  std::span<const std::byte> largest;
  for (const TensorDef& t : model.subgraphs()[0].tensors)
    if (t.data.size() > largest.size()) largest = t.data;
  return largest;
}

}  // namespace

TEST_CASE("the pages of a mapped file are given back and come back with the same weights", "[model][pages]") {
  const auto model = open_model();
  touch(model->bytes());
  const size_t all = resident(*model);
  CHECK(all >= model->bytes().size());
  CHECK(all <= model->bytes().size() + 8192);

  const std::vector<std::byte> before(model->bytes().begin(), model->bytes().end());
  REQUIRE(model->release().ok());
  CHECK(resident(*model) == 0);
  CHECK(std::ranges::equal(before, model->bytes()));
  CHECK(resident(*model) == all);
}

TEST_CASE("a part of the weights is given back alone", "[model][pages]") {
  const auto model = open_model();
  touch(model->bytes());
  const size_t all = resident(*model);
  const auto tensor = largest_tensor(*model);
  REQUIRE(tensor.size() > 100000);
  REQUIRE(model->release(tensor).ok());
  CHECK(resident(*model, tensor) == 0);
  CHECK(resident(*model) < all - tensor.size() + 1);
  CHECK(resident(*model) > all - tensor.size() - 3 * 4096 * 4);  // the edges, of pages up to 16 KB
  CHECK(model->release(tensor.first(0)).ok());

  const std::vector<std::byte> elsewhere(100);
  const Status status = model->release(elsewhere);
  CHECK(status.code() == ErrorCode::invalid_argument);
  CHECK(status.message().find("100 bytes at") == 0);
  CHECK(model->lock({model->bytes().data() + 1, model->bytes().size()}).code() == ErrorCode::invalid_argument);
  CHECK(model->prefetch({model->bytes().data() - 1, 2}).code() == ErrorCode::invalid_argument);
  CHECK(model->resident_bytes(elsewhere).status().code() == ErrorCode::invalid_argument);
}

TEST_CASE("models inside archives give back their own pages only", "[model][pages]") {
  const auto alone = open_model();
  char path[] = "/tmp/oneweight_archive_XXXXXX";
  const int file = ::mkstemp(path);
  REQUIRE(file >= 0);
  const std::vector<std::byte> padding(12345);
  REQUIRE(::write(file, padding.data(), padding.size()) == static_cast<ssize_t>(padding.size()));
  REQUIRE(::write(file, alone->bytes().data(), alone->bytes().size()) == static_cast<ssize_t>(alone->bytes().size()));
  auto model = ModelView::from_descriptor(file, padding.size());
  ::close(file);
  std::remove(path);
  REQUIRE(model.ok());
  touch((*model)->bytes());
  CHECK(resident(**model) >= (*model)->bytes().size());
  REQUIRE((*model)->release().ok());
  CHECK(resident(**model) == 0);
  CHECK(std::ranges::equal(alone->bytes(), (*model)->bytes()));
}

TEST_CASE("copies and bytes of the caller keep their pages", "[model][pages]") {
  const auto mapped = open_model();
  const std::vector<std::byte> memory(mapped->bytes().begin(), mapped->bytes().end());
  for (const auto& model : {open_model({.copy = true}), *ModelView::from_bytes(memory)}) {
    CHECK(model->prefetch().ok());
    CHECK(resident(*model) >= model->bytes().size());
    for (const Status& status : {model->release(), model->lock(), model->unlock()}) {
      CHECK(status.code() == ErrorCode::unsupported);
      CHECK(status.message().find("not a mapped file") != std::string::npos);
    }
    CHECK(std::ranges::equal(memory, model->bytes()));
  }
}

#ifdef ONEWEIGHT_TESTS_COUNT  // sanitizers leave out every mlock()
TEST_CASE("locked weights are resident and stay so", "[model][pages]") {
  const auto model = open_model();
  REQUIRE(model->release().ok());
  const auto part = model->bytes().first(40000);  // the least that systems let a process lock is 64 KB
  REQUIRE(model->lock(part).ok());
  CHECK(resident(*model, part) >= part.size());
  const Status status = model->release();
  CHECK(status.code() == ErrorCode::invalid_argument);
  CHECK(status.message().find("locked") != std::string::npos);
  CHECK(resident(*model, part) >= part.size());
  REQUIRE(model->unlock(part).ok());
  REQUIRE(model->release().ok());
  CHECK(resident(*model) == 0);
}

TEST_CASE("what cannot be locked is refused with the bytes and the limit", "[model][pages]") {
  const auto model = open_model();
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t wanted = (model->bytes().size() + page - 1) / page * page;
  // In a child: limits are for good, and do not bind a superuser.
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{65536, 65536};
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (::geteuid() == 0 && ::setuid(65534) != 0)) ::_exit(2);
    const Status status = model->lock();
    const bool right = status.code() == ErrorCode::out_of_memory && status.message().find(std::to_string(wanted) + " bytes") == 0 &&
                       status.message().find("RLIMIT_MEMLOCK is 65536 bytes") != std::string::npos;
    if (!right) std::fprintf(stderr, "%s\n", status.message().c_str());
    ::_exit(right && model->release().ok() ? 0 : 1);  // nothing is locked
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
#endif

TEST_CASE("weights that are not in the system's cache are read ahead", "[model][pages]") {
  // A file of its own, that is thrown out of the cache.
  const std::string path = std::filesystem::current_path().string() + "/oneweight_pages_test.tflite";
  std::filesystem::copy_file(std::string(ONEWEIGHT_TEST_DATA) + kLarge, path, std::filesystem::copy_options::overwrite_existing);
  auto model = ModelView::open(path.c_str());
  const int file = ::open(path.c_str(), O_RDWR);
  REQUIRE(model.ok());
  REQUIRE((*model)->release().ok());
  ::fsync(file);
  (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE)), count = ((*model)->bytes().size() + page - 1) / page;
  std::vector<unsigned char> in_cache(count);
  const auto cached = [&] {
    REQUIRE(::mincore(const_cast<std::byte*>((*model)->bytes().data()), (*model)->bytes().size(), in_cache.data()) == 0);
    return static_cast<size_t>(std::count_if(in_cache.begin(), in_cache.end(), [](unsigned char c) { return c & 1; }));
  };
  std::remove(path.c_str());
  if (cached() > count / 2) SKIP("this file system keeps its files in the cache");
  REQUIRE((*model)->prefetch().ok());
  for (int i = 0; i < 200 && cached() < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(cached() == count);
  CHECK(resident(**model) == 0);
}
