#ifndef CONCLAVE_TESTS_BENCH_CEILINGS_METHODS_H_
#define CONCLAVE_TESTS_BENCH_CEILINGS_METHODS_H_

// What the server and the client of the ceilings speak: raw bytes under these names.
namespace conclave::bench {

// Unary: the request comes back.
inline constexpr char kEcho[] = "/conclave.bench.Ceilings/Echo";
// Unary: the request is checksummed and written to a file; the answer is empty.
inline constexpr char kAppend[] = "/conclave.bench.Ceilings/Append";
// Server streaming. Request: "<bytes of a message> <messages>"; the answers are slices of a mapped
// file.
inline constexpr char kPull[] = "/conclave.bench.Ceilings/Pull";

}  // namespace conclave::bench

#endif  // CONCLAVE_TESTS_BENCH_CEILINGS_METHODS_H_
