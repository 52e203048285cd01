#ifndef CONCLAVE_TESTS_BENCH_CEILINGS_SERVER_H_
#define CONCLAVE_TESTS_BENCH_CEILINGS_SERVER_H_

#include <string>

namespace conclave::bench {

// Serves the methods on a free port of localhost, which it prints as {"port": N}, until standard
// input ends: a server never outlives who started it. Its files are in `dir`, and go with it.
int Serve(const std::string& dir);

}  // namespace conclave::bench

#endif  // CONCLAVE_TESTS_BENCH_CEILINGS_SERVER_H_
