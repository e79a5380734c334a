// Runs cases in processes of their own: a crash or a hang costs one case.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <thread>

#include "case.h"
#include "commands.h"

namespace program {

namespace {

enum class Outcome { open, passed, failed, skipped };

struct Entry {
  std::filesystem::path folder;
  std::string group;
  Outcome outcome = Outcome::open;
  std::string message;
};

struct Child {
  pid_t process = -1;
  int pipe = -1;
  size_t entry = 0;
  Clock::time_point deadline;
  std::string text;  // what came through the pipe
};

// Ends the process: what it says is a mark and, when the case failed, a sentence.
[[noreturn]] void run_in_child(const Case& test, const CaseOptions& options, int pipe) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::string text = run_case(test, options);
  text.insert(0, text.empty() ? "+" : "-");
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = ::write(pipe, text.data() + sent, text.size() - sent);
    if (n <= 0) break;
    sent += static_cast<size_t>(n);
  }
  ::_exit(0);
}

class Verification {
 public:
  Verification(const VerifyArguments& arguments, std::vector<Entry> entries)
      : arguments_(arguments), entries_(std::move(entries)), progress_("verify") {}

  int run() {
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    const size_t jobs = arguments_.jobs > 0 ? static_cast<size_t>(arguments_.jobs) : processors;
    // Measured cases run alone, at the end.
    std::vector<size_t> waiting, alone;
    for (size_t i = 0; i < entries_.size(); ++i) prepare(i, &waiting, &alone);
    run_all(waiting, jobs);
    run_all(alone, 1);
    progress_.clear();
    return summary();
  }

 private:
  void prepare(size_t i, std::vector<size_t>* waiting, std::vector<size_t>* alone) {
    Entry& entry = entries_[i];
    auto test = read_case(entry.folder);
    entry.group = test.ok() ? test->group : entry.folder.parent_path().filename().string();
    if (!test.ok()) {
      finish(i, Outcome::failed, test.status().message());
    } else if (test->measured() && arguments_.skip_measured) {
      finish(i, Outcome::skipped, "");
    } else {
      (test->measured() ? alone : waiting)->push_back(i);
    }
    if (test.ok()) cases_.emplace(i, std::move(*test));
  }

  void run_all(const std::vector<size_t>& waiting, size_t jobs) {
    size_t next = 0;
    while (next < waiting.size() || !children_.empty()) {
      while (children_.size() < jobs && next < waiting.size()) start(waiting[next++]);
      wait_for_some();
    }
  }

  void start(size_t entry) {
    int ends[2];
    if (::pipe(ends) != 0) {
      finish(entry, Outcome::failed, std::string("no pipe for its process: ") + std::strerror(errno));
      return;
    }
    std::fflush(nullptr);
    const pid_t process = ::fork();
    if (process == 0) {
      ::close(ends[0]);
      run_in_child(cases_.at(entry), {arguments_.threads, arguments_.tile_rows}, ends[1]);
    }
    ::close(ends[1]);
    if (process < 0) {
      ::close(ends[0]);
      finish(entry, Outcome::failed, std::string("no process for it: ") + std::strerror(errno));
      return;
    }
    const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(arguments_.timeout));
    children_.push_back({process, ends[0], entry, Clock::now() + limit, {}});
  }

  void wait_for_some() {
    if (children_.empty()) return;
    std::vector<pollfd> pipes;
    Clock::time_point first = children_[0].deadline;
    for (const Child& child : children_) {
      pipes.push_back({child.pipe, POLLIN, 0});
      first = std::min(first, child.deadline);
    }
    const double left = std::max(0.0, milliseconds(first - Clock::now()));
    ::poll(pipes.data(), pipes.size(), static_cast<int>(std::min(left + 1, 1000.0)));
    for (size_t i = children_.size(); i-- > 0;) {
      Child& child = children_[i];
      bool ended = false, late = false;
      if (pipes[i].revents) {
        char buffer[4096];
        const ssize_t n = ::read(child.pipe, buffer, sizeof buffer);
        if (n > 0) child.text.append(buffer, static_cast<size_t>(n));
        ended = n == 0 || (n < 0 && errno != EINTR);
      } else if (Clock::now() >= child.deadline) {
        ::kill(child.process, SIGKILL);
        late = true;
      }
      if (!ended && !late) continue;
      reap(child, late);
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void reap(const Child& child, bool late) {
    ::close(child.pipe);
    int status = 0;
    while (::waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
    }
    if (late) {
      finish(child.entry, Outcome::failed, oneweight::format_text("no answer after %.0f seconds", arguments_.timeout));
    } else if (WIFSIGNALED(status)) {
      finish(child.entry, Outcome::failed, std::string("crashed: ") + strsignal(WTERMSIG(status)));
    } else if (child.text.empty() || WEXITSTATUS(status) != 0) {
      finish(child.entry, Outcome::failed, oneweight::format_text("its process ended with exit status %d", WEXITSTATUS(status)));
    } else {
      finish(child.entry, child.text[0] == '+' ? Outcome::passed : Outcome::failed, child.text.substr(1));
    }
  }

  // Failures are printed in the order of the cases, as soon as all before them are known.
  void finish(size_t entry, Outcome outcome, std::string message) {
    entries_[entry].outcome = outcome;
    std::replace(message.begin(), message.end(), '\n', ' ');
    entries_[entry].message = std::move(message);
    ++finished_;
    while (printed_ < entries_.size() && entries_[printed_].outcome != Outcome::open) {
      const Entry& e = entries_[printed_++];
      if (e.outcome != Outcome::failed) continue;
      progress_.clear();
      std::printf("FAIL %s: %s\n", e.folder.c_str(), e.message.c_str());
      std::fflush(stdout);
    }
    progress_.show(static_cast<int64_t>(finished_), static_cast<int64_t>(entries_.size()));
  }

  int summary() const {
    struct Counts {
      int passed = 0, failed = 0, skipped = 0;
    };
    std::map<std::string, Counts> groups;
    Counts all;
    for (const Entry& e : entries_) {
      for (Counts* counts : {&groups[e.group], &all}) {
        if (e.outcome == Outcome::passed) ++counts->passed;
        if (e.outcome == Outcome::failed) ++counts->failed;
        if (e.outcome == Outcome::skipped) ++counts->skipped;
      }
    }
    size_t width = 8;
    for (const auto& [group, counts] : groups) width = std::max(width, group.size());
    std::printf("\n%-*s  passed  failed\n", static_cast<int>(width), "operator");
    for (const auto& [group, counts] : groups)
      std::printf("%-*s  %6d  %6d\n", static_cast<int>(width), group.c_str(), counts.passed, counts.failed);
    std::printf("\n%d passed, %d failed, %d skipped\n", all.passed, all.failed, all.skipped);
    return all.failed ? kCaseFailed : kSuccess;
  }

  const VerifyArguments& arguments_;
  std::vector<Entry> entries_;
  std::map<size_t, Case> cases_;
  std::vector<Child> children_;
  Progress progress_;
  size_t finished_ = 0, printed_ = 0;
};

}  // namespace

int verify(const VerifyArguments& arguments) {
  std::vector<Entry> entries;
  for (const std::string& folder : arguments.folders) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) {
      std::fprintf(stderr, "oneweight: %s is not a folder\n", folder.c_str());
      return kWrongUsage;
    }
    for (std::filesystem::path& found : find_cases(folder))
      if (found.string().find(arguments.filter) != std::string::npos) entries.push_back({std::move(found), {}, Outcome::open, {}});
  }
  if (entries.empty()) {
    std::fprintf(stderr, "oneweight: no case (a folder with case.json%s) was found\n",
                 arguments.filter.empty() ? "" : (" and '" + arguments.filter + "' in its path").c_str());
    return kWrongUsage;
  }
  return Verification(arguments, std::move(entries)).run();
}

}  // namespace program
