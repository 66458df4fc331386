// Named test cases for the core. A file of test cases is one program, because this header defines main():
//   test_tree                 runs all cases of the file
//   test_tree leaves          runs the cases with "leaves" in their names
// A failed check ends its case. The program then runs the other cases, and returns 1.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "check.hpp"

struct TestCase {
  std::string_view name;
  void (*run)();
};

inline std::vector<TestCase>& test_cases() {
  static std::vector<TestCase> cases;
  return cases;
}

// Defines a test case: TEST_CASE("what holds, in plain words") { ... }
#define TEST_CASE(name) AGGLO_TEST_CASE(name, __LINE__)
#define AGGLO_TEST_CASE(name, line) AGGLO_TEST_CASE_AT(name, line)
#define AGGLO_TEST_CASE_AT(name, line)                                         \
  static void test_case_##line();                                              \
  static const std::size_t test_case_index_##line =                            \
      (test_cases().push_back({name, test_case_##line}), test_cases().size()); \
  static void test_case_##line()

int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  int run = 0, failed = 0;
  for (const TestCase& test : test_cases()) {
    if (test.name.find(part) == std::string_view::npos) continue;
    ++run;
    try {
      test.run();
      std::printf("passed: %s\n", test.name.data());
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAILED: %s\n  %s\n", test.name.data(), error.what());
    }
  }
  std::printf("%d of %d test cases failed\n", failed, run);
  return failed > 0 || run == 0;
}
