#include "base/thread_pool.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <system_error>

namespace agglo {

namespace {

void stop(std::vector<std::thread>& workers, std::mutex& mutex, std::condition_variable& wake, bool& quit) {
  {
    std::lock_guard lock(mutex);
    quit = true;
  }
  wake.notify_all();
  for (auto& thread : workers) thread.join();
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads < 1) throw std::invalid_argument("threads must be at least 1, got " + std::to_string(threads));
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker); });
  } catch (const std::system_error& error) {
    const auto started = workers_.size();
    // If this constructor throws, ~ThreadPool does not run.
    // Without stop(), the destructor of wake_ would block forever, because the started threads wait on wake_.
    stop(workers_, mutex_, wake_, quit_);
    throw std::invalid_argument("n_jobs=" + std::to_string(threads) + ", but the system started only " +
                                std::to_string(started + 1) + " threads (" + error.what() + "): pass fewer");
  }
}

ThreadPool::~ThreadPool() { stop(workers_, mutex_, wake_, quit_); }

void ThreadPool::work(int worker) {
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return quit_ || generation_ != seen; });
      if (quit_) return;
      seen = generation_;
    }
    drain(worker);
    std::lock_guard lock(mutex_);
    if (--busy_ == 0) rest_.notify_one();
  }
}

void ThreadPool::drain(int worker) {
  try {
    for (std::int64_t chunk; (chunk = next_.fetch_add(1)) < chunks_;) (*body_)(chunk, worker);
  } catch (...) {
    next_.store(chunks_);
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::run(std::int64_t chunks, const Body& body, const Report& report) {
  const Body caller = [&](std::int64_t chunk, int worker) {
    if (worker == 0 && report) report(chunk, chunks);
    body(chunk, worker);
  };
  if (workers_.empty() || chunks <= 1) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) caller(chunk, 0);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    body_ = &caller;
    chunks_ = chunks;
    next_.store(0);
    failure_ = nullptr;
    busy_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  wake_.notify_all();
  drain(0);
  std::unique_lock lock(mutex_);
  rest_.wait(lock, [&] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace agglo
