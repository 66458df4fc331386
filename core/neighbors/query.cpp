#include "neighbors/query.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/blas.hpp"
#include "base/hash.hpp"
#include "base/topk.hpp"
#include "ivf/rerank.hpp"
#include "ivf/tuning.hpp"
#include "neighbors/lists.hpp"
#include "points/expand.hpp"
#include "points/rows.hpp"
#include "simd/dot.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kRows = 256;       // queries per matrix product
constexpr std::int64_t kColumns = 1024;   // points per matrix product
constexpr std::int64_t kBatch = 1 << 16;  // maximum number of queries whose rows are in memory at once
constexpr std::int64_t kListSize = 256;   // default number of points per inverted list
constexpr std::int64_t kTuning = 128;     // points in the sample that tunes the parameters
constexpr std::int64_t kProbes = 16;      // groups of centroids that a query probes to find its nearest list

// If the squared length of a query is above kFar, float32 products of the query might overflow.
// Such a query is far from all points, because the normalized rows of points have a length of at most 1.
constexpr double kFar = 0x1p80;

void check(const AnyPoints& points, std::int64_t k) {
  if (points.n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(points.n));
  if (k < 1 || k > points.n)
    throw std::invalid_argument("k must be in 1.." + std::to_string(points.n) + ", got " + std::to_string(k));
}

// Compares a block of queries with all points, one block of points after the other.
class QueryStrip {
 public:
  QueryStrip(const Space& space, std::span<const std::int32_t> ids, std::span<const float> offsets,
             std::span<const float> slacks, std::int64_t wanted, Gemm<float>* sgemm)
      : space_(space), ids_(ids), offsets_(offsets), slacks_(slacks), wanted_(wanted), sgemm_(sgemm) {}

  // Calls out(i, nearest) for each query number first + i in [first, last).
  // `nearest` holds the nearest distinct points of the query, nearest first.
  template <class Out>
  void run(const AnyPoints& queries, std::int64_t first, std::int64_t last, const Out& out) {
    const std::int64_t m = last - first, d = space_.d(), n = static_cast<std::int64_t>(ids_.size());
    queries_.clear();
    rows_.assign(m * d, 0.0f);
    own_offset_.resize(m);
    cutoff_.assign(m, -kInfinity);
    best_.resize(m);
    for (std::int64_t i = 0; i < m; ++i) {
      queries_.push_back(space_.make_query(queries.row(first + i)));
      const double square = queries_[i].square;
      own_offset_[i] =
          static_cast<float>((is_similarity(space_.metric()) ? 0 : square / 2) - float32_slack(square, d));
      best_[i].clear();
      if (is_far(i)) continue;  // this query is compared exactly with all points
      space_.normalize(queries_[i], rows_.data() + i * d);
    }
    block_.resize(kColumns);
    hits_.resize(kColumns);
    no_cutoffs_.assign(kColumns, kInfinity);
    for (std::int64_t left = 0; left < n; left += kColumns) {
      const std::int64_t width = std::min(n - left, kColumns);
      std::iota(block_.begin(), block_.begin() + width, static_cast<std::int32_t>(left));
      gather_normalized(space_, ids_, std::span<const std::int32_t>(block_).first(width), columns_);
      multiply_blas(sgemm_, rows_.data(), m, columns_.data(), width, d, products_);
      for (std::int64_t i = 0; i < m; ++i) add_block(i, left, width, products_.data() + i * width);
    }
    for (std::int64_t i = 0; i < m; ++i) {
      keep_first(best_[i], wanted_);
      out(i, std::span<const Candidate>(best_[i]));
    }
  }

 private:
  bool is_far(std::int64_t i) const { return !(queries_[i].square < kFar); }

  // Adds the candidates of query i among the `width` points that start at `left`.
  void add_block(std::int64_t i, std::int64_t left, std::int64_t width, const float* products) {
    if (left == 0 && width > wanted_ && !is_far(i)) {
      // Find a lower bound that the similarities of at least `wanted_` points of the first block reach.
      // Candidates must reach it, too. The cutoff is this similarity plus the offset of the query.
      lower_bounds_.resize(width);
      const float slack = static_cast<float>(float32_slack(queries_[i].square, space_.d()));
      for (std::int64_t c = 0; c < width; ++c)
        lower_bounds_[c] = ((products[c] - own_offset_[i]) - offsets_[c]) - 2 * (slack + slacks_[c]);
      cutoff_[i] = top_k_threshold(wanted_, lower_bounds_.data(), width) + own_offset_[i];
    }
    const int count = select_above(products, offsets_.data() + left, no_cutoffs_.data(), 0, cutoff_[i], 0,
                                   static_cast<int>(width), hits_.data());
    for (int h = 0; h < count; ++h) {
      const std::int32_t j = ids_[left + hits_[h]];
      best_[i].push_back({space_.similarity(queries_[i], j), j});
    }
    if (static_cast<std::int64_t>(best_[i].size()) < 4 * wanted_ + 64) return;
    keep_first(best_[i], wanted_);
    if (!is_far(i))
      cutoff_[i] = std::max(cutoff_[i], round_down(best_[i].back().similarity) + own_offset_[i]);
  }

  const Space& space_;
  const std::span<const std::int32_t> ids_;
  const std::span<const float> offsets_, slacks_;
  const std::int64_t wanted_;
  Gemm<float>* const sgemm_;
  std::vector<Query> queries_;
  std::vector<float> rows_, own_offset_, cutoff_, columns_, products_, no_cutoffs_, lower_bounds_;
  std::vector<std::int32_t> block_, hits_;
  std::vector<std::vector<Candidate>> best_;
};

}  // namespace

Neighbors exact_query(const AnyPoints& queries, const AnyPoints& points, std::int64_t k, Metric metric,
                      Gemm<float>* sgemm, ThreadPool& pool, const Report& report) {
  check(points, k);
  const Space space(points, metric, pool);
  const Duplicates duplicates = find_duplicates(points, pool);
  const std::span<const std::int32_t> ids = duplicates.first;
  const std::int64_t wanted = std::min(k, static_cast<std::int64_t>(ids.size()));
  std::vector<float> offsets(ids.size()), slacks(ids.size());
  for (std::size_t p = 0; p < ids.size(); ++p) {
    slacks[p] = static_cast<float>(float32_slack(space, ids[p]));
    offsets[p] = static_cast<float>(space.offset(ids[p]) - float32_slack(space, ids[p]));
  }
  Neighbors result{std::vector<std::int32_t>(queries.n * k), std::vector<float>(queries.n * k)};
  const std::int64_t grain =
      std::clamp<std::int64_t>(queries.n / (4 * static_cast<std::int64_t>(pool.size())), 1, kRows);
  std::vector<QueryStrip> strips(pool.size(), QueryStrip(space, ids, offsets, slacks, wanted, sgemm));
  pool.ranges(
      queries.n, grain,
      [&](std::int64_t first, std::int64_t last, int worker) {
        DuplicateExpansion expansion(space, duplicates, k);
        strips[worker].run(queries, first, last, [&](std::int64_t i, std::span<const Candidate> nearest) {
          expansion.write_query(first + i, nearest, result);
        });
      },
      report);
  return result;
}

// A batch of queries, with their rows and their nearest inverted lists.
struct IvfIndex::Batch {
  std::int64_t first, last;
  std::vector<Query> queries;
  std::vector<float> rows;
  std::vector<std::int32_t> list;
};

IvfIndex::IvfIndex(const AnyPoints& points, std::int64_t k, Metric metric, const IvfParams& params,
                   double recall, std::span<const std::int32_t> known, std::span<const float> basis,
                   std::uint64_t seed, Gemm<float>* sgemm, ThreadPool& pool, const Report& report)
    : points_(points),
      k_(k),
      product_(is_similarity(metric)),
      sgemm_(sgemm),
      space_((check(points, k), points), metric, pool),
      duplicates_(find_duplicates(points, pool)),
      wanted_(std::min(k, static_cast<std::int64_t>(duplicates_.first.size()))),
      basis_(basis.begin(), basis.end()),
      params_(params) {
  params_.list_size = std::max(params.list_size == 0 ? kListSize : params.list_size, 4 * (wanted_ + 1));
  if (basis_.empty())
    source_ = std::make_unique<FullRows>(space_, duplicates_.first);
  else
    source_ = std::make_unique<ProjectedRows>(space_, duplicates_.first, basis_, !product_, pool, report);
  std::mt19937_64 rng(seed);
  const bool by_product = metric == Metric::dot;
  auto lists = known_lists(known);
  if (!lists.empty())
    partition_ = std::make_unique<Partition>(*source_, std::move(lists), by_product, pool, report);
  else
    partition_ = std::make_unique<Partition>(*source_, params_.list_size, wanted_ + 1, false, by_product,
                                             rng(), pool, report);
  coded_ = std::make_unique<CodedLists>(*source_, *partition_, product_, pool, report);
  const auto n_nearest = static_cast<std::int64_t>(partition_->nearest(0).size());
  if (params_.n_probes == 0) choose_params(recall, rng(), pool);
  params_.n_probes = std::min(params_.n_probes, n_nearest);
  params_.n_candidates = std::max(params_.n_candidates, wanted_ + 1);
  if (partition_->count() == 1)
    params_.n_candidates = source_->n();  // with only one list, compare all points
  // Points are assigned to the list with the nearest centroid, under every metric. So queries are assigned in
  // the same way.
  Centroids centroids{source_->width(), {}, {}};
  for (std::int64_t c = 0; c < partition_->count(); ++c)
    centroids.add(partition_->centroid(c), half_squared_norm(partition_->centroid(c), source_->width()));
  const auto balanced =
      static_cast<std::int64_t>(std::sqrt(static_cast<double>(kProbes * centroids.count())));
  centroid_index_ =
      std::make_unique<CentroidIndex>(centroids, std::min(balanced, centroids.count()), kProbes, pool);
}

// Returns the known inverted list of each distinct point.
// If `known` is empty or a list is too small, returns an empty vector.
std::vector<std::int32_t> IvfIndex::known_lists(std::span<const std::int32_t> known) const {
  std::vector<std::int32_t> lists;
  std::vector<std::int64_t> sizes;
  for (std::size_t p = 0; p < duplicates_.first.size() && !known.empty(); ++p) {
    lists.push_back(known[duplicates_.first[p]]);
    if (lists.back() >= static_cast<std::int64_t>(sizes.size())) sizes.resize(lists.back() + 1, 0);
    ++sizes[lists.back()];
  }
  if (sizes.size() > 1 && *std::min_element(sizes.begin(), sizes.end()) <= wanted_) lists.clear();
  return lists;
}

// Chooses n_probes and n_candidates so that a sample of the points reaches the recall.
void IvfIndex::choose_params(double recall, std::uint64_t seed, ThreadPool& pool) {
  const std::int64_t n = points_.n, neighbors = std::min(k_, source_->n() - 1);
  params_.n_probes = 1;
  if (neighbors == 0) return;
  std::vector<std::int32_t> positions;
  for (const std::int32_t point : random_sample(n, kTuning, seed))
    positions.push_back(duplicates_.inverse[point]);
  const TrueNeighbors truth(space_, duplicates_.first, neighbors, positions, sgemm_, pool, {});
  std::vector<IvfScanner> scanners;
  for (int w = 0; w < pool.size(); ++w) scanners.emplace_back(*source_, *partition_, *coded_, product_);
  ProbeTuner tuner(points_.n, neighbors, params_.list_size, coded_->width(), points_.d);
  tuner.measure_sample(truth, *partition_, *coded_, static_cast<std::int64_t>(positions.size()), scanners,
                       pool);
  const auto choice = tuner.choose(recall);
  params_.n_probes = choice.n_probes;
  params_.n_candidates = choice.n_candidates;
}

// Normalizes a batch of queries, and finds the nearest inverted lists of each query.
void IvfIndex::assign_queries(const AnyPoints& queries, Batch& batch, ThreadPool& pool) const {
  const std::int64_t m = batch.last - batch.first, width = source_->width(), d = points_.d;
  batch.queries.resize(m);
  batch.rows.resize(m * width);
  batch.list.resize(m);
  std::vector<CentroidIndex::Scratch> scratch(pool.size());
  pool.ranges(m, kRows, [&](std::int64_t first, std::int64_t last, int worker) {
    thread_local std::vector<float> normalized, products;
    normalized.assign((last - first) * d, 0.0f);
    for (std::int64_t i = first; i < last; ++i) {
      const Query& query = batch.queries[i] = space_.make_query(queries.row(batch.first + i));
      // A query that is far from all points gets a row of zeros.
      // Relative to its distance, such a query is about equally close to all points.
      if (query.square < kFar) space_.normalize(query, normalized.data() + (i - first) * d);
    }
    float* rows = batch.rows.data() + first * width;
    if (basis_.empty()) {
      std::copy(normalized.begin(), normalized.end(), rows);
    } else {
      multiply_rows(normalized.data(), last - first, basis_.data(), width, d, products);
      std::copy_n(products.data(), (last - first) * width, rows);
    }
    centroid_index_->find_nearest(rows, last - first, scratch[worker], batch.list.data() + first);
  });
}

Neighbors IvfIndex::query(const AnyPoints& queries, ThreadPool& pool, const Report& report) const {
  Neighbors result{std::vector<std::int32_t>(queries.n * k_), std::vector<float>(queries.n * k_)};
  std::vector<IvfScanner> scanners;
  for (int w = 0; w < pool.size(); ++w) scanners.emplace_back(*source_, *partition_, *coded_, product_);
  for (std::int64_t first = 0; first < queries.n; first += kBatch) {
    Batch batch{first, std::min(queries.n, first + kBatch), {}, {}, {}};
    assign_queries(queries, batch, pool);
    // Sort the queries by their nearest inverted list. Each chunk has at most kRows queries of one list.
    const std::vector<std::int32_t> order =
        group_by_label(std::span<const std::int32_t>(batch.list), partition_->count()).indices;
    std::vector<std::int32_t> begins;
    for (std::size_t s = 0; s < order.size(); ++s)
      if (s == 0 || batch.list[order[s]] != batch.list[order[s - 1]] ||
          static_cast<std::int64_t>(s) - begins.back() == kRows)
        begins.push_back(static_cast<std::int32_t>(s));
    begins.push_back(static_cast<std::int32_t>(order.size()));
    pool.run(
        static_cast<std::int64_t>(begins.size()) - 1,
        [&](std::int64_t c, int worker) {
          const auto chunk =
              std::span<const std::int32_t>(order).subspan(begins[c], begins[c + 1] - begins[c]);
          Reranker reranker(space_, wanted_);
          DuplicateExpansion expansion(space_, duplicates_, k_);
          const auto rerank = [&](std::int32_t i, std::span<const std::int32_t> slots) {
            reranker.clear();
            for (const std::int32_t slot : slots) reranker.add(duplicates_.first[coded_->position(slot)]);
            const Query& query = batch.queries[i];
            expansion.write_query(first + i, reranker.rank(query, query.square, query.quick), result);
          };
          scanners[worker].scan(batch.list[chunk[0]], chunk, batch.rows.data(), params_.n_probes,
                                params_.n_candidates, rerank);
        },
        [&](std::int64_t done, std::int64_t total) {
          if (report)
            report(first + (batch.last - first) * done / std::max<std::int64_t>(total, 1), queries.n);
        });
  }
  return result;
}

std::vector<std::uint64_t> hash_rows(const AnyPoints& points, ThreadPool& pool) {
  std::vector<std::uint64_t> hashes(points.n);
  pool.ranges(points.n, kColumns, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) hashes[i] = hash_bytes(points.row(i), points.row_bytes());
  });
  return hashes;
}

}  // namespace agglo
