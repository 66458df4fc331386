// A thread pool, and the type of the functions that report progress. Each call of the core starts a pool.
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

// A progress function. Its arguments say that `done` of `total` units of work are finished.
// It is called only on the calling thread, before a chunk of work.
// It may throw an exception to stop the work. For example, it throws after Ctrl-C.
// An empty Report is allowed everywhere.
using Report = std::function<void(std::int64_t done, std::int64_t total)>;

// A pool of `threads` workers. The calling thread is worker 0. A chunk of work may run on any worker.
// So the body of the work may only write to the data of its chunk, or to the scratch space of its worker.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  using Body = std::function<void(std::int64_t chunk, int worker)>;

  // Call body(chunk, worker) once for every chunk in [0, chunks). If a call throws, the remaining chunks are
  // skipped. The first exception is rethrown on the calling thread after all workers have stopped.
  void run(std::int64_t chunks, const Body& body, const Report& report = {});

  // Divide [0, n) into consecutive ranges of at most `grain` items.
  // Call body(begin, end, worker) once for each range.
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
