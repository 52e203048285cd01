#ifndef CONCLAVE_TOOLS_CLI_OPTION_CHECKS_H_
#define CONCLAVE_TOOLS_CLI_OPTION_CHECKS_H_

#include <CLI/CLI.hpp>
#include <cstdint>

// Checks of options' texts, before CLI11 makes values of them. What they refuse is wrong usage.
namespace conclave::tools {

// A whole number from `least` on that 64 bits hold. CLI11 takes a greater one for the greatest.
CLI::Validator WholeNumber(int64_t least);

// A number, with or without a fraction, in that range; none that is no number ("nan").
CLI::Validator Number(double least, double most);

// A name that goes into a request: UTF-8, as protobuf demands of its strings.
CLI::Validator Utf8Text();

// A group's name: such a text, and not empty.
CLI::Validator GroupName();

// "key=value", each key once. Of one option, whose texts it sees one after the other.
CLI::Validator KeyValue();

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_OPTION_CHECKS_H_
