#include <atomic>
#include <stdexcept>
#include <vector>

#include "base/thread_pool.hpp"
#include "test_case.hpp"

using agglo::ThreadPool;

namespace {

void every_chunk_is_done_once(int threads) {
  ThreadPool pool(threads);
  for (const std::int64_t chunks : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<std::size_t>(chunks));
    pool.run(chunks, [&](std::int64_t chunk, int worker) {
      CHECK(worker >= 0 && worker < pool.size());
      ++done[chunk];
    });
    for (const auto& count : done) CHECK(count == 1);
  }
  std::vector<int> covered(100, 0);
  pool.ranges(100, 7, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) ++covered[i];
  });
  for (const int count : covered) CHECK(count == 1);
}

void exceptions_reach_the_caller(int threads) {
  ThreadPool pool(threads);
  for (int repeat = 0; repeat < 20; ++repeat) {
    CHECK(throws<std::runtime_error>([&] {
      pool.run(100, [](std::int64_t chunk, int) {
        if (chunk == 50) throw std::runtime_error("fifty");
      });
    }));
    std::atomic<int> done{0};  // the pool can be used again
    pool.run(10, [&](std::int64_t, int) { ++done; });
    CHECK(done == 10);
  }
}

void reports_may_stop_the_work(int threads) {
  ThreadPool pool(threads);
  const bool caught = throws<std::runtime_error>([&] {
    pool.run(
        1000, [](std::int64_t, int) {},
        [](std::int64_t done, std::int64_t total) {
          CHECK(total == 1000);
          if (done >= 0) throw std::runtime_error("stop");
        });
  });
  CHECK(caught || threads > 1);  // other workers may process all chunks
}

}  // namespace

TEST_CASE("every chunk is processed once") {
  for (const int threads : {1, 2, 8}) every_chunk_is_done_once(threads);
}

TEST_CASE("exceptions of workers reach the caller, and the pool stays usable") {
  for (const int threads : {1, 2, 8}) exceptions_reach_the_caller(threads);
}

TEST_CASE("an exception of the progress function stops the work") {
  for (const int threads : {1, 2, 8}) reports_may_stop_the_work(threads);
}

TEST_CASE("a pool has at least one thread") {
  CHECK(throws<std::invalid_argument>([&] { ThreadPool pool(0); }));
}
