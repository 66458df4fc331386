// A pool of threads for the span of one call, and how a long call reports on itself.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace agglo {

// Called on the caller's thread only, between pieces of work: (done, total). It may throw to stop the work
// (that is how Ctrl-C arrives). An empty Report is allowed everywhere.
using Report = std::function<void(std::int64_t done, std::int64_t total)>;

// `threads` workers, the caller being worker 0. Which worker gets which chunk is left to chance, so a body
// may write only to what its chunk owns (or to scratch space of its worker that it leaves clean).
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  using Body = std::function<void(std::int64_t chunk, int worker)>;

  // Calls body once for every chunk in [0, chunks). The first exception of any worker is rethrown here, after
  // all workers have come to rest; chunks not yet begun are then dropped.
  void run(std::int64_t chunks, const Body& body, const Report& report = {});

  // Calls body(begin, end, worker) for consecutive ranges that cover [0, n), each of `grain` items or fewer.
  template <class Ranges>
  void ranges(std::int64_t n, std::int64_t grain, const Ranges& body, const Report& report = {}) {
    run((n + grain - 1) / grain,
        [&](std::int64_t chunk, int worker) {
          const std::int64_t begin = chunk * grain;
          body(begin, begin + grain < n ? begin + grain : n, worker);
        },
        report);
  }

 private:
  void work(int worker);
  void drain(int worker);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, rest_;
  const Body* body_ = nullptr;
  std::int64_t chunks_ = 0;
  std::atomic<std::int64_t> next_{0};
  std::exception_ptr failure_;
  std::uint64_t generation_ = 0;
  int busy_ = 0;
  bool quit_ = false;
};

}  // namespace agglo
